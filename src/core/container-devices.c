/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Block devices given to and taken from a container that runs: one after the other, each a row of steps
 * that are undone when one fails. The container may go meanwhile: it is looked up anew each time. */
#include "core/disks.h"

#include "core/device-rules.h"
#include "core/guestspec-private.h"
#include <stdlib.h>
#include <string.h>

#define NODE_MODE 0660

typedef struct {
    SvSandbox *sandbox;
    char *id;
    GPtrArray
        *todo; /* char*: '+' or '-' and what was asked for; '!' and the alias of a cut-off '+' */
    guint at;
    char *alias; /* of the disk in work */
    SvDone done;
    gpointer user_data;
} Change;

static void next(Change *change);

/* The container, unless it has gone or is on its way. */
static SvContainer *find(const Change *change, GError **error)
{
    return sv_container_find_for(change->sandbox, change->id, "update", error);
}

static SvDiskRecord *find_disk(const Change *change, SvContainer **container, GError **error)
{
    *container = find(change, error);
    SvDiskRecord *disk = *container && change->alias
        ? sv_disk_records_find((*container)->record->disks, change->alias)
        : NULL;

    if (*container && !disk)
        g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "the device has gone");
    return disk;
}

static void on_answer(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    sv_ticket_done(error, user_data);
}

/* ---- claim */

static gboolean claim(Change *change, const char *text, GError **error)
{
    SvContainer *container = find(change, error);
    g_autoptr(SvDiskRecord) disk = container ? sv_disks_plan_device(container, text, error) : NULL;

    if (!disk)
        return FALSE;
    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *other = container->record->disks->pdata[i];

        if (g_strcmp0(other->path, disk->path) == 0) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_EXISTS,
                "the container has a device at \"%s\" already", disk->path);
            return FALSE;
        }
    }
    SvDiskRecord *added = disk;
    added->adding = TRUE;
    g_ptr_array_add(container->record->disks, g_steal_pointer(&disk));
    if (!sv_disk_name(container, added, error)) {
        sv_disks_forget(container, added);
        return FALSE;
    }
    change->alias = g_strdup(added->alias);
    return sv_sandbox_save(change->sandbox, error) && sv_container_save(container, error) &&
        sv_disk_claim(container, added, error);
}

static void step_claim(SvSequence *seq, gpointer user_data)
{
    Change *change = user_data;
    GError *error = NULL;

    if (claim(change, (const char *)change->todo->pdata[change->at] + 1, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

/* Out of the record, too; the stop of the container may have done it. */
static void forget(const Change *change)
{
    SvContainer *container = sv_sandbox_find(change->sandbox, change->id, NULL);
    SvDiskRecord *disk = container && change->alias
        ? sv_disk_records_find(container->record->disks, change->alias)
        : NULL;
    g_autoptr(GError) error = NULL;

    if (!disk)
        return;
    sv_disk_unclaim(change->sandbox, disk);
    sv_disks_forget(container, disk);
    sv_sandbox_touch(change->sandbox);
    if (!sv_container_save(container, &error))
        g_warning("container %s: ignoring: %s", change->id, error->message);
}

static void undo_claim(SvSequence *seq, gpointer user_data)
{
    forget(user_data);
    sv_sequence_next(seq);
}

/* ---- plug */

static void step_plug(SvSequence *seq, gpointer user_data)
{
    Change *change = user_data;
    SvContainer *container = NULL;
    GError *error = NULL;

    if (find_disk(change, &container, &error))
        sv_disk_plug(container, change->alias, sv_ticket_done, sv_sequence_handle(seq));
    else
        sv_sequence_fail(seq, error);
}

static void step_unplug(SvSequence *seq, gpointer user_data)
{
    Change *change = user_data;
    SvContainer *container = sv_sandbox_find(change->sandbox, change->id, NULL);

    if (container && change->alias)
        sv_disks_unplug(container, change->alias, sv_ticket_done, sv_sequence_handle(seq));
    else
        sv_sequence_next(seq);
}

/* ---- access: the guest's cgroup gets all rules anew */

/* linux.resources with nothing but the rules. @without: alias of a disk that has none any more. */
static char *make_rules(const SvContainer *container, const char *without)
{
    g_autoptr(GHashTable) numbers = sv_disks_numbers(container);
    JsonArray *spec_rules = sv_disks_rules(container);
    JsonArray *rules = spec_rules ? sv_guest_device_rules(spec_rules, numbers) : json_array_new();
    JsonObject *object = json_object_new();
    g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), object);

    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];
        gboolean removed = g_strcmp0(disk->alias, without) == 0;

        if (!disk->plugged || !disk->guest_node || (!disk->access && !removed))
            continue;
        JsonObject *rule = json_object_new();
        json_object_set_boolean_member(rule, "allow", !removed);
        json_object_set_string_member(rule, "type", "b");
        json_object_set_int_member(rule, "major", disk->guest_major);
        json_object_set_int_member(rule, "minor", disk->guest_minor);
        json_object_set_string_member(rule, "access", removed ? "rwm" : disk->access);
        json_array_add_object_element(rules, rule);
    }
    json_object_set_array_member(object, "devices", rules);
    json_object_unref(object);
    return sv_json_text(node, FALSE);
}

