/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sandbox's record. */
#include <config.h>

#include "core/record.h"

#include "base/file.h"
#include "base/json.h"
#include "base/names.h"
#include "base/process.h"
#include "core/fields.h"
#include <string.h>

static const SvField fields[] = {
    {"id", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, id)},
    {"root", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, root)},
    {"bootId", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, boot_id)},
    {"token", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, token)},
    {"config", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, config_path)},
    {"netns", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, netns)},
    {"hostNetwork", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvSandboxRecord, host_network)},
    {"netnsId", SV_FIELD_UINT64, G_STRUCT_OFFSET(SvSandboxRecord, netns_id)},
    {"nextLink", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvSandboxRecord, next_link)},
    {"title", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, title)},
    {"hostname", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, hostname)},
    {"nextHandle", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvSandboxRecord, next_handle)},
    {"nextIndex", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvSandboxRecord, next_index)},
    {"nextDisk", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvSandboxRecord, next_disk)},
    {"started", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvSandboxRecord, started)},
    {"monitorRestarts", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvSandboxRecord, monitor_restarts)},
    {"suspended", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvSandboxRecord, suspended)},
    {"ended", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvSandboxRecord, ended)},
    {"vcpus", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvSandboxRecord, vcpus)},
    {"memoryMib", SV_FIELD_UINT64, G_STRUCT_OFFSET(SvSandboxRecord, memory_mib)},
    {"bootMemoryMib", SV_FIELD_UINT64, G_STRUCT_OFFSET(SvSandboxRecord, boot_memory_mib)},
    {"maxMemoryMib", SV_FIELD_UINT64, G_STRUCT_OFFSET(SvSandboxRecord, max_memory_mib)},
    {"maxVcpus", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvSandboxRecord, max_vcpus)},
    {"podCpu", SV_FIELD_INT64, G_STRUCT_OFFSET(SvSandboxRecord, pod_cpu)},
    {"podMemory", SV_FIELD_INT64, G_STRUCT_OFFSET(SvSandboxRecord, pod_memory)},
    {"cgroup", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, cgroup)},
    {"cgroupMade", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, cgroup_made)},
    {"partition", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, partition)},
    {"machinePlaces", SV_FIELD_STRING, G_STRUCT_OFFSET(SvSandboxRecord, machine_places)},
    {"uid", SV_FIELD_INT, G_STRUCT_OFFSET(SvSandboxRecord, uid), -1, G_MAXINT32},
};

static const SvField shm_fields[] = {
    {"name", SV_FIELD_STRING, G_STRUCT_OFFSET(SvShmRecord, name)},
    {"source", SV_FIELD_STRING, G_STRUCT_OFFSET(SvShmRecord, source)},
    {"size", SV_FIELD_UINT64, G_STRUCT_OFFSET(SvShmRecord, size)},
    {"mode", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvShmRecord, mode)},
};

static const SvField link_fields[] = {
    {"name", SV_FIELD_STRING, G_STRUCT_OFFSET(SvLinkRecord, name)},
    {"index", SV_FIELD_UINT32, G_STRUCT_OFFSET(SvLinkRecord, index)},
    {"tap", SV_FIELD_STRING, G_STRUCT_OFFSET(SvLinkRecord, tap)},
    {"alias", SV_FIELD_STRING, G_STRUCT_OFFSET(SvLinkRecord, alias)},
    {"mac", SV_FIELD_STRING, G_STRUCT_OFFSET(SvLinkRecord, mac)},
    {"joined", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvLinkRecord, joined)},
    {"madeQdisc", SV_FIELD_BOOL, G_STRUCT_OFFSET(SvLinkRecord, made_qdisc)},
};

void sv_link_record_free(SvLinkRecord *link)
{
    if (!link)
        return;
    g_free(link->name);
    g_free(link->tap);
    g_free(link->alias);
    g_free(link->mac);
    g_free(link);
}

SvLinkRecord *sv_link_record_copy(const SvLinkRecord *link)
{
    SvLinkRecord *copy = g_memdup2(link, sizeof *link);

    copy->name = g_strdup(link->name);
    copy->tap = g_strdup(link->tap);
    copy->alias = g_strdup(link->alias);
    copy->mac = g_strdup(link->mac);
    return copy;
}

void sv_shm_record_free(SvShmRecord *shm)
{
    if (!shm)
        return;
    g_free(shm->name);
    g_free(shm->source);
    g_free(shm);
}

