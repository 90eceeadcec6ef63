/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Walks the list of the specification's fields (config-fields): what it says of each is what happens to that
 * field of config.json, which has them all, and what docs/specification.md says. */
#include <config.h>

#include "base/json.h"
#include "core/guestspec.h"
#include "core/lifecycle.h"

#include <string.h>

typedef struct {
    char *path, *treatment, *note;
} Field;

static void field_free(gpointer data)
{
    Field *field = data;
    g_free(field->path);
    g_free(field->treatment);
    g_free(field->note);
    g_free(field);
}

static char *read_source(const char *name)
{
    g_autofree char *path = g_build_filename(g_getenv("G_TEST_SRCDIR"), name, NULL);
    g_autoptr(GError) error = NULL;
    char *text = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return text;
}

static GPtrArray *read_fields(void)
{
    GPtrArray *fields = g_ptr_array_new_with_free_func(field_free);
    g_autofree char *text = read_source("conformance/config-fields");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (!**line || **line == '#')
            continue;
        g_auto(GStrv) words = g_strsplit(*line, " ", 3);
        g_assert_cmpuint(g_strv_length(words), >=, 2);
        Field *field = g_new0(Field, 1);
        field->path = g_strdup(words[0]);
        field->treatment = g_strdup(words[1]);
        field->note = g_strdup(words[2] ? words[2] : "");
        g_ptr_array_add(fields, field);
    }
    g_assert_cmpuint(fields->len, >, 200);
    return fields;
}

static gboolean is(const Field *field, const char *treatment)
{
    return g_str_equal(field->treatment, treatment);
}

/* The node at "a.b[].c" (first elements), NULL. With @parent: the object that has it, for removing. */
static JsonNode *find(JsonNode *node, const char *path, JsonObject **parent, char **name)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    for (char **part = parts; *part; part++) {
        gsize len = strlen(*part);
        gboolean array = g_str_has_suffix(*part, "[]");
        g_autofree char *key = g_strndup(*part, array ? len - 2 : len);
        if (!JSON_NODE_HOLDS_OBJECT(node))
            return NULL;
        JsonObject *object = json_node_get_object(node);
        node = json_object_get_member(object, key);
        if (!node)
            return NULL;
        if (parent && !part[1]) {
            *parent = object;
            *name = g_steal_pointer(&key);
        }
        if (array &&
            (!JSON_NODE_HOLDS_ARRAY(node) || !json_array_get_length(json_node_get_array(node))))
            return NULL;
        if (array)
            node = json_array_get_element(json_node_get_array(node), 0);
    }
    return node;
}

/* config.json without the refused fields, but @kept. */
static JsonNode *sample(GPtrArray *fields, const char *kept)
{
    g_autofree char *text = read_source("conformance/config.json");
    g_autoptr(GError) error = NULL;
    JsonNode *root = sv_json_parse(text, -1, FALSE, "config.json", &error);
    g_assert_no_error(error);
    for (guint i = 0; i < fields->len; i++) {
        const Field *field = fields->pdata[i];
        JsonObject *parent = NULL;
        g_autofree char *name = NULL;
        if (!is(field, "refused") || (kept && g_str_has_prefix(field->path, kept)))
            continue;
        if (find(root, field->path, &parent, &name))
            json_object_remove_member(parent, name);
    }
    if (g_strcmp0(kept, "linux.timeOffsets") == 0) {
        JsonObject *ns = json_object_new();
        json_object_set_string_member(ns, "type", "time");
        json_array_add_object_element(
            json_node_get_array(find(root, "linux.namespaces", NULL, NULL)), ns);
    }
    return root;
}

static const char *join(const char *type, const char *path, gpointer user_data, GError **error)
{
    return "/proc/7/ns/pid";
}

