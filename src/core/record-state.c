/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The record's state: the one setter, what queries answer, the list of all. */
#include <config.h>

#include "core/record.h"

#include "base/json.h"
#include "base/names.h"
#include "base/process.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* What the setter changes, for undoing it. */
typedef struct {
    SvState state;
    gint64 started_us, finished_us;
    int exit_status, pending_status;
    gboolean stopping, frozen;
} Changed;

static Changed changed_get(const SvRecord *record)
{
    return (Changed){record->state, record->started_us, record->finished_us, record->exit_status,
        record->pending_status, record->stopping, record->frozen};
}

static void changed_restore(SvRecord *record, const Changed *old)
{
    record->state = old->state;
    record->started_us = old->started_us;
    record->finished_us = old->finished_us;
    record->exit_status = old->exit_status;
    record->pending_status = old->pending_status;
    record->stopping = old->stopping;
    record->frozen = old->frozen;
}

static void enter_state(SvRecord *record, SvState next)
{
    record->state = next;
    if (next == SV_STATE_RUNNING && record->started_us == 0)
        record->started_us = g_get_real_time();
    if (next != SV_STATE_STOPPED)
        return;
    if (record->finished_us == 0)
        record->finished_us = g_get_real_time();
    if (record->exit_status < 0)
        record->exit_status = record->pending_status >= 0 ? record->pending_status : 255;
    record->pending_status = -1;
    record->stopping = record->frozen = FALSE;
}

gboolean sv_record_set_state(SvRecord *record, SvEvent event, const char *root,
    SvRecordNotify notify, gpointer user_data, GError **error)
{
    const Changed old = changed_get(record);
    SvState next = record->state;

    if (!sv_lifecycle_next(record->state, event, &next, error))
        return FALSE;
    if (next == record->state)
        return TRUE;
    enter_state(record, next);
    if (next == SV_STATE_GONE ? !sv_record_remove(root, record->sandbox, record->id, error)
                              : !sv_record_save(record, root, error)) {
        changed_restore(record, &old);
        return FALSE;
    }
    g_log_structured(G_LOG_DOMAIN, G_LOG_LEVEL_INFO, "SANDBOX",
        record->sandbox ? record->sandbox : record->id, "CONTAINER", record->id, "PHASE",
        sv_event_name(event), "MESSAGE", "container %s: %s -> %s (%s)", record->id,
        sv_state_name(old.state), sv_state_name(next), sv_event_name(event));
    if (notify)
        notify(record, old.state, user_data);
    return TRUE;
}

static gboolean of_this_boot(const SvRecord *record)
{
    g_autofree char *boot = sv_process_boot_id();

    return !record->boot_id || strcmp(record->boot_id, boot) == 0;
}

SvState sv_record_effective_state(const SvRecord *record)
{
    switch (record->state) {
    case SV_STATE_CREATING:
        return of_this_boot(record) ? SV_STATE_CREATING : SV_STATE_STOPPED;
    case SV_STATE_READY:
    case SV_STATE_RUNNING:
    case SV_STATE_PAUSED:
        return sv_process_is(record->shim_pid, record->shim_start, record->boot_id)
            ? record->state
            : SV_STATE_STOPPED;
    default:
        return record->state;
    }
}

char *sv_time_rfc3339(gint64 real_us)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(real_us / G_USEC_PER_SEC);
    g_autofree char *seconds = time ? g_date_time_format(time, "%Y-%m-%dT%H:%M:%S") : NULL;

    if (!seconds)
        return g_strdup("1970-01-01T00:00:00Z");
    return g_strdup_printf("%s.%06dZ", seconds, (int)(real_us % G_USEC_PER_SEC));
}

JsonNode *sv_record_oci_state_node(const SvRecord *record, const char *status, pid_t pid)
{
    JsonObject *object = json_object_new();
    JsonObject *annotations = json_object_new();
    JsonNode *root = json_node_init_object(json_node_alloc(), object);
    g_autofree char *created = sv_time_rfc3339(record->created_us);
    g_autofree char *owner =
        record->owner == 0 ? g_strdup("root") : g_strdup_printf("%u", (guint)record->owner);
    GHashTableIter iter;
    gpointer key = NULL, value = NULL;

    if (!status) {
        SvState state = sv_record_effective_state(record);

        status = sv_state_oci_name(state);
        pid = state == SV_STATE_STOPPED || state == SV_STATE_GONE ? 0 : record->shim_pid;
    }
    json_object_set_string_member(
        object, "ociVersion", record->oci_version ? record->oci_version : SV_RECORD_OCI_VERSION);
    json_object_set_string_member(object, "id", record->id);
    json_object_set_int_member(object, "pid", pid);
    json_object_set_string_member(object, "status", status);
    json_object_set_string_member(object, "bundle", record->bundle ? record->bundle : "");
    json_object_set_string_member(object, "rootfs", record->rootfs ? record->rootfs : "");
    json_object_set_string_member(object, "created", created);
    g_hash_table_iter_init(&iter, record->annotations);
    while (g_hash_table_iter_next(&iter, &key, &value))
        json_object_set_string_member(annotations, key, value);
    json_object_set_object_member(object, "annotations", annotations);
    json_object_set_string_member(object, "owner", owner);
    json_object_unref(object);
    return root;
}

char *sv_record_oci_state(const SvRecord *record, const char *status, pid_t pid)
{
    g_autoptr(JsonNode) root = sv_record_oci_state_node(record, status, pid);

    return sv_json_text(root, TRUE);
}

/* ---- all of them */

static gint compare_ids(gconstpointer a, gconstpointer b)
{
    const SvRecord *const *left = a, *const *right = b;

    return strcmp((*left)->id, (*right)->id);
}

static void list_one(const char *root, const char *name, GPtrArray *records, GPtrArray *warnings)
{
    g_autoptr(GError) error = NULL;
    SvRecord *record = sv_record_load(root, name, &error);

    if (record) {
        g_ptr_array_add(records, record);
        return;
    }
    /* Removed since the folder was read. */
    if (sv_error_is(error, SV_ERR_NOT_FOUND) || !warnings)
        return;
    g_autofree char *text = sv_printable(error->message, 1024);
    g_ptr_array_add(warnings, g_strdup_printf("ignoring: %s", text));
}

GPtrArray *sv_record_list(const char *root, GPtrArray *warnings, GError **error)
{
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func((GDestroyNotify)sv_record_free);
    g_autoptr(GError) local = NULL;
    g_autoptr(GDir) dir = g_dir_open(root, 0, &local);
    const char *name = NULL;

    if (!dir) {
        if (g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOENT))
            return g_steal_pointer(&records);
        g_set_error(error, SV_CORE_ERROR, SV_ERR_IO, "cannot read the state folder \"%s\": %s",
            root, local->message);
        return NULL;
    }
    while ((name = g_dir_read_name(dir)))
        if (name[0] != '.')
            list_one(root, name, records, warnings);
    g_ptr_array_sort(records, compare_ids);
    return g_steal_pointer(&records);
}
