/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "conf/keys.h"

typedef struct {
    char *dir, *file;
} Fixture;

static void put(const char *path, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_file_set_contents(path, text, -1, &error);
    g_assert_no_error(error);
}

static void setup(Fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    fixture->dir = g_dir_make_tmp("sv-conf-XXXXXX", &error);
    g_assert_no_error(error);
    fixture->file = g_build_filename(fixture->dir, "sandvirt.conf", NULL);
}

static void teardown(Fixture *fixture, gconstpointer unused)
{
    g_assert_true(sv_file_remove_tree(fixture->dir, NULL));
    g_free(fixture->dir);
    g_free(fixture->file);
}

static void put_drop_in(const Fixture *fixture, const char *name, const char *text)
{
    g_autofree char *folder = g_strdup_printf("%s.d", fixture->file);
    g_mkdir(folder, 0755);
    g_autofree char *path = g_build_filename(folder, name, NULL);
    put(path, text);
}

static void test_defaults(Fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    put(fixture->file, "");
    const SvConfig *config = sv_config_load(fixture->file, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(config->uri, ==, "qemu:///system");
    g_assert_cmpint(config->accel, ==, SV_ACCEL_MODE_AUTO);
    g_assert_true(config->skip_cpu_probe);
    g_assert_cmpuint(config->root_ports, ==, 8);
    g_assert_cmpuint(config->memory_mib, ==, 256);
    g_assert_cmpuint(config->max_memory_mib, >, 0);
    g_assert_cmpuint(config->max_vcpus, ==, g_get_num_processors());
    g_assert_cmpuint(config->uid_first, ==, 0);
    g_assert_nonnull(config->image_folders);
    g_assert_null(config->image_folders[0]);
    g_assert_cmpint(config->log_level, ==, SV_LOG_LEVEL_WARNING);
    g_assert_cmpstr(config->path, ==, fixture->file);
    g_assert_true(sv_config_ref(config) == config);
    sv_config_unref(config);
    sv_config_unref(config);
    sv_config_unref(NULL);
}

/* The usual file may come and go: nobody is to insist on it. */
static void test_usual_file(Fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    const SvConfig *config = sv_config_load(NULL, &error);
    g_assert_no_error(error);
    g_assert_null(config->path);
    sv_config_unref(config);
}

static void test_values(Fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    put(fixture->file,
        "# comment\n[hypervisor]\nuri = qemu:///session\naccel=tcg\n\n[machine]\n"
        "memory_mib = 512 \nkernel_args = a=b  c\n[storage]\nimage_folders = /a; /b/c ;\n"
        "[log]\nlog_level=debug\nconsole_shell=true\n");
    const SvConfig *config = sv_config_load(fixture->file, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(config->uri, ==, "qemu:///session");
    g_assert_cmpint(config->accel, ==, SV_ACCEL_MODE_TCG);
    g_assert_cmpuint(config->memory_mib, ==, 512);
    g_assert_cmpstr(config->kernel_args, ==, "a=b  c");
    g_assert_cmpuint(g_strv_length(config->image_folders), ==, 2);
    g_assert_cmpstr(config->image_folders[1], ==, "/b/c");
    g_assert_cmpint(config->log_level, ==, SV_LOG_LEVEL_DEBUG);
    g_assert_true(config->console_shell);
    sv_config_unref(config);
}

static void test_drop_ins(Fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    put(fixture->file, "[machine]\nmemory_mib=100\nvcpus=1\n");
    put_drop_in(fixture, "20-b.conf", "[machine]\nmemory_mib=300\n");
    put_drop_in(fixture, "10-a.conf", "[machine]\nmemory_mib=200\nmax_vcpus=7\nvcpus=3\n");
    put_drop_in(fixture, ".hidden.conf", "[nonsense]\n");
    put_drop_in(fixture, "30-c.conf~", "[nonsense]\n");
    const SvConfig *config = sv_config_load(fixture->file, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(config->memory_mib, ==, 300);
    g_assert_cmpuint(config->vcpus, ==, 3);
    g_assert_cmpuint(config->max_vcpus, ==, 7);
    sv_config_unref(config);

    put_drop_in(fixture, "40-d.conf", "\n[machine]\nmemory=1\n");
    g_assert_null(sv_config_load(fixture->file, &error));
    g_assert_error(error, SV_CONF_ERROR, SV_ERR_INVALID);
    g_assert_nonnull(strstr(error->message, "/sandvirt.conf.d/40-d.conf:3: "));
}

static const struct {
    const char *text, *wanted;
} bad[] = {
    {"[machine]\n\nmemory_mib = many\n", ".conf:3: memory_mib: \"many\" is not allowed: integer"},
    {"[machine]\nmemory_mib = 12\n", ".conf:2: memory_mib: \"12\" is not allowed: integer, 64 to"},
    {"[machine]\nmemory_mib = -256\n", ".conf:2: memory_mib:"},
    {"[machine]\nmemory_mib = 256 # a comment\n", ".conf:2: memory_mib:"},
    {"[machine]\nmemory_mib = 99999999999999999999\n", ".conf:2: memory_mib:"},
    {"[machine]\nmemory_mib =\n", ".conf:2: memory_mib: \"\" is not"},
    {"[machine]\nmemory_mib=256\n[log]\n[machine]\nmemory_mib=x\n", ".conf:5: memory_mib:"},
    {"[machine]\nmemory = 1\n", ".conf:2: unknown key \"memory\" in [machine]"},
    {"[log]\nlog_level=debug\n[Machine]\nvcpus=1\n", ".conf:3: unknown group [Machine]"},
    {"[hypervisor]\naccel = hvf\n",
        ".conf:2: accel: \"hvf\" is not allowed: one of auto, kvm, tcg"},
    {"[hypervisor]\nskip_cpu_probe = yes\n",
        ".conf:2: skip_cpu_probe: \"yes\" is not allowed: true"},
    {"[hypervisor]\nfirmware = qboot.rom\n", ".conf:2: firmware: "},
    {"[storage]\nimage_folders = /a;b\n", ".conf:2: image_folders: \"b\""},
    {"[storage]\ndisk_cache = fast\n", ".conf:2: disk_cache:"},
    {"[storage]\ndisk_cache = writeback\n", ".conf: disk_io \"native\" needs"},
    {"[machine]\nmemory_mib = 512\nmax_memory_mib = 256\n", ".conf: memory_mib is larger than"},
    {"[hypervisor]\nuid_first = 9\n", ".conf: uid_first and uid_last are no range"},
    {"[hypervisor]\nuid_first = 9\nuid_last=8\n", ".conf: uid_first and uid_last are no range"},
    {"vcpus = 1\n", ".conf:1: "},
    {"[machine]\n\nnonsense\n", ".conf:3: "},
    {"[machine\nvcpus=1\n", ".conf:1: "},
    {"[log]\nlog_level=\xff\xfe\n", ".conf:2: log_level: "},
    {"[log]\nlog_level=error\\q\n", ".conf:2: log_level: "},
};

static void test_bad(Fixture *fixture, gconstpointer unused)
{
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        put(fixture->file, bad[i].text);
        g_assert_null(sv_config_load(fixture->file, &error));
        g_assert_error(error, SV_CONF_ERROR, SV_ERR_INVALID);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, bad[i].wanted));
        g_assert_true(g_str_has_prefix(error->message, "configuration: "));
        g_assert_null(strchr(error->message, '\n'));
    }
}