static SvSandboxRecord *record_alloc(void)
{
    SvSandboxRecord *record = g_new0(SvSandboxRecord, 1);

    record->uid = -1;
    record->shms = g_ptr_array_new_with_free_func((GDestroyNotify)sv_shm_record_free);
    record->links = g_ptr_array_new_with_free_func((GDestroyNotify)sv_link_record_free);
    record->warnings = g_ptr_array_new_with_free_func(g_free);
    record->held_disks = g_ptr_array_new_with_free_func((GDestroyNotify)sv_disk_record_free);
    return record;
}

SvSandboxRecord *sv_sandbox_record_new(const char *id)
{
    SvSandboxRecord *record = record_alloc();

    record->id = g_strdup(id);
    record->boot_id = sv_process_boot_id();
    record->next_handle = 1;
    return record;
}

void sv_sandbox_record_free(SvSandboxRecord *record)
{
    if (!record)
        return;
    g_free(record->id);
    g_free(record->root);
    g_free(record->boot_id);
    g_free(record->token);
    g_free(record->config_path);
    g_free(record->netns);
    g_free(record->title);
    g_free(record->hostname);
    g_free(record->cgroup);
    g_free(record->cgroup_made);
    g_free(record->partition);
    g_free(record->machine_places);
    g_ptr_array_unref(record->shms);
    g_ptr_array_unref(record->links);
    g_ptr_array_unref(record->warnings);
    g_ptr_array_unref(record->held_disks);
    g_free(record);
}

static gboolean read_shms(JsonObject *object, SvSandboxRecord *record, GError **error)
{
    JsonArray *array = NULL;

    if (!sv_json_get_array(object, "shms", "", &array, error))
        return FALSE;
    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        JsonNode *node = json_array_get_element(array, i);
        g_autoptr(SvShmRecord) shm = g_new0(SvShmRecord, 1);

        if (!JSON_NODE_HOLDS_OBJECT(node)) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "shms[%u]: not an object", i);
            return FALSE;
        }
        if (!sv_fields_read(json_node_get_object(node), "shms[]", shm_fields,
                G_N_ELEMENTS(shm_fields), shm, error))
            return FALSE;
        if (!shm->name || !shm->source) {
            g_set_error(
                error, SV_CORE_ERROR, SV_ERR_INVALID, "shms[%u]: name or source is missing", i);
            return FALSE;
        }
        g_ptr_array_add(record->shms, g_steal_pointer(&shm));
    }
    return TRUE;
}

static gboolean read_links(JsonObject *object, SvSandboxRecord *record, GError **error)
{
    JsonArray *array = NULL;

    if (!sv_json_get_array(object, "links", "", &array, error))
        return FALSE;
    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        JsonNode *node = json_array_get_element(array, i);
        g_autoptr(SvLinkRecord) link = g_new0(SvLinkRecord, 1);

        if (!JSON_NODE_HOLDS_OBJECT(node)) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "links[%u]: not an object", i);
            return FALSE;
        }
        if (!sv_fields_read(json_node_get_object(node), "links[]", link_fields,
                G_N_ELEMENTS(link_fields), link, error))
            return FALSE;
        if (!link->name || !link->tap || !link->alias || !link->mac) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
                "links[%u]: name, tap, alias or mac is missing", i);
            return FALSE;
        }
        g_ptr_array_add(record->links, g_steal_pointer(&link));
    }
    return TRUE;
}

static gboolean read_exits(JsonObject *object, SvSandboxRecord *record, GError **error)
{
    JsonObject *exits = NULL;

    if (!sv_json_get_object(object, "exits", "", &exits, error))
        return FALSE;
    for (guint i = 0; exits && i < SV_N_CAUSES; i++) {
        gint64 count = 0;

        if (!sv_json_get_int(exits, sv_cause_name(i), "exits", &count, error))
            return FALSE;
        record->exits[i] = (guint)CLAMP(count, 0, G_MAXUINT32);
    }
    return TRUE;
}

static void write_exits(JsonObject *object, const SvSandboxRecord *record)
{
    JsonObject *exits = json_object_new();

    for (guint i = 0; i < SV_N_CAUSES; i++)
        if (record->exits[i] > 0)
            json_object_set_int_member(exits, sv_cause_name(i), record->exits[i]);
    json_object_set_object_member(object, "exits", exits);
}

