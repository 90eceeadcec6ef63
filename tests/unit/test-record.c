/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records: round trip, damage, the setter, what queries answer. */
#include <config.h>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "core/record.h"
#include "replace.h"
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char *root;
} Fixture;

static void set_up(Fixture *f, gconstpointer data)
{
    f->root = g_dir_make_tmp("sv-record-XXXXXX", NULL);
    g_assert_nonnull(f->root);
    g_autofree char *sandbox = g_build_filename(f->root, ".sandbox", "box", NULL);
    g_assert_cmpint(g_mkdir_with_parents(sandbox, 0700), ==, 0);
}

static void tear_down(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(sv_file_remove_tree(f->root, &error));
    g_assert_no_error(error);
    g_free(f->root);
}

static SvRecord *sample(const char *id)
{
    SvRecord *r = sv_record_new(id);
    SvExecRecord exec = {7, 4321, 99};

    r->sandbox = g_strdup("box");
    r->bundle = g_strdup("/b \"quoted\"");
    r->rootfs = g_strdup("/b/rootfs");
    r->oci_version = g_strdup("1.0.2-dev");
    r->handle = 4294967295u;
    r->index = 3;
    r->state = SV_STATE_RUNNING;
    r->shim_pid = 1234;
    r->shim_start = G_GUINT64_CONSTANT(123456789012);
    r->started_us = 5;
    r->kill_at_us = G_GINT64_CONSTANT(98765432109);
    r->cause = SV_CAUSE_OOM;
    r->oom = r->terminal = TRUE;
    r->pending_status = 137;
    r->error = g_strdup("broken");
    r->owner = 1000;
    g_hash_table_insert(r->annotations, g_strdup("k/e.y"), g_strdup("v\nw"));
    g_ptr_array_add(r->execs, g_memdup2(&exec, sizeof exec));
    SvDiskRecord *disk = sv_disk_record_new();
    disk->use = SV_DISK_VOLUME;
    disk->alias = g_strdup("ua-sv-1");
    disk->source = g_strdup("/dev/loop0");
    disk->seq = G_MAXINT64;
    disk->mount_index = 3;
    disk->plugged = TRUE;
    g_ptr_array_add(r->disks, disk);
    return r;
}

static void assert_same(const SvRecord *a, const SvRecord *b)
{
    g_autofree char *left = sv_record_text(a);
    g_autofree char *right = sv_record_text(b);

    g_assert_cmpstr(left, ==, right);
    g_assert_cmpuint(a->handle, ==, b->handle);
    g_assert_cmpuint(a->shim_start, ==, b->shim_start);
    g_assert_cmpint(a->state, ==, b->state);
    g_assert_cmpint(a->cause, ==, b->cause);
    g_assert_cmpuint(a->owner, ==, b->owner);
    g_assert_cmpint(((SvExecRecord *)a->execs->pdata[0])->shim_pid, ==,
        ((SvExecRecord *)b->execs->pdata[0])->shim_pid);
}

