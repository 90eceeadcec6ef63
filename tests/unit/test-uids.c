/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Users of machines: who has which, and that nobody waits for anybody. */
#include <config.h>

#include "base/fd.h"
#include "base/file.h"
#include "core/record.h"
#include "core/uids.h"
#include <string.h>

/* Users that every system has, and that run nothing. */
#define FIRST 2
#define LAST 3

typedef struct {
    char *dir;
    SvConfig config;
} Fixture;

static void set_up(Fixture *f, gconstpointer data)
{
    f->dir = g_dir_make_tmp("test-uids-XXXXXX", NULL);
    f->config = (SvConfig){
        .run_dir = g_build_filename(f->dir, "run", NULL),
        .image_dir = g_build_filename(f->dir, "data", "images", NULL),
        .launcher_socket = (char *)"",
        .uid_first = FIRST,
        .uid_last = LAST,
    };
}

static void tear_down(Fixture *f, gconstpointer data)
{
    g_assert_true(sv_file_remove_tree(f->dir, NULL));
    g_free((char *)f->config.run_dir);
    g_free((char *)f->config.image_dir);
    g_free(f->dir);
}

static SvPaths *paths_of(Fixture *f, const char *sandbox)
{
    g_autofree char *root = g_build_filename(f->dir, "root", NULL);
    g_autoptr(GError) error = NULL;
    SvPaths *paths = sv_paths_new(&f->config, root, sandbox, TRUE, &error);

    g_assert_no_error(error);
    return paths;
}

/* As a monitor does: the record names the user. */
static gboolean save(int uid, gpointer user_data, GError **error)
{
    const SvPaths *paths = user_data;
    g_autoptr(SvSandboxRecord) record = sv_sandbox_record_new(paths->sandbox);

    g_free(record->root);
    record->root = g_strdup(paths->root);
    record->uid = uid;
    return sv_sandbox_record_save(record, paths, error);
}

static gboolean no_room(int uid, gpointer user_data, GError **error)
{
    g_set_error(error, SV_CORE_ERROR, SV_ERR_IO, "no space left");
    return FALSE;
}

static int take(Fixture *f, SvPaths *paths, SvErr code)
{
    g_autoptr(GError) error = NULL;
    int uid = 0;

    if (sv_uids_take(&f->config, paths, save, paths, &uid, &error)) {
        g_assert_no_error(error);
        return uid;
    }
    g_assert_true(sv_error_is(error, code));
    g_assert_cmpint(uid, ==, -1);
    return -1;
}

static void test_take(Fixture *f, gconstpointer data)
{
    g_autoptr(SvPaths) a = paths_of(f, "a");
    g_autoptr(SvPaths) b = paths_of(f, "b");
    g_autoptr(SvPaths) c = paths_of(f, "c");

    g_assert_cmpint(take(f, a, 0), ==, FIRST);
    g_assert_cmpint(take(f, b, 0), ==, LAST);
    g_assert_cmpint(take(f, c, SV_ERR_LIMIT), ==, -1);
    /* not its own */
    sv_uids_release(&f->config, c, FIRST);
    g_assert_cmpint(take(f, c, SV_ERR_LIMIT), ==, -1);
    sv_uids_release(&f->config, a, FIRST);
    g_assert_cmpint(take(f, c, 0), ==, FIRST);
    /* whose record is gone counts no more */
    g_assert_true(sv_file_remove_tree(b->state_dir, NULL));
    g_assert_cmpint(take(f, a, 0), ==, LAST);
}

/* Who stands still with a claim in its hand holds up nobody. */
static void test_locked(Fixture *f, gconstpointer data)
{
    g_autoptr(SvPaths) a = paths_of(f, "a");
    g_autofree char *folder = g_build_filename(f->config.run_dir, ".uid", NULL);
    g_autofree char *path = g_strdup_printf("%s/%d", folder, FIRST);

    g_assert_true(sv_file_mkdirs(folder, 0700, NULL));
    g_auto(SvFd) lock = sv_file_lock(path, NULL);
    g_assert_cmpint(lock, >=, 0);
    g_assert_cmpint(take(f, a, 0), ==, LAST);
    sv_uids_release(&f->config, a, FIRST);
}

static void test_failing_save(Fixture *f, gconstpointer data)
{
    g_autoptr(SvPaths) a = paths_of(f, "a");
    g_autoptr(GError) error = NULL;
    int uid = 0;

    g_assert_false(sv_uids_take(&f->config, a, no_room, a, &uid, &error));
    g_assert_true(sv_error_is(error, SV_ERR_IO));
    g_autoptr(GPtrArray) claims = sv_uids_list(&f->config);
    g_assert_cmpuint(claims->len, ==, 0);
}

static void test_list(Fixture *f, gconstpointer data)
{
    g_autoptr(SvPaths) a = paths_of(f, "a");
    g_autofree char *odd = g_build_filename(f->config.run_dir, ".uid", "lock", NULL);

    g_assert_cmpint(take(f, a, 0), ==, FIRST);
    g_assert_true(g_file_set_contents(odd, "x\n/y", -1, NULL));
    g_autoptr(GPtrArray) claims = sv_uids_list(&f->config);
    g_assert_cmpuint(claims->len, ==, 1);
    const SvUidClaim *claim = claims->pdata[0];
    g_assert_cmpint(claim->uid, ==, FIRST);
    g_assert_cmpstr(claim->sandbox, ==, "a");
    g_assert_cmpstr(claim->root, ==, a->root);
}

static void test_none(Fixture *f, gconstpointer data)
{
    g_autoptr(SvPaths) a = paths_of(f, "a");

    f->config.uid_first = f->config.uid_last = 0;
    g_assert_cmpint(take(f, a, 0), ==, -1);
    sv_uids_release(&f->config, a, -1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/uids/take", Fixture, NULL, set_up, test_take, tear_down);
    g_test_add("/uids/locked", Fixture, NULL, set_up, test_locked, tear_down);
    g_test_add("/uids/failing-save", Fixture, NULL, set_up, test_failing_save, tear_down);
    g_test_add("/uids/list", Fixture, NULL, set_up, test_list, tear_down);
    g_test_add("/uids/none", Fixture, NULL, set_up, test_none, tear_down);
    return g_test_run();
}
