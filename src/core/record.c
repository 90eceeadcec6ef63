/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The container's record as a struct, as text and as a file. */
#include <config.h>

#include "core/record.h"

#include "base/file.h"
#include "base/json.h"
#include "base/names.h"
#include "base/process.h"
#include "core/fields.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const SvField fields[] = {
    {"id", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, id)},
    {"sandbox", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, sandbox)},
    {"name", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, name)},
    {"bundle", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, bundle)},
    {"rootfs", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, rootfs)},
    {"ociVersion", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, oci_version)},
    {"bootId", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, boot_id)},
    {"handle", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvRecord, handle)},
    {"index", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvRecord, index)},
    {"frozen", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvRecord, frozen)},
    {"shimPid", SV_FIELD_PID, G_STRUCT_OFFSET(SvRecord, shim_pid)},
    {"shimStart", SV_FIELD_UINT64, G_STRUCT_OFFSET(SvRecord, shim_start)},
    {"created", SV_FIELD_INT64, G_STRUCT_OFFSET(SvRecord, created_us)},
    {"started", SV_FIELD_INT64, G_STRUCT_OFFSET(SvRecord, started_us)},
    {"finished", SV_FIELD_INT64, G_STRUCT_OFFSET(SvRecord, finished_us)},
    {"killAt", SV_FIELD_INT64, G_STRUCT_OFFSET(SvRecord, kill_at_us)},
    {"exitStatus", SV_FIELD_INT, G_STRUCT_OFFSET(SvRecord, exit_status), -1, 255},
    {"oom", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvRecord, oom)},
    {"terminal", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvRecord, terminal)},
    {"stopping", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvRecord, stopping)},
    {"pendingStatus", SV_FIELD_INT, G_STRUCT_OFFSET(SvRecord, pending_status), -1, 255},
    {"error", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, error)},
    {"cgroup", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, cgroup)},
    {"cgroupMade", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, cgroup_made)},
    {"scope", SV_FIELD_STRING, G_STRUCT_OFFSET(SvRecord, scope)},
    {"owner", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvRecord, owner)},
    {"demandCpu", SV_FIELD_INT64, G_STRUCT_OFFSET(SvRecord, demand_cpu)},
    {"demandMemory", SV_FIELD_INT64, G_STRUCT_OFFSET(SvRecord, demand_memory)},
    {"cpuQuota", SV_FIELD_INT64, G_STRUCT_OFFSET(SvRecord, cpu_quota)},
    {"cpuPeriod", SV_FIELD_INT64, G_STRUCT_OFFSET(SvRecord, cpu_period)},
};

static const SvField exec_fields[] = {
    {"handle", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvExecRecord, handle)},
    {"shimPid", SV_FIELD_PID, G_STRUCT_OFFSET(SvExecRecord, shim_pid)},
    {"shimStart", SV_FIELD_UINT64, G_STRUCT_OFFSET(SvExecRecord, shim_start)},
};

static SvRecord *record_alloc(void)
{
    SvRecord *record = g_new0(SvRecord, 1);

    record->exit_status = record->pending_status = -1;
    record->annotations = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    record->execs = g_ptr_array_new_with_free_func(g_free);
    record->disks = g_ptr_array_new_with_free_func((GDestroyNotify)sv_disk_record_free);
    return record;
}

SvRecord *sv_record_new(const char *id)
{
    SvRecord *record = record_alloc();

    record->id = g_strdup(id);
    record->boot_id = sv_process_boot_id();
    record->created_us = g_get_real_time();
    return record;
}

void sv_record_free(SvRecord *record)
{
    if (!record)
        return;
    g_free(record->id);
    g_free(record->sandbox);
    g_free(record->name);
    g_free(record->bundle);
    g_free(record->rootfs);
    g_free(record->oci_version);
    g_free(record->boot_id);
    g_free(record->error);
    g_free(record->cgroup);
    g_free(record->cgroup_made);
    g_free(record->scope);
    g_hash_table_unref(record->annotations);
    g_ptr_array_unref(record->execs);
    g_ptr_array_unref(record->disks);
    g_free(record);
}