static gboolean check_strings(SvSandboxRecord *record, const char *cause, GError **error)
{
    if (!record->id || !record->root) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "id or root: missing");
        return FALSE;
    }
    if (!sv_cause_parse(cause, &record->cause)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "cause: not known");
        return FALSE;
    }
    if (!record->boot_id)
        record->boot_id = g_strdup("");
    for (const char *c = record->token; c && *c; c++)
        if (!g_ascii_isxdigit(*c)) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "token: not hexadecimal");
            return FALSE;
        }
    return sv_id_check(record->id, "sandbox id", error);
}

SvSandboxRecord *sv_sandbox_record_parse(const char *text, gsize len, GError **error)
{
    g_autoptr(SvSandboxRecord) record = record_alloc();
    g_autoptr(JsonNode) root = sv_json_parse(text, len, FALSE, "sandbox record", error);
    const char *cause = "none";

    if (!root)
        return NULL;
    JsonObject *object = json_node_get_object(root);
    if (!sv_fields_check_version(object, error) ||
        !sv_fields_read(object, "", fields, G_N_ELEMENTS(fields), record, error) ||
        !sv_json_get_string(object, "cause", "", &cause, error) ||
        !read_exits(object, record, error) || !read_shms(object, record, error) ||
        !read_links(object, record, error) ||
        !sv_fields_read_strings(object, "warnings", record->warnings, error) ||
        !sv_disk_records_read(object, "heldDisks", record->held_disks, error) ||
        !check_strings(record, cause, error))
        return NULL;
    return g_steal_pointer(&record);
}

char *sv_sandbox_record_text(const SvSandboxRecord *record)
{
    JsonObject *object = json_object_new();
    JsonArray *shms = json_array_new();
    JsonArray *links = json_array_new();
    g_autoptr(JsonNode) root = json_node_init_object(json_node_alloc(), object);

    json_object_set_int_member(object, "version", SV_RECORD_VERSION);
    json_object_set_string_member(object, "cause", sv_cause_name(record->cause));
    sv_fields_write(object, fields, G_N_ELEMENTS(fields), record);
    write_exits(object, record);
    for (guint i = 0; i < record->shms->len; i++) {
        JsonObject *shm = json_object_new();

        sv_fields_write(shm, shm_fields, G_N_ELEMENTS(shm_fields), record->shms->pdata[i]);
        json_array_add_object_element(shms, shm);
    }
    json_object_set_array_member(object, "shms", shms);
    for (guint i = 0; i < record->links->len; i++) {
        JsonObject *link = json_object_new();

        sv_fields_write(link, link_fields, G_N_ELEMENTS(link_fields), record->links->pdata[i]);
        json_array_add_object_element(links, link);
    }
    json_object_set_array_member(object, "links", links);
    sv_fields_write_strings(object, "warnings", record->warnings);
    sv_disk_records_write(object, "heldDisks", record->held_disks);
    json_object_unref(object);
    return sv_json_text(root, FALSE);
}

SvSandboxRecord *sv_sandbox_record_load(const SvPaths *paths, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(SvSandboxRecord) record = NULL;
    g_autoptr(GError) local = NULL;
    gsize len = 0;

    if (!sv_file_read(paths->sandbox_file, SV_RECORD_MAX, &text, &len, &local)) {
        if (sv_error_is(local, SV_ERR_NOT_FOUND)) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "sandbox \"%s\" does not exist",
                paths->sandbox);
            return NULL;
        }
    } else {
        record = sv_sandbox_record_parse(text, len, &local);
    }
    if (record && strcmp(record->id, paths->sandbox) != 0) {
        g_set_error(&local, SV_CORE_ERROR, SV_ERR_INVALID, "it is of another sandbox");
        g_clear_pointer(&record, sv_sandbox_record_free);
    }
    if (!record) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "the record of sandbox \"%s\" is damaged: %s", paths->sandbox, local->message);
        return NULL;
    }
    return g_steal_pointer(&record);
}

gboolean sv_sandbox_record_save(const SvSandboxRecord *record, const SvPaths *paths, GError **error)
{
    g_autofree char *text = sv_sandbox_record_text(record);

    return sv_file_mkdirs(paths->state_dir, 0700, error) &&
        sv_file_write_atomic(paths->sandbox_file, text, strlen(text), 0600, TRUE, error);
}