static SvGuestSpec *build(JsonNode *config, GError **error)
{
    g_autofree char *text = sv_json_text(config, FALSE);
    g_autoptr(GHashTable) devices = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_insert(devices, (gpointer) "b:8:0", (gpointer) "b:253:16");
    g_autoptr(SvSpec) spec = sv_spec_parse(text, strlen(text), "/bundle", error);
    SvSourceInfo source = {SV_SOURCE_BIND, TRUE, NULL, NULL};
    SvGuestSpecParams params = {.container_id = "c",
        .root_path = "/root",
        .sources = &source,
        .cpus = 1,
        .join_namespace = join,
        .guest_devices = devices};
    return spec ? sv_guest_spec_build(spec, &params, error) : NULL;
}

static gboolean warned_of(const SvGuestSpec *guest, const char *path)
{
    for (guint i = 0; i < guest->warnings->len; i++) {
        const char *text = guest->warnings->pdata[i];
        g_autofree char *of = g_strndup(text, strcspn(text, ":"));
        if (g_str_has_prefix(path, of))
            return TRUE;
    }
    return FALSE;
}

static void test_fields(void)
{
    g_autoptr(GPtrArray) fields = read_fields();
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) config = sample(fields, NULL);
    g_autoptr(SvGuestSpec) guest = build(config, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < fields->len; i++) {
        const Field *field = fields->pdata[i];
        JsonNode *given = find(config, field->path, NULL, NULL);
        JsonNode *got = find(guest->config, field->path, NULL, NULL);
        g_test_message("%s: %s", field->path, field->treatment);
        g_assert_true(given || is(field, "refused"));
        if (is(field, "guest")) {
            g_assert_nonnull(got);
        } else if (is(field, "unified")) {
            JsonNode *unified = find(guest->config, "linux.resources.unified", NULL, NULL);
            g_assert_null(got);
            g_assert_true(json_object_has_member(json_node_get_object(unified), field->note));
        } else if (is(field, "warned")) {
            g_assert_null(got);
            g_assert_true(warned_of(guest, field->path));
        } else if (is(field, "silent")) {
            /* what has no effect may be passed on, but for cgroups: v1 names would be errors */
            if (g_str_has_prefix(field->path, "linux.resources."))
                g_assert_null(got);
        } else {
            g_assert_true(is(field, "host") || is(field, "refused"));
        }
    }
}

static void test_refused(void)
{
    g_autoptr(GPtrArray) fields = read_fields();
    const char *last = NULL;
    for (guint i = 0; i < fields->len; i++) {
        const Field *field = fields->pdata[i];
        g_autoptr(GError) error = NULL;
        if (!is(field, "refused") || (last && g_str_has_prefix(field->path, last)))
            continue;
        last = field->path;
        g_autoptr(JsonNode) config = sample(fields, field->path);
        g_autoptr(SvGuestSpec) guest = build(config, &error);
        g_assert_null(guest);
        g_assert_error(error, SV_CORE_ERROR, SV_ERR_UNSUPPORTED);
    }
    g_assert_nonnull(last);
}

static void test_document(void)
{
    static const struct {
        const char *treatment, *text;
    } words[] = {{"host", "on the host"}, {"guest", "in the guest"}, {"unified", "in the guest"},
        {"warned", "ignored, with a warning"}, {"silent", "ignored"}, {"refused", "refused"}};
    g_autoptr(GPtrArray) fields = read_fields();
    g_autofree char *text = read_source("../docs/specification.md");
    for (guint i = 0; i < fields->len; i++) {
        const Field *field = fields->pdata[i];
        for (gsize w = 0; w < G_N_ELEMENTS(words); w++) {
            g_autofree char *row =
                g_strdup_printf("| `%s` | %s | %s |\n", field->path, words[w].text, field->note);
            if (!is(field, words[w].treatment) || strstr(text, row))
                continue;
            g_test_message("docs/specification.md lacks: %s", row);
            g_test_fail();
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/specification/fields", test_fields);
    g_test_add_func("/specification/refused", test_refused);
    g_test_add_func("/specification/document", test_document);
    return g_test_run();
}