static void test_round_trip(Fixture *f, gconstpointer data)
{
    g_autoptr(SvRecord) r = sample("c");
    g_autoptr(GError) error = NULL;
    g_autofree char *file = sv_paths_container_file(f->root, "c");
    struct stat st;

    g_assert_true(sv_record_save(r, f->root, &error));
    g_assert_no_error(error);
    g_assert_cmpint(stat(file, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 07777, ==, 0600);
    g_autoptr(SvRecord) back = sv_record_load(f->root, "c", &error);
    g_assert_no_error(error);
    assert_same(r, back);
    g_assert_true(sv_record_remove(f->root, "box", "c", &error));
    g_assert_true(sv_record_remove(f->root, "box", "c", &error));
    g_assert_null(sv_record_load(f->root, "c", &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
    g_assert_cmpstr(error->message, ==, "container \"c\" does not exist");
}

static void test_create(Fixture *f, gconstpointer data)
{
    g_autoptr(SvRecord) r = sample("c");
    g_autoptr(GError) error = NULL;
    g_autofree char *full = g_strnfill(SV_RECORD_MAX, 'x');

    g_assert_true(sv_record_create(r, f->root, &error));
    g_assert_false(sv_record_create(r, f->root, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_EXISTS);
    g_clear_error(&error);

    /* A failing first save leaves nothing. */
    g_autoptr(SvRecord) big = sample("big");
    g_hash_table_insert(big->annotations, g_strdup("big"), g_steal_pointer(&full));
    g_assert_false(sv_record_create(big, f->root, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_LIMIT);
    g_clear_error(&error);
    g_assert_null(sv_record_load(f->root, "big", &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
    g_clear_error(&error);

    g_free(r->id);
    r->id = g_strdup("../c");
    g_assert_false(sv_record_create(r, f->root, &error));
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
    g_clear_error(&error);
    g_assert_false(sv_record_remove(f->root, "box", "..", &error));
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
}

static const struct {
    const char *name, *text;
} damaged[] = {
    {"empty", ""},
    {"array", "[]"},
    {"no-version", "{\"id\":\"x\",\"state\":\"ready\"}"},
    {"newer", "{\"version\":2,\"id\":\"x\",\"state\":\"ready\"}"},
    {"no-id", "{\"version\":1,\"state\":\"ready\"}"},
    {"bad-id", "{\"version\":1,\"id\":\"../x\",\"state\":\"ready\"}"},
    {"no-state", "{\"version\":1,\"id\":\"x\"}"},
    {"bad-state", "{\"version\":1,\"id\":\"x\",\"state\":\"dancing\"}"},
    {"gone", "{\"version\":1,\"id\":\"x\",\"state\":\"gone\"}"},
    {"bad-cause", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"cause\":\"magic\"}"},
    {"string-for-number", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"handle\":\"1\"}"},
    {"negative", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"index\":-1}"},
    {"too-big", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"handle\":4294967296}"},
    {"status", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"exitStatus\":256}"},
    {"annotation", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"annotations\":{\"a\":1}}"},
    {"annotations", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"annotations\":[]}"},
    {"execs", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"execs\":[1]}"},
    {"disks", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"disks\":[[]]}"},
    {"disk without alias",
        "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"disks\":[{\"use\":\"rootfs\"}]}"},
    {"disk's use",
        "{\"version\":1,\"id\":\"x\",\"state\":\"ready\",\"disks\":[{\"use\":\"x\","
        "\"alias\":\"a\",\"source\":\"/dev/x\"}]}"},
    {"garbage", "{\"version\":1,\"id\":\"x\",\"state\":\"ready\"} x"},
};

static void test_damaged(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(damaged); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", damaged[i].name);
        g_assert_null(sv_record_parse(damaged[i].text, strlen(damaged[i].text), &error));
        g_assert_true(sv_error_is(error, SV_ERR_INVALID));
    }
}

/* Every cut of a good record is an error, never a crash. */
static void test_truncated(void)
{
    g_autoptr(SvRecord) r = sample("c");
    g_autofree char *text = sv_record_text(r);
    gsize len = strlen(text);

    for (gsize cut = 0; cut < len; cut++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(sv_record_parse(text, cut, &error));
        g_assert_true(sv_error_is(error, SV_ERR_INVALID));
    }
}

static void try_record(const char *text, gsize len)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) sandbox_error = NULL;
    g_autoptr(SvRecord) r = sv_record_parse(text, len, &error);
    g_autoptr(SvSandboxRecord) s = sv_sandbox_record_parse(text, len, &sandbox_error);

    g_assert_true((r == NULL) == (error != NULL));
    g_assert_true((s == NULL) == (sandbox_error != NULL));
    if (r) {
        g_autofree char *state = sv_record_oci_state(r, NULL, 0);

        g_assert_nonnull(state);
    }
}

static void test_every_node(void)
{
    g_autoptr(SvRecord) r = sample("c");
    g_autoptr(SvSandboxRecord) s = sv_sandbox_record_new("box");
    SvShmRecord *shm = g_new0(SvShmRecord, 1);
    g_autoptr(GError) error = NULL;

    shm->name = g_strdup("shm-0");
    shm->source = g_strdup("/s");
    g_ptr_array_add(s->shms, shm);
    s->root = g_strdup("/r");
    g_autofree char *text = sv_record_text(r);
    g_autofree char *sandbox_text = sv_sandbox_record_text(s);
    g_autoptr(JsonNode) node = sv_json_parse(text, -1, FALSE, "record", &error);
    g_autoptr(JsonNode) sandbox = sv_json_parse(sandbox_text, -1, FALSE, "record", &error);
    g_assert_no_error(error);
    g_test_message("%u variants",
        replace_every_node(node, try_record) + replace_every_node(sandbox, try_record));
}

static void test_unknown_members(void)
{
    const char *text = "{\"version\":1,\"id\":\"x\",\"state\":\"stopped\",\"later\":{\"a\":[1]}}";
    g_autoptr(GError) error = NULL;
    g_autoptr(SvRecord) r = sv_record_parse(text, strlen(text), &error);

    g_assert_no_error(error);
    g_assert_cmpstr(r->sandbox, ==, "x");
    g_assert_cmpint(r->exit_status, ==, -1);
}

/* Recorded pids that are no process of ours are never looked at. */
static void test_pids(void)
{
    static const char *const pids[] = {"-1", "0", "1", "4194305", "4294967297", "-4294967295"};

    for (gsize i = 0; i < G_N_ELEMENTS(pids); i++) {
        g_autofree char *text = g_strdup_printf(
            "{\"version\":1,\"id\":\"x\",\"state\":\"running\",\"shimPid\":%s}", pids[i]);
        g_autoptr(GError) error = NULL;
        g_autoptr(SvRecord) r = sv_record_parse(text, strlen(text), &error);

        g_assert_no_error(error);
        g_assert_true(r->shim_pid == 0 || r->shim_pid == 4194305);
        g_assert_cmpint(sv_record_effective_state(r), ==, SV_STATE_STOPPED);
    }
}

/* ---- the setter */

static void count_notify(const SvRecord *record, SvState old, gpointer user_data)
{
    guint *count = user_data;

    g_assert_cmpint(record->state, !=, old);
    (*count)++;
}

static void test_setter(Fixture *f, gconstpointer data)
{
    g_autoptr(SvRecord) r = sv_record_new("c");
    g_autoptr(GError) error = NULL;
    guint count = 0;

    r->sandbox = g_strdup("box");
    g_assert_true(sv_record_create(r, f->root, &error));
    g_assert_true(sv_record_set_state(r, SV_EVENT_CREATED, f->root, count_notify, &count, &error));
    g_assert_false(sv_record_set_state(r, SV_EVENT_FREEZE, f->root, count_notify, &count, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_STATE);
    g_clear_error(&error);
    g_assert_true(sv_record_set_state(r, SV_EVENT_START, f->root, count_notify, &count, &error));
    g_assert_cmpint(r->started_us, >, 0);
    r->frozen = r->stopping = TRUE;
    r->pending_status = 143;
    g_assert_true(sv_record_set_state(r, SV_EVENT_EXITED, f->root, count_notify, &count, &error));
    g_assert_cmpint(r->exit_status, ==, 143);
    g_assert_cmpint(r->pending_status, ==, -1);
    g_assert_false(r->frozen || r->stopping);
    g_assert_cmpint(r->finished_us, >, 0);
    g_assert_cmpuint(count, ==, 3);

    g_autoptr(SvRecord) back = sv_record_load(f->root, "c", &error);
    g_assert_no_error(error);
    g_assert_cmpint(back->state, ==, SV_STATE_STOPPED);
    g_assert_cmpint(back->exit_status, ==, 143);

    /* The second exit changes nothing. */
    r->pending_status = 1;
    g_assert_true(sv_record_set_state(r, SV_EVENT_EXITED, f->root, count_notify, &count, &error));
    g_assert_cmpint(r->exit_status, ==, 143);
    g_assert_cmpuint(count, ==, 3);

    g_assert_true(sv_record_set_state(r, SV_EVENT_DELETE, f->root, count_notify, &count, &error));
    g_assert_cmpint(r->state, ==, SV_STATE_GONE);
    g_assert_null(sv_record_load(f->root, "c", &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
}

static void test_unknown_status(Fixture *f, gconstpointer data)
{
    g_autoptr(SvRecord) r = sample("c");
    g_autoptr(GError) error = NULL;

    r->pending_status = -1;
    g_assert_true(sv_record_set_state(r, SV_EVENT_EXITED, f->root, NULL, NULL, &error));
    g_assert_cmpint(r->exit_status, ==, 255);
}

/* A save that fails leaves the state as it was, on disk and in memory. */
static void test_setter_fails(Fixture *f, gconstpointer data)
{
    g_autoptr(SvRecord) r = sample("c");
    g_autofree char *dir = sv_paths_container_dir(f->root, "c");
    g_autoptr(GError) error = NULL;
    guint count = 0;

    r->stopping = TRUE;
    g_assert_cmpint(g_file_set_contents(dir, "in the way", -1, NULL), ==, TRUE);
    g_assert_false(sv_record_set_state(r, SV_EVENT_EXITED, f->root, count_notify, &count, &error));
    g_assert_nonnull(error);
    g_assert_cmpint(r->state, ==, SV_STATE_RUNNING);
    g_assert_cmpint(r->exit_status, ==, -1);
    g_assert_cmpint(r->pending_status, ==, 137);
    g_assert_cmpint(r->finished_us, ==, 0);
    g_assert_true(r->stopping);
    g_assert_cmpuint(count, ==, 0);
}

/* ---- queries */

static void test_effective(void)
{
    g_autoptr(SvRecord) r = sv_record_new("c");

    r->state = SV_STATE_RUNNING;
    r->shim_pid = getpid();
    g_assert_true(sv_process_start_time(getpid(), &r->shim_start));
    g_assert_cmpint(sv_record_effective_state(r), ==, SV_STATE_RUNNING);
    r->state = SV_STATE_READY;
    g_assert_cmpint(sv_record_effective_state(r), ==, SV_STATE_READY);
    /* Another process has the pid. */
    r->shim_start++;
    g_assert_cmpint(sv_record_effective_state(r), ==, SV_STATE_STOPPED);
    r->shim_start--;
    /* The host was restarted. */
    g_free(r->boot_id);
    r->boot_id = g_strdup("00000000-0000-0000-0000-000000000000");
    g_assert_cmpint(sv_record_effective_state(r), ==, SV_STATE_STOPPED);
    r->state = SV_STATE_CREATING;
    g_assert_cmpint(sv_record_effective_state(r), ==, SV_STATE_STOPPED);
    g_free(r->boot_id);
    r->boot_id = sv_process_boot_id();
    g_assert_cmpint(sv_record_effective_state(r), ==, SV_STATE_CREATING);
}

static void test_oci_state(void)
{
    static const char *const members[] = {
        "ociVersion", "id", "pid", "status", "bundle", "rootfs", "created", "annotations", "owner"};
    g_autoptr(SvRecord) r = sample("c");
    g_autoptr(GError) error = NULL;

    r->exit_status = 3;
    r->created_us = G_GINT64_CONSTANT(1700000000000042);
    g_autofree char *text = sv_record_oci_state(r, NULL, 77);
    g_autoptr(JsonNode) node = sv_json_parse(text, -1, FALSE, "state", &error);
    g_assert_no_error(error);
    JsonObject *object = json_node_get_object(node);
    g_assert_cmpuint(json_object_get_size(object), ==, G_N_ELEMENTS(members));
    for (gsize i = 0; i < G_N_ELEMENTS(members); i++)
        g_assert_true(json_object_has_member(object, members[i]));
    g_assert_cmpstr(json_object_get_string_member(object, "status"), ==, "stopped");
    g_assert_cmpint(json_object_get_int_member(object, "pid"), ==, 0);
    g_assert_cmpstr(
        json_object_get_string_member(object, "created"), ==, "2023-11-14T22:13:20.000042Z");

    g_autofree char *hook = sv_record_oci_state(r, "creating", 77);
    g_autoptr(JsonNode) given = sv_json_parse(hook, -1, FALSE, "state", &error);
    g_assert_no_error(error);
    object = json_node_get_object(given);
    g_assert_cmpstr(json_object_get_string_member(object, "status"), ==, "creating");
    g_assert_cmpint(json_object_get_int_member(object, "pid"), ==, 77);
}

/* ---- list */

static void put(const char *root, const char *id, const char *text)
{
    g_autofree char *dir = sv_paths_container_dir(root, id);
    g_autofree char *file = sv_paths_container_file(root, id);

    g_assert_cmpint(g_mkdir(dir, 0700), ==, 0);
    if (text)
        g_assert_true(g_file_set_contents(file, text, -1, NULL));
}

static void test_list(Fixture *f, gconstpointer data)
{
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    g_autofree char *stray = g_build_filename(f->root, "stray", NULL);
    g_autofree char *odd = g_build_filename(f->root, "odd name", NULL);
    g_autofree char *fifo = sv_paths_container_file(f->root, "fifo");
    static const char *const good[] = {"b", "a", "c"};

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(SvRecord) r = sample(good[i]);

        g_assert_true(sv_record_create(r, f->root, &error));
    }
    put(f->root, "nofile", NULL);
    put(f->root, "zero", "");
    put(f->root, "random", "\x01\x02\xff\xfe");
    put(f->root, "half", "{\"version\":1,\"id\":\"ha");
    put(f->root, "other", "{\"version\":1,\"id\":\"a\",\"state\":\"ready\"}");
    put(f->root, "fifo", NULL);
    put(f->root, ".ours", NULL);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_assert_true(g_file_set_contents(stray, "x", -1, NULL));
    g_assert_true(g_file_set_contents(odd, "x", -1, NULL));

    g_autoptr(GPtrArray) list = sv_record_list(f->root, warnings, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(list->len, ==, 3);
    g_assert_cmpstr(((SvRecord *)list->pdata[0])->id, ==, "a");
    g_assert_cmpstr(((SvRecord *)list->pdata[2])->id, ==, "c");
    g_assert_cmpuint(warnings->len, ==, 8);

    /* A damaged entry can be removed, the stray file too. */
    g_assert_null(sv_record_load(f->root, "nofile", &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);
    g_assert_true(sv_record_remove(f->root, "box", "nofile", &error));
    g_assert_true(sv_record_remove(f->root, "box", "fifo", &error));
    g_assert_true(sv_record_remove(f->root, "box", "stray", &error));
    g_assert_no_error(error);
}

static void test_list_no_root(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) list = sv_record_list("/nonexistent/sandvirt", NULL, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(list->len, ==, 0);
    g_assert_null(sv_record_list("/dev/null", NULL, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_IO);
}

static void test_list_speed(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    gint64 best = G_MAXINT64;

    for (guint i = 0; i < 1000; i++) {
        g_autofree char *id = g_strdup_printf("%064x", i);
        g_autoptr(SvRecord) r = sample(id);
        g_autofree char *dir = sv_paths_container_dir(f->root, id);
        g_autofree char *file = sv_paths_container_file(f->root, id);

        for (guint k = 0; k < 10; k++)
            g_hash_table_insert(r->annotations,
                g_strdup_printf("io.kubernetes.cri-o.Annotation%u", k), g_strnfill(40, 'v'));
        g_autofree char *text = sv_record_text(r);
        g_assert_cmpint(g_mkdir(dir, 0700), ==, 0);
        g_assert_true(
            g_file_set_contents_full(file, text, -1, G_FILE_SET_CONTENTS_NONE, 0600, NULL));
    }
    for (guint round = 0; round < 3; round++) {
        gint64 start = g_get_monotonic_time();
        g_autoptr(GPtrArray) list = sv_record_list(f->root, NULL, &error);

        g_assert_no_error(error);
        g_assert_cmpuint(list->len, ==, 1000);
        for (guint i = 0; i < list->len; i++)
            sv_record_effective_state(list->pdata[i]);
        best = MIN(best, g_get_monotonic_time() - start);
    }
    g_test_minimized_result(best / 1000.0, "list of 1000: %.1f ms", best / 1000.0);
}

/* ---- the sandbox's */

static void test_sandbox(Fixture *f, gconstpointer data)
{
    SvConfig config = {.run_dir = f->root, .image_dir = f->root, .launcher_socket = (char *)""};
    g_autoptr(GError) error = NULL;
    g_autoptr(SvPaths) paths = sv_paths_new(&config, f->root, "box", TRUE, &error);
    g_autoptr(SvSandboxRecord) r = sv_sandbox_record_new("box");
    SvShmRecord *shm = g_new0(SvShmRecord, 1);

    g_assert_null(sv_sandbox_record_load(paths, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
    g_clear_error(&error);
    r->root = g_strdup(paths->root);
    r->token = g_strdup("00ff");
    r->netns = g_strdup("/var/run/netns/x");
    r->next_index = 4;
    r->memory_mib = 512;
    r->cause = SV_CAUSE_GUEST_PANIC;
    shm->name = g_strdup("shm-0");
    shm->source = g_strdup("/run/shm/x");
    shm->size = 1 << 20;
    shm->mode = 01777;
    g_ptr_array_add(r->shms, shm);
    g_ptr_array_add(r->warnings, g_strdup("still held"));
    r->exits[SV_CAUSE_OOM] = 3;
    r->monitor_restarts = 2;
    g_assert_true(sv_sandbox_record_save(r, paths, &error));
    g_assert_no_error(error);
    g_autoptr(SvSandboxRecord) back = sv_sandbox_record_load(paths, &error);
    g_assert_no_error(error);
    g_autofree char *left = sv_sandbox_record_text(r);
    g_autofree char *right = sv_sandbox_record_text(back);
    g_assert_cmpstr(left, ==, right);
    g_assert_cmpint(back->uid, ==, -1);
    g_assert_cmpuint(back->next_handle, ==, 1);

    for (gsize cut = 0; cut < strlen(left); cut++) {
        g_assert_null(sv_sandbox_record_parse(left, cut, &error));
        g_assert_true(sv_error_is(error, SV_ERR_INVALID));
        g_clear_error(&error);
    }
    const char *bad = "{\"version\":1,\"id\":\"box\",\"root\":\"/\",\"token\":\"zz\"}";
    g_assert_null(sv_sandbox_record_parse(bad, strlen(bad), &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_INVALID);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/record/round-trip", Fixture, NULL, set_up, test_round_trip, tear_down);
    g_test_add("/record/create", Fixture, NULL, set_up, test_create, tear_down);
    g_test_add_func("/record/damaged", test_damaged);
    g_test_add_func("/record/truncated", test_truncated);
    g_test_add_func("/record/every-node", test_every_node);
    g_test_add_func("/record/unknown-members", test_unknown_members);
    g_test_add_func("/record/pids", test_pids);
    g_test_add("/record/setter", Fixture, NULL, set_up, test_setter, tear_down);
    g_test_add("/record/unknown-status", Fixture, NULL, set_up, test_unknown_status, tear_down);
    g_test_add("/record/setter-fails", Fixture, NULL, set_up, test_setter_fails, tear_down);
    g_test_add_func("/record/effective", test_effective);
    g_test_add_func("/record/oci-state", test_oci_state);
    g_test_add("/record/list", Fixture, NULL, set_up, test_list, tear_down);
    g_test_add_func("/record/list-no-root", test_list_no_root);
    g_test_add("/record/list-speed", Fixture, NULL, set_up, test_list_speed, tear_down);
    g_test_add("/record/sandbox", Fixture, NULL, set_up, test_sandbox, tear_down);
    return g_test_run();
}