static void set_access(SvSequence *seq, Change *change, gboolean with)
{
    SvContainer *container = NULL;
    GError *error = NULL;

    if (!find_disk(change, &container, &error)) {
        sv_sequence_fail(seq, error);
        return;
    }
    g_autofree char *text = make_rules(container, with ? NULL : change->alias);
    Sandvirt__V1__UpdateRequest message = SANDVIRT__V1__UPDATE_REQUEST__INIT;
    message.container_id = change->id;
    message.resources.data = (guint8 *)text;
    message.resources.len = strlen(text);
    sv_agent_call(change->sandbox->agent, "Update", &message.base, NULL,
        change->sandbox->config->agent_ms, on_answer, sv_sequence_handle(seq));
}

static void step_allow(SvSequence *seq, gpointer user_data)
{
    set_access(seq, user_data, TRUE);
}

static void step_deny(SvSequence *seq, gpointer user_data)
{
    set_access(seq, user_data, FALSE);
}

/* ---- node */

static void call_node(SvSequence *seq, Change *change, const char *method)
{
    SvContainer *container = NULL;
    GError *error = NULL;
    const SvDiskRecord *disk = find_disk(change, &container, &error);

    if (!disk) {
        sv_sequence_fail(seq, error);
        return;
    }
    Sandvirt__V1__NodeRequest message = SANDVIRT__V1__NODE_REQUEST__INIT;
    message.container_id = change->id;
    message.path = disk->path;
    message.node = disk->guest_node;
    message.major = disk->guest_major;
    message.minor = disk->guest_minor;
    message.mode = NODE_MODE;
    sv_agent_call(change->sandbox->agent, method, &message.base, NULL,
        change->sandbox->config->agent_ms, on_answer, sv_sequence_handle(seq));
}

static void step_add_node(SvSequence *seq, gpointer user_data)
{
    call_node(seq, user_data, "AddNode");
}

static void step_remove_node(SvSequence *seq, gpointer user_data)
{
    call_node(seq, user_data, "RemoveNode");
}

/* ---- the rows */

static void save(SvSequence *seq, Change *change, gboolean adding)
{
    SvContainer *container = NULL;
    GError *error = NULL;
    SvDiskRecord *disk = find_disk(change, &container, &error);

    if (disk)
        disk->adding = adding;
    if (disk && sv_container_save(container, &error)) {
        sv_sandbox_touch(change->sandbox);
        sv_sequence_next(seq);
    } else {
        sv_sequence_fail(seq, error);
    }
}

/* The guest's numbers: whoever has to take the node away again needs them. */
static void step_save_numbers(SvSequence *seq, gpointer user_data)
{
    save(seq, user_data, TRUE);
}

static void step_save(SvSequence *seq, gpointer user_data)
{
    save(seq, user_data, FALSE);
}

static const SvStep add_steps[] = {
    {"claim", step_claim, undo_claim, 0},
    {"plug", step_plug, step_unplug, 0},
    {"numbers", step_save_numbers, NULL, 0},
    {"allow", step_allow, step_deny, 0},
    {"node", step_add_node, NULL, 0},
    {"save", step_save, step_remove_node, 0},
    {NULL, NULL, NULL, 0},
};

