/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Block devices given to and taken from a container that runs. Whatever can be refused comes first: the nodes
 * of those that shall go are taken, the new ones added; then the caller changes what else it has to, and says
 * whether all of it stays. Only then disks leave. One after the other, each a row of steps that are undone
 * when one fails. The container may go meanwhile: it is looked up anew each time. */
#include "core/disks.h"

#include "core/device-rules.h"
#include "core/guestspec-private.h"
#include <stdlib.h>
#include <string.h>

#define NODE_MODE 0660

typedef enum {
    TASK_HIDE, /* the node of one that shall go */
    TASK_SHOW, /* undoes that */
    TASK_ADD,
    TASK_REMOVE, /* also undoes an add */
} TaskKind;

typedef struct {
    TaskKind kind;
    char *what; /* of an add: what was asked for, else the disk's alias */
} Task;

struct SvDeviceChange {
    SvSandbox *sandbox;
    char *id;
    GPtrArray *tasks; /* Task */
    guint at;
    char *alias; /* of the disk in work */
    GPtrArray *removed, *hidden,
        *added; /* aliases: that shall go; whose node is away; that are new */
    GError *error; /* it is being undone because of that; when decided: the first failure */
    gboolean decided; /* it stays */
    SvDone done;
    gpointer user_data;
};
typedef SvDeviceChange Change;

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

static gboolean is_listed(const GPtrArray *aliases, const char *alias)
{
    return g_ptr_array_find_with_equal_func((GPtrArray *)aliases, alias, g_str_equal, NULL);
}