static gboolean read_state(JsonObject *object, SvRecord *record, GError **error)
{
    const char *state = NULL, *cause = "none";

    if (!sv_json_get_string(object, "state", "", &state, error) ||
        !sv_json_get_string(object, "cause", "", &cause, error))
        return FALSE;
    if (!state || !sv_state_parse(state, &record->state) || record->state == SV_STATE_GONE) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "state: missing or not known");
        return FALSE;
    }
    if (!sv_cause_parse(cause, &record->cause)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "cause: not known");
        return FALSE;
    }
    return TRUE;
}

static gboolean read_annotations(JsonObject *object, SvRecord *record, GError **error)
{
    JsonObject *annotations = NULL;
    JsonObjectIter iter;
    const char *key = NULL;

    if (!sv_json_get_object(object, "annotations", "", &annotations, error))
        return FALSE;
    if (!annotations)
        return TRUE;
    json_object_iter_init(&iter, annotations);
    while (json_object_iter_next(&iter, &key, NULL)) {
        const char *value = "";

        if (!sv_json_get_string(annotations, key, "annotations", &value, error))
            return FALSE;
        g_hash_table_insert(record->annotations, g_strdup(key), g_strdup(value));
    }
    return TRUE;
}

static gboolean read_execs(JsonObject *object, SvRecord *record, GError **error)
{
    JsonArray *array = NULL;

    if (!sv_json_get_array(object, "execs", "", &array, error))
        return FALSE;
    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        JsonNode *node = json_array_get_element(array, i);
        g_autofree SvExecRecord *exec = g_new0(SvExecRecord, 1);

        if (!JSON_NODE_HOLDS_OBJECT(node)) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "execs[%u]: not an object", i);
            return FALSE;
        }
        if (!sv_fields_read(json_node_get_object(node), "execs[]", exec_fields,
                G_N_ELEMENTS(exec_fields), exec, error))
            return FALSE;
        g_ptr_array_add(record->execs, g_steal_pointer(&exec));
    }
    return TRUE;
}

/* What printing and comparing may rely on. */
static gboolean check_strings(SvRecord *record, GError **error)
{
    if (!record->id) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "id: missing");
        return FALSE;
    }
    if (!record->sandbox)
        record->sandbox = g_strdup(record->id);
    if (!record->bundle)
        record->bundle = g_strdup("");
    if (!record->rootfs)
        record->rootfs = g_strdup("");
    if (!record->boot_id)
        record->boot_id = g_strdup("");
    return sv_id_check(record->id, "container id", error) &&
        sv_id_check(record->sandbox, "sandbox id", error);
}

SvRecord *sv_record_parse(const char *text, gsize len, GError **error)
{
    g_autoptr(SvRecord) record = record_alloc();
    g_autoptr(JsonNode) root = sv_json_parse(text, len, FALSE, "record", error);

    if (!root)
        return NULL;
    JsonObject *object = json_node_get_object(root);
    if (!sv_fields_check_version(object, error) ||
        !sv_fields_read(object, "", fields, G_N_ELEMENTS(fields), record, error) ||
        !read_state(object, record, error) || !read_annotations(object, record, error) ||
        !read_execs(object, record, error) ||
        !sv_disk_records_read(object, "disks", record->disks, error) ||
        !check_strings(record, error))
        return NULL;
    return g_steal_pointer(&record);
}

char *sv_record_text(const SvRecord *record)
{
    JsonObject *object = json_object_new();
    JsonObject *annotations = json_object_new();
    JsonArray *execs = json_array_new();
    g_autoptr(JsonNode) root = json_node_init_object(json_node_alloc(), object);
    GHashTableIter iter;
    gpointer key = NULL, value = NULL;

    json_object_set_int_member(object, "version", SV_RECORD_VERSION);
    json_object_set_string_member(object, "state", sv_state_name(record->state));
    json_object_set_string_member(object, "cause", sv_cause_name(record->cause));
    sv_fields_write(object, fields, G_N_ELEMENTS(fields), record);
    sv_disk_records_write(object, "disks", record->disks);
    for (guint i = 0; i < record->execs->len; i++) {
        JsonObject *exec = json_object_new();

        sv_fields_write(exec, exec_fields, G_N_ELEMENTS(exec_fields), record->execs->pdata[i]);
        json_array_add_object_element(execs, exec);
    }
    json_object_set_array_member(object, "execs", execs);
    g_hash_table_iter_init(&iter, record->annotations);
    while (g_hash_table_iter_next(&iter, &key, &value))
        json_object_set_string_member(annotations, key, value);
    json_object_set_object_member(object, "annotations", annotations);
    json_object_unref(object);
    return sv_json_text(root, FALSE);
}