static void test_missing(Fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(sv_config_load(fixture->file, &error));
    g_test_message("%s", error->message);
    g_assert_true(sv_error_is(error, SV_ERR_NOT_FOUND));
    g_clear_error(&error);
    g_assert_null(sv_config_load(fixture->dir, &error));
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
}

/* Every field of SvConfig belongs to exactly one key. */
static void test_table(void)
{
    guint n = 0;
    const SvKey *keys = sv_keys(&n);
    g_autofree guint8 *used = g_malloc0(sizeof(SvConfig));
    for (guint i = 0; i < n; i++) {
        gboolean pointer = keys[i].type == SV_KEY_STRING || keys[i].type == SV_KEY_PATH ||
            keys[i].type == SV_KEY_PATHS;
        gsize size = pointer ? sizeof(void *) : sizeof(guint);
        for (gsize b = 0; b < size; b++) {
            g_assert_cmpuint(used[keys[i].offset + b], ==, 0);
            used[keys[i].offset + b] = 1;
        }
        g_assert_true(sv_keys_find(keys[i].group, keys[i].name) == &keys[i]);
        g_assert_true(g_str_has_suffix(keys[i].doc, "."));
    }
    memset(used + G_STRUCT_OFFSET(SvConfig, path), 1, sizeof(char *));
    gsize free_bytes = 0;
    for (gsize b = 0; b < sizeof(SvConfig); b += sizeof(guint))
        free_bytes += used[b] == 0 ? sizeof(guint) : 0;
    g_test_message("%zu bytes without a key", free_bytes);
    g_assert_cmpuint(free_bytes, <=, 5 * sizeof(guint)); /* padding */
}