static gboolean claim(Change *change, const char *text, GError **error)
{
    SvContainer *container = find(change, error);
    g_autoptr(SvDiskRecord) disk = container ? sv_disks_plan_device(container, text, error) : NULL;

    if (!disk)
        return FALSE;
    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *other = container->record->disks->pdata[i];

        if (g_strcmp0(other->path, disk->path) == 0 && !is_listed(change->removed, other->alias)) {
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

    if (claim(change, ((const Task *)change->tasks->pdata[change->at])->what, &error))
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

/* As it was made, when it is in the spec. */
static const SvSpecDevice *find_spec(const SvContainer *container, const SvDiskRecord *disk)
{
    for (guint i = 0; container->spec && i < container->spec->devices->len; i++) {
        const SvSpecDevice *device = container->spec->devices->pdata[i];

        if (!disk->access && g_str_equal(device->path, disk->path))
            return device;
    }
    return NULL;
}

static void fill_attributes(const SvSpecDevice *device, Sandvirt__V1__NodeRequest *message)
{
    message->mode = NODE_MODE;
    if (!device)
        return;
    if (device->mode >= 0)
        message->mode = (guint32)device->mode & 07777;
    message->uid = device->uid >= 0 ? (guint32)device->uid : 0;
    message->gid = device->gid >= 0 ? (guint32)device->gid : 0;
}

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
    fill_attributes(find_spec(container, disk), &message);
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

/* The guest's numbers: whoever has to take the node away again needs them. */
static void step_save_numbers(SvSequence *seq, gpointer user_data)
{
    Change *change = user_data;
    SvContainer *container = NULL;
    GError *error = NULL;

    if (find_disk(change, &container, &error) && sv_container_save(container, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

static const SvStep add_steps[] = {
    {"claim", step_claim, undo_claim, 0},
    {"plug", step_plug, step_unplug, 0},
    {"numbers", step_save_numbers, NULL, 0},
    {"allow", step_allow, step_deny, 0},
    {"node", step_add_node, step_remove_node, 0},
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

static const SvStep hide_steps[] = {
    {"node", step_remove_node, step_add_node, 0},
    {NULL, NULL, NULL, 0},
};

static const SvStep show_steps[] = {
    {"node", step_add_node, NULL, 0},
    {NULL, NULL, NULL, 0},
};

static const struct {
    const char *label;
    const SvStep *steps;
} kinds[] = {
    [TASK_HIDE] = {"take the node of a device", hide_steps},
    [TASK_SHOW] = {"give back the node of a device", show_steps},
    [TASK_ADD] = {"add a device", add_steps},
    [TASK_REMOVE] = {"remove a device", remove_steps},
};

/* ---- tasks */

static void task_free(gpointer data)
{
    Task *task = data;

    g_free(task->what);
    g_free(task);
}

static void add_task(Change *change, TaskKind kind, const char *what)
{
    Task *task = g_new0(Task, 1);

    task->kind = kind;
    task->what = g_strdup(what);
    g_ptr_array_add(change->tasks, task);
}

static void clear_tasks(Change *change)
{
    g_ptr_array_set_size(change->tasks, 0);
    change->at = 0;
}

/* Answers and frees. */
static void change_end(Change *change, const GError *error)
{
    SvContainer *container = sv_sandbox_find(change->sandbox, change->id, NULL);

    if (container)
        container->changing_devices = FALSE;
    sv_answer_later(change->done, error, change->user_data);
    g_free(change->id);
    g_free(change->alias);
    g_ptr_array_unref(change->tasks);
    g_ptr_array_unref(change->removed);
    g_ptr_array_unref(change->hidden);
    g_ptr_array_unref(change->added);
    g_clear_error(&change->error);
    g_free(change);
}

/* All of it, the last first; @error is the answer. */
static void undo(Change *change, const GError *error)
{
    change->error = g_error_copy(error);
    clear_tasks(change);
    for (guint i = change->added->len; i > 0; i--)
        add_task(change, TASK_REMOVE, change->added->pdata[i - 1]);
    for (guint i = change->hidden->len; i > 0; i--)
        add_task(change, TASK_SHOW, change->hidden->pdata[i - 1]);
    next(change);
}

static void on_task_done(SvSequence *seq, const GError *error, gpointer user_data)
{
    Change *change = user_data;
    const Task *task = change->tasks->pdata[change->at++];
    g_autofree char *alias = g_steal_pointer(&change->alias);

    if (!error && task->kind == TASK_ADD)
        g_ptr_array_add(change->added, g_steal_pointer(&alias));
    else if (!error && task->kind == TASK_HIDE)
        g_ptr_array_add(change->hidden, g_steal_pointer(&alias));
    /* what is decided is done as far as it can be */
    if (error && change->decided && !change->error)
        change->error = g_error_copy(error);
    if (!error || change->error)
        next(change);
    else
        undo(change, error);
}

/* All tasks are done. */
static void tasks_end(Change *change)
{
    if (change->error || change->decided)
        change_end(change, change->error);
    else
        sv_answer_later(change->done, NULL, change->user_data);
}

static void next(Change *change)
{
    const Task *task = change->at < change->tasks->len ? change->tasks->pdata[change->at] : NULL;
    gboolean keeps_on = change->error && !change->decided; /* it is being undone */

    if (!task) {
        tasks_end(change);
        return;
    }
    if (task->kind != TASK_ADD)
        change->alias = g_strdup(task->what);
    g_autofree char *label = g_strdup_printf("%s %s", kinds[task->kind].label, change->id);
    sv_sequence_start(label, kinds[task->kind].steps,
        keeps_on ? SV_SEQUENCE_CONTINUE : SV_SEQUENCE_UNDO, on_task_done, change);
}

/* ---- for update */

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

static Change *change_new(SvContainer *container, SvDone done, gpointer user_data)
{
    Change *change = g_new0(Change, 1);

    change->sandbox = container->sandbox;
    change->id = g_strdup(container->record->id);
    change->tasks = g_ptr_array_new_with_free_func(task_free);
    change->removed = g_ptr_array_new_with_free_func(g_free);
    change->hidden = g_ptr_array_new_with_free_func(g_free);
    change->added = g_ptr_array_new_with_free_func(g_free);
    change->done = done;
    change->user_data = user_data;
    container->changing_devices = TRUE;
    return change;
}

void sv_container_undo_cut_devices(SvContainer *container)
{
    g_autoptr(GError) cut = g_error_new_literal(SV_CORE_ERROR, SV_ERR_CANCELLED, "cut off");

    /* without its rules the guest's cannot be made anew: the stop takes the disk */
    if (!container->spec)
        return;
    Change *change = change_new(container, NULL, NULL);

    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];

        if (disk->adding)
            g_ptr_array_add(change->added, g_strdup(disk->alias));
    }
    undo(change, cut);
}

static gboolean list_removed(
    const SvContainer *container, const SvDeviceList *list, GPtrArray *removed, GError **error)
{
    for (gsize i = 0; i < list->n_remove; i++) {
        const SvDiskRecord *disk = find_named(container, list->remove[i], error);

        if (!disk)
            return FALSE;
        if (!is_listed(removed, disk->alias))
            g_ptr_array_add(removed, g_strdup(disk->alias));
    }
    return TRUE;
}

SvDeviceChange *sv_container_change_devices(
    SvContainer *container, const SvDeviceList *list, SvDone done, gpointer user_data)
{
    g_autoptr(GPtrArray) removed = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;

    if (container->changing_devices)
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_BUSY,
            "devices of container \"%s\" are being changed already", container->record->id);
    else if (!container->spec)
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_NOT_FOUND,
            "devices of container \"%s\" cannot be changed: its config.json has gone",
            container->record->id);
    if (error || !list_removed(container, list, removed, &error)) {
        sv_answer_later(done, error, user_data);
        return NULL;
    }
    Change *change = change_new(container, done, user_data);
    g_ptr_array_unref(change->removed);
    change->removed = g_steal_pointer(&removed);
    for (guint i = 0; i < change->removed->len; i++)
        add_task(change, TASK_HIDE, change->removed->pdata[i]);
    for (gsize i = 0; i < list->n_add; i++)
        add_task(change, TASK_ADD, list->add[i]);
    next(change);
    return change;
}

void sv_device_change_keep(SvDeviceChange *change, SvDone done, gpointer user_data)
{
    SvContainer *container = sv_sandbox_find(change->sandbox, change->id, NULL);
    g_autoptr(GError) error = NULL;

    change->done = done;
    change->user_data = user_data;
    for (guint i = 0; container && i < change->added->len; i++) {
        SvDiskRecord *disk =
            sv_disk_records_find(container->record->disks, change->added->pdata[i]);

        if (disk)
            disk->adding = FALSE;
    }
    if (container && !sv_container_save(container, &error)) {
        undo(change, error);
        return;
    }
    sv_sandbox_touch(change->sandbox);
    change->decided = TRUE;
    clear_tasks(change);
    for (guint i = 0; i < change->removed->len; i++)
        add_task(change, TASK_REMOVE, change->removed->pdata[i]);
    next(change);
}

void sv_device_change_undo(
    SvDeviceChange *change, const GError *why, SvDone done, gpointer user_data)
{
    change->done = done;
    change->user_data = user_data;
    undo(change, why);
}
