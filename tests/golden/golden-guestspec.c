/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* config.json of a bundle to config.json of the guest. tests/golden/guestspec/NAME.in.json holds the
 * bundle's ("config") and what the caller found out ("params"); NAME.out.json the guest's, the binds,
 * the machine's sysctls and the warnings, or the error. SV_REGENERATE=1 writes the latter anew (read the
 * difference before committing it). */
#include <config.h>

#include "base/json.h"
#include "core/guestspec.h"
#include <string.h>

typedef struct {
    JsonNode *input;
    SvSpec *spec;
    SvGuestSpecParams params;
    JsonObject *join; /* type -> path in the guest */
} Case;

static const char *join_namespace(
    const char *type, const char *path, gpointer user_data, GError **error)
{
    JsonObject *join = user_data;

    if (!join || !json_object_has_member(join, type))
        return NULL;
    return json_object_get_string_member(join, type);
}

static const char *string_of(JsonObject *object, const char *name)
{
    return json_object_get_string_member_with_default(object, name, NULL);
}

static SvSourceKind kind_of(const char *kind)
{
    if (g_strcmp0(kind, "shm") == 0)
        return SV_SOURCE_SHM;
    if (g_strcmp0(kind, "block") == 0)
        return SV_SOURCE_BLOCK;
    if (g_strcmp0(kind, "guest") == 0)
        return SV_SOURCE_GUEST;
    return SV_SOURCE_BIND;
}

static void load_sources(Case *c, JsonObject *sources)
{
    c->params.sources = g_new0(SvSourceInfo, c->spec->mounts->len + 1);
    for (guint i = 0; sources && i < c->spec->mounts->len; i++) {
        g_autofree char *key = g_strdup_printf("%u", i);

        if (!json_object_has_member(sources, key))
            continue;
        JsonObject *source = json_object_get_object_member(sources, key);
        c->params.sources[i].kind = kind_of(string_of(source, "kind"));
        c->params.sources[i].shm_name = g_strdup(string_of(source, "name"));
        c->params.sources[i].guest_path = g_strdup(string_of(source, "path"));
    }
}

static void load_devices(Case *c, JsonObject *devices)
{
    JsonObjectIter iter;
    const char *key = NULL;

    if (!devices)
        return;
    c->params.guest_devices = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    json_object_iter_init(&iter, devices);
    while (json_object_iter_next(&iter, &key, NULL))
        g_hash_table_insert(c->params.guest_devices, g_strdup(key),
            g_strdup(json_object_get_string_member(devices, key)));
}

static JsonObject *object_of(JsonObject *object, const char *name)
{
    return json_object_has_member(object, name) ? json_object_get_object_member(object, name)
                                                : NULL;
}

static void case_load(Case *c, const char *path)
{
    g_autoptr(GError) error = NULL;

    memset(c, 0, sizeof *c);
    c->input = sv_json_load(path, 1 << 20, &error);
    g_assert_no_error(error);
    JsonObject *root = json_node_get_object(c->input);
    JsonObject *params = json_object_get_object_member(root, "params");
    g_autofree char *config = sv_json_text(json_object_get_member(root, "config"), FALSE);
    c->spec = sv_spec_parse(config, strlen(config), "/bundle", &error);
    g_assert_no_error(error);
    c->params.container_id = "c1";
    c->params.index = json_object_get_int_member_with_default(params, "index", 0);
    c->params.root_path = "/run/sandvirt/share/c/0/rootfs";
    c->params.cpus = json_object_get_int_member_with_default(params, "cpus", 1);
    c->params.join_namespace = join_namespace;
    c->params.user_data = object_of(params, "join");
    load_sources(c, object_of(params, "sources"));
    load_devices(c, object_of(params, "devices"));
}

static void case_clear(Case *c)
{
    for (guint i = 0; i < c->spec->mounts->len; i++) {
        g_free(c->params.sources[i].shm_name);
        g_free(c->params.sources[i].guest_path);
    }
    g_free(c->params.sources);
    g_clear_pointer(&c->params.guest_devices, g_hash_table_unref);
    sv_spec_free(c->spec);
    json_node_unref(c->input);
}

static void put_strings(JsonObject *object, const char *name, GPtrArray *strings)
{
    JsonArray *array = json_array_new();

    for (guint i = 0; i < strings->len; i++)
        json_array_add_string_element(array, strings->pdata[i]);
    json_object_set_array_member(object, name, array);
}

static void put_binds(JsonObject *object, GPtrArray *binds)
{
    JsonArray *array = json_array_new();

    for (guint i = 0; i < binds->len; i++) {
        const SvBindPlan *plan = binds->pdata[i];
        g_autofree char *text =
            g_strdup_printf("mounts[%u] %s <- %s%s%s", plan->mount_index, plan->name, plan->source,
                plan->recursive ? " recursive" : "", plan->read_only ? " read-only" : "");

        json_array_add_string_element(array, text);
    }
    json_object_set_array_member(object, "binds", array);
}

static char *case_output(Case *c)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvGuestSpec) guest = sv_guest_spec_build(c->spec, &c->params, &error);
    JsonObject *object = json_object_new();
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);

    json_node_take_object(node, object);
    if (!guest) {
        json_object_set_int_member(object, "code", error->code);
        json_object_set_string_member(object, "error", error->message);
    } else {
        json_object_set_member(object, "config", json_node_copy(guest->config));
        put_binds(object, guest->binds);
        put_strings(object, "sysctls", guest->net_sysctls);
        put_strings(object, "warnings", guest->warnings);
    }
    g_autofree char *text = sv_json_text(node, TRUE);
    return g_strconcat(text, "\n", NULL);
}

static void test_case(gconstpointer data)
{
    const char *in = data;
    g_autofree char *stem = g_strndup(in, strlen(in) - strlen(".in.json"));
    g_autofree char *out = g_strconcat(stem, ".out.json", NULL);
    g_autofree char *wanted = NULL;
    g_autoptr(GError) error = NULL;
    Case c;

    case_load(&c, in);
    g_autofree char *text = case_output(&c);
    case_clear(&c);
    if (g_getenv("SV_REGENERATE")) {
        g_assert_true(g_file_set_contents(out, text, -1, &error));
        return;
    }
    g_file_get_contents(out, &wanted, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, wanted);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_autofree char *folder = g_test_build_filename(G_TEST_DIST, "golden", "guestspec", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name = NULL;
    guint n = 0;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir))) {
        if (!g_str_has_suffix(name, ".in.json"))
            continue;
        g_autofree char *test =
            g_strdup_printf("/guestspec/%.*s", (int)(strlen(name) - strlen(".in.json")), name);
        g_test_add_data_func_full(test, g_build_filename(folder, name, NULL), test_case, g_free);
        n++;
    }
    g_assert_cmpuint(n, >, 0);
    return g_test_run();
}