static void compare_file(const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(SV_SOURCE_ROOT, name, NULL);
    g_autofree char *there = NULL;
    g_assert_true(g_file_get_contents(path, &there, NULL, NULL));
    if (strcmp(there, text) != 0)
        g_test_message("%s is stale: ninja update-config-doc", name);
    g_assert_cmpstr(there, ==, text);
}

static void test_shipped(Fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *sample = sv_keys_sample();
    g_autofree char *markdown = sv_keys_markdown();
    put(fixture->file, sample);
    sv_config_unref(sv_config_load(fixture->file, &error));
    g_assert_no_error(error);

    /* with every comment sign before a key taken away it still says the same */
    g_autoptr(GRegex) regex = g_regex_new("^#(?=[a-z_]+ =)", G_REGEX_MULTILINE, 0, NULL);
    g_autofree char *active = g_regex_replace_literal(regex, sample, -1, 0, "", 0, NULL);
    put(fixture->file, active);
    sv_config_unref(sv_config_load(fixture->file, &error));
    g_assert_no_error(error);

    if (strcmp(SV_LOCALSTATEDIR, "/var") != 0 || strcmp(SV_RUNSTATEDIR, "/run") != 0) {
        g_test_skip("the files in the source tree are for packaged folders");
        return;
    }
    compare_file("conf/sandvirt.conf", sample);
    compare_file("docs/configuration.md", markdown);
}

static const SvConfig *load_with_images(const Fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf("[machine]\nimage_dir=%s/images\n", fixture->dir);
    put(fixture->file, text);
    const SvConfig *config = sv_config_load(fixture->file, &error);
    g_assert_no_error(error);
    return config;
}

static void test_image(Fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    const SvConfig *config = load_with_images(fixture);
    g_autofree char *kernel = NULL;
    g_autofree char *image = NULL;
    g_assert_false(sv_config_guest_image(config, &kernel, &image, &error));
    g_assert_error(error, SV_CONF_ERROR, SV_ERR_NOT_FOUND);
    g_assert_true(g_str_has_prefix(error->message, "no guest image is installed: "));
    g_clear_error(&error);

    g_assert_cmpint(g_mkdir(config->image_dir, 0755), ==, 0);
    g_autofree char *hashed_kernel = g_build_filename(config->image_dir, "vmlinux-abc", NULL);
    g_autofree char *hashed_image = g_build_filename(config->image_dir, "initramfs-abc.img", NULL);
    g_autofree char *kernel_link = g_build_filename(config->image_dir, "vmlinux", NULL);
    g_autofree char *image_link = g_build_filename(config->image_dir, "initramfs.img", NULL);
    put(hashed_kernel, "k");
    put(hashed_image, "i");
    g_assert_cmpint(symlink("vmlinux-abc", kernel_link), ==, 0);
    g_assert_cmpint(symlink("initramfs-abc.img", image_link), ==, 0);

    g_assert_cmpint(chmod(fixture->dir, 0700), ==, 0);
    g_assert_false(sv_config_guest_image(config, &kernel, &image, &error));
    g_assert_error(error, SV_CONF_ERROR, SV_ERR_PERMISSION);
    g_clear_error(&error);
    g_assert_cmpint(chmod(fixture->dir, 0755), ==, 0);

    g_assert_true(sv_config_guest_image(config, &kernel, &image, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(kernel, ==, hashed_kernel);
    g_assert_cmpstr(image, ==, hashed_image);

    g_assert_cmpint(chmod(hashed_image, 0600), ==, 0);
    g_assert_false(sv_config_guest_image(config, &kernel, &image, &error));
    g_assert_error(error, SV_CONF_ERROR, SV_ERR_PERMISSION);
    sv_config_unref(config);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(name, func) g_test_add("/conf/" name, Fixture, NULL, setup, func, teardown)
    ADD("defaults", test_defaults);
    ADD("usual-file", test_usual_file);
    ADD("values", test_values);
    ADD("drop-ins", test_drop_ins);
    ADD("bad", test_bad);
    ADD("missing", test_missing);
    g_test_add_func("/conf/table", test_table);
    ADD("shipped", test_shipped);
    ADD("image", test_image);
    return g_test_run();
}