/* ---- as a file */

SvRecord *sv_record_load(const char *root, const char *id, GError **error)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = NULL;
    g_autofree char *text = NULL;
    g_autoptr(SvRecord) record = NULL;
    g_autoptr(GError) local = NULL;
    struct stat st;
    gsize len = 0;
    gboolean found;

    if (!sv_id_check(id, "container id", error))
        return NULL;
    dir = sv_paths_container_dir(root, id);
    path = sv_paths_container_file(root, id);
    found = sv_file_read(path, SV_RECORD_MAX, &text, &len, &local);
    if (!found && sv_error_is(local, SV_ERR_NOT_FOUND)) {
        if (lstat(dir, &st) != 0 && errno == ENOENT) {
            g_set_error(
                error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "container \"%s\" does not exist", id);
            return NULL;
        }
        /* it may have come between the two looks */
        g_clear_error(&local);
        found = sv_file_read(path, SV_RECORD_MAX, &text, &len, &local);
    }
    if (found)
        record = sv_record_parse(text, len, &local);
    if (record && strcmp(record->id, id) != 0) {
        g_set_error(&local, SV_CORE_ERROR, SV_ERR_INVALID, "it is of another container");
        g_clear_pointer(&record, sv_record_free);
    }
    if (!record) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "the record of container \"%s\" is damaged: %s", id, local->message);
        return NULL;
    }
    return g_steal_pointer(&record);
}

static gboolean write_file(const SvRecord *record, const char *folder, GError **error)
{
    g_autofree char *path = g_build_filename(folder, SV_PATHS_RECORD, NULL);
    g_autofree char *text = sv_record_text(record);
    gsize len = strlen(text);

    if (len > SV_RECORD_MAX) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_LIMIT,
            "the record of container \"%s\" is too big (%zu bytes): too many annotations?",
            record->id, len);
        return FALSE;
    }
    if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
        sv_error_set_errno(error, SV_CORE_ERROR, errno, "cannot make the folder \"%s\"", folder);
        return FALSE;
    }
    return sv_file_write_atomic(path, text, len, 0600, TRUE, error);
}

gboolean sv_record_save(const SvRecord *record, const char *root, GError **error)
{
    g_autofree char *folder = sv_paths_container_dir(root, record->id);

    return write_file(record, folder, error);
}

void sv_record_drop_entry(const char *root, const char *sandbox)
{
    g_autofree char *entry = sv_paths_entry_dir(root, sandbox);
    g_autoptr(GError) error = NULL;

    if (!sv_file_remove_tree(entry, &error))
        g_warning("ignoring: %s", error->message);
}

gboolean sv_record_create(const SvRecord *record, const char *root, GError **error)
{
    if (!sv_id_check(record->id, "container id", error) ||
        !sv_id_check(record->sandbox, "sandbox id", error))
        return FALSE;
    g_autofree char *folder = sv_paths_container_dir(root, record->id);
    g_autofree char *entry = sv_paths_entry_dir(root, record->sandbox);

    sv_record_drop_entry(root, record->sandbox);
    if (write_file(record, entry, error)) {
        if (renameat2(AT_FDCWD, entry, AT_FDCWD, folder, RENAME_NOREPLACE) == 0)
            return TRUE;
        if (errno == EEXIST)
            g_set_error(error, SV_CORE_ERROR, SV_ERR_EXISTS,
                "container with id \"%s\" already exists", record->id);
        else
            sv_error_set_errno(
                error, SV_CORE_ERROR, errno, "cannot make the folder \"%s\"", folder);
    }
    sv_record_drop_entry(root, record->sandbox);
    return FALSE;
}

gboolean sv_record_remove(const char *root, const char *sandbox, const char *id, GError **error)
{
    if (!sv_id_check(id, "container id", error) || !sv_id_check(sandbox, "sandbox id", error))
        return FALSE;
    g_autofree char *folder = sv_paths_container_dir(root, id);
    g_autofree char *entry = sv_paths_entry_dir(root, sandbox);

    sv_record_drop_entry(root, sandbox);
    /* what cannot be moved says why when it is removed where it is */
    if (rename(folder, entry) < 0)
        return sv_file_remove_tree(folder, error);
    sv_record_drop_entry(root, sandbox);
    return TRUE;
}