static void step_forget(SvSequence *seq, gpointer user_data)
{
    forget(user_data);
    sv_sequence_next(seq);
}

static const SvStep remove_steps[] = {
    {"node", step_remove_node, NULL, 0},
    {"deny", step_deny, NULL, 0},
    {"unplug", step_unplug, NULL, 0},
    {"forget", step_forget, NULL, 0},
    {NULL, NULL, NULL, 0},
};

static void change_end(Change *change, const GError *error)
{
    SvContainer *container = sv_sandbox_find(change->sandbox, change->id, NULL);

    if (container)
        container->changing_devices = FALSE;
    sv_answer_later(change->done, error, change->user_data);
    g_free(change->id);
    g_free(change->alias);
    g_ptr_array_unref(change->todo);
    g_free(change);
}

static void on_changed(SvSequence *seq, const GError *error, gpointer user_data)
{
    Change *change = user_data;

    g_clear_pointer(&change->alias, g_free);
    if (error) {
        change_end(change, error);
        return;
    }
    change->at++;
    next(change);
}

/* By its name in the container or on the host. */
static const SvDiskRecord *find_named(
    const SvContainer *container, const char *path, GError **error)
{
    g_autofree char *real = realpath(path, NULL);
    g_autofree char *shown = sv_printable(path, 200);

    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];

        if (disk->use != SV_DISK_DEVICE || !disk->plugged || disk->mount_index >= 0)
            continue;
        if (g_strcmp0(disk->path, path) == 0 || g_strcmp0(disk->source, real) == 0)
            return disk;
    }
    g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND,
        "container \"%s\" has no block device \"%s\" that could be taken from it",
        container->record->id, shown);
    return NULL;
}

static void next(Change *change)
{
    g_autoptr(GError) error = NULL;
    const char *what = change->at < change->todo->len ? change->todo->pdata[change->at] : NULL;
    SvContainer *container = what ? find(change, &error) : NULL;
    gboolean add = what && *what == '+', cut = what && *what == '!';
    const SvDiskRecord *disk = NULL;

    if (container && cut)
        disk = sv_disk_records_find(container->record->disks, what + 1);
    else if (container && !add)
        disk = find_named(container, what + 1, &error);
    if (!what || error) {
        change_end(change, error);
        return;
    }
    if (disk)
        change->alias = g_strdup(disk->alias);
    g_autofree char *label = g_strdup_printf("%s a device %s", add ? "add" : "remove", change->id);
    sv_sequence_start(label, add ? add_steps : remove_steps,
        cut ? SV_SEQUENCE_CONTINUE : SV_SEQUENCE_UNDO, on_changed, change);
}

static Change *change_new(SvContainer *container, SvDone done, gpointer user_data)
{
    Change *change = g_new0(Change, 1);

    change->sandbox = container->sandbox;
    change->id = g_strdup(container->record->id);
    change->todo = g_ptr_array_new_with_free_func(g_free);
    change->done = done;
    change->user_data = user_data;
    container->changing_devices = TRUE;
    return change;
}

void sv_container_undo_cut_devices(SvContainer *container)
{
    /* without its rules the guest's cannot be made anew: the stop takes the disk */
    if (!container->spec)
        return;
    Change *change = change_new(container, NULL, NULL);

    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];

        if (disk->adding)
            g_ptr_array_add(change->todo, g_strconcat("!", disk->alias, NULL));
    }
    next(change);
}

void sv_container_change_devices(SvContainer *container, char *const *add, gsize n_add,
    char *const *remove, gsize n_remove, SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;

    if (container->changing_devices)
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_BUSY,
            "devices of container \"%s\" are being changed already", container->record->id);
    else if (!container->spec)
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_NOT_FOUND,
            "devices of container \"%s\" cannot be changed: its config.json has gone",
            container->record->id);
    if (error) {
        sv_answer_later(done, error, user_data);
        return;
    }
    Change *change = change_new(container, done, user_data);
    for (gsize i = 0; i < n_remove; i++)
        g_ptr_array_add(change->todo, g_strconcat("-", remove[i], NULL));
    for (gsize i = 0; i < n_add; i++)
        g_ptr_array_add(change->todo, g_strconcat("+", add[i], NULL));
    next(change);
}
