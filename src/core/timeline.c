/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/timeline.h"

#include "base/file.h"
#include "base/json.h"
#include "core/fields.h"
#include "core/record.h"

#include <string.h>

#define FILE_NAME "timeline.json"
#define FILE_MAX 65536
#define PHASES_MAX 200

static void phase_free(gpointer data)
{
    SvPhase *phase = data;
    g_free(phase->name);
    g_free(phase);
}

SvTimeline *sv_timeline_new(const char *id)
{
    SvTimeline *timeline = g_new0(SvTimeline, 1);
    timeline->id = g_strdup(id);
    timeline->phases = g_ptr_array_new_with_free_func(phase_free);
    return timeline;
}

void sv_timeline_free(SvTimeline *timeline)
{
    if (!timeline)
        return;
    g_free(timeline->id);
    g_ptr_array_unref(timeline->phases);
    g_free(timeline);
}

static gint compare(gconstpointer a, gconstpointer b)
{
    const SvPhase *const *one = a, *const *two = b;
    return (*one)->start_us < (*two)->start_us ? -1 : (*one)->start_us > (*two)->start_us;
}

void sv_timeline_add(SvTimeline *timeline, const char *name, gint64 start_us, gint64 end_us)
{
    SvPhase *phase = g_new0(SvPhase, 1);
    phase->name = g_strdup(name);
    phase->start_us = MAX(start_us, 0);
    phase->length_us = MAX(end_us - phase->start_us, 0);
    timeline->total_us = MAX(timeline->total_us, phase->start_us + phase->length_us);
    g_ptr_array_add(timeline->phases, phase);
    g_ptr_array_sort(timeline->phases, compare);
}

static char *file_of(const char *root, const char *id)
{
    g_autofree char *folder = sv_paths_container_dir(root, id);
    return g_build_filename(folder, FILE_NAME, NULL);
}

gboolean sv_timeline_save(const SvTimeline *timeline, const char *root, GError **error)
{
    JsonObject *object = json_object_new();
    JsonArray *phases = json_array_new();
    g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), object);
    g_autofree char *path = file_of(root, timeline->id);
    json_object_set_int_member(object, "version", SV_RECORD_VERSION);
    json_object_set_int_member(object, "totalUs", timeline->total_us);
    json_object_set_boolean_member(object, "machine", timeline->machine);
    for (guint i = 0; i < timeline->phases->len; i++) {
        const SvPhase *phase = timeline->phases->pdata[i];
        JsonObject *item = json_object_new();
        json_object_set_string_member(item, "name", phase->name);
        json_object_set_int_member(item, "startUs", phase->start_us);
        json_object_set_int_member(item, "lengthUs", phase->length_us);
        json_array_add_object_element(phases, item);
    }
    json_object_set_array_member(object, "phases", phases);
    json_object_unref(object);
    g_autofree char *text = sv_json_text(node, FALSE);
    return sv_file_write_atomic(path, text, strlen(text), 0600, FALSE, error);
}

static gboolean read_phases(SvTimeline *timeline, JsonArray *phases, GError **error)
{
    for (guint i = 0; phases && i < MIN(json_array_get_length(phases), PHASES_MAX); i++) {
        JsonNode *node = json_array_get_element(phases, i);
        const char *name = NULL;
        gint64 start_us = 0, length_us = 0;
        if (!JSON_NODE_HOLDS_OBJECT(node)) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "phases[%u]: not an object", i);
            return FALSE;
        }
        JsonObject *item = json_node_get_object(node);
        if (!sv_json_get_string(item, "name", "phases[]", &name, error) ||
            !sv_json_get_int(item, "startUs", "phases[]", &start_us, error) ||
            !sv_json_get_int(item, "lengthUs", "phases[]", &length_us, error))
            return FALSE;
        start_us = CLAMP(start_us, 0, G_MAXINT64 / 4);
        sv_timeline_add(
            timeline, name ? name : "?", start_us, start_us + CLAMP(length_us, 0, G_MAXINT64 / 4));
    }
    return TRUE;
}

SvTimeline *sv_timeline_load(const char *root, const char *id, GError **error)
{
    g_autoptr(SvTimeline) timeline = sv_timeline_new(id);
    g_autofree char *path = file_of(root, id);
    g_autoptr(JsonNode) node = sv_json_load(path, FILE_MAX, error);
    JsonArray *phases = NULL;
    if (!node)
        return NULL;
    JsonObject *object = json_node_get_object(node);
    if (!sv_fields_check_version(object, error) ||
        !sv_json_get_bool(object, "machine", "", &timeline->machine, error) ||
        !sv_json_get_array(object, "phases", "", &phases, error) ||
        !read_phases(timeline, phases, error))
        return NULL;
    return g_steal_pointer(&timeline);
}
