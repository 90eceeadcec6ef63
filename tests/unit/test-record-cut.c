/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An entry is made, changed and removed by a process that is killed at each of its system calls: what stands is a whole
 * entry or none, and the next one to make and remove it leaves nothing. */
#include <config.h>

#include "base/file.h"
#include "core/record.h"
#include "core/timeline.h"
#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

typedef gboolean (*Step)(const char *root, const SvRecord *record);

static gboolean create(const char *root, const SvRecord *record)
{
    return sv_record_create(record, root, NULL);
}

static gboolean save(const char *root, const SvRecord *record)
{
    return sv_record_save(record, root, NULL);
}

static gboolean drop(const char *root, const SvRecord *record)
{
    return sv_record_remove(root, record->sandbox, record->id, NULL);
}

static void wait_for_child(pid_t pid, int *status)
{
    while (waitpid(pid, status, 0) < 0)
        g_assert_cmpint(errno, ==, EINTR);
}

/* TRUE: it was killed before its end. */
static gboolean cut(Step step, const char *root, const SvRecord *record, guint stops)
{
    int status = 0;
    pid_t pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(step(root, record) ? 0 : 1);
    }
    wait_for_child(pid, &status);
    for (guint i = 0; i < stops && WIFSTOPPED(status); i++) {
        g_assert_cmpint(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), ==, 0);
        wait_for_child(pid, &status);
    }
    if (!WIFSTOPPED(status)) {
        g_assert_cmpint(status, ==, 0);
        return FALSE;
    }
    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    wait_for_child(pid, &status);
    return TRUE;
}

static guint count_entries(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    guint n = 0;
    g_assert_nonnull(dir);
    while (g_dir_read_name(dir))
        n++;
    return n;
}

static void prepare(const char *root, const SvRecord *record)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvTimeline) timeline = sv_timeline_new(record->id);
    g_assert_true(sv_record_create(record, root, &error));
    g_assert_true(sv_timeline_save(timeline, root, &error));
    g_assert_no_error(error);
}

static void test_cut(gconstpointer data)
{
    const Step step = *(const Step *)data;
    g_autofree char *root = g_dir_make_tmp("sv-cut-XXXXXX", NULL);
    g_autofree char *sandbox = g_build_filename(root, ".sandbox", "box", NULL);
    g_autoptr(SvRecord) record = sv_record_new("c");
    gboolean again = TRUE, seen[2] = {FALSE};
    record->sandbox = g_strdup("box");
    record->bundle = g_strdup("");
    record->rootfs = g_strdup("");
    g_assert_cmpint(g_mkdir_with_parents(sandbox, 0700), ==, 0);
    for (guint stops = 0; again; stops++) {
        g_autoptr(GError) error = NULL;
        if (step != create)
            prepare(root, record);
        again = cut(step, root, record, stops);
        g_autoptr(SvRecord) now = sv_record_load(root, "c", &error);
        if (!now)
            g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
        g_clear_error(&error);
        seen[now != NULL] = TRUE;
        if (!now)
            prepare(root, record);
        g_assert_true(sv_record_remove(root, "box", "c", &error));
        g_assert_no_error(error);
        g_assert_cmpuint(count_entries(root), ==, 1); /* .sandbox */
        g_assert_cmpuint(count_entries(sandbox), ==, 0);
    }
    g_assert_true(seen[TRUE]);
    g_assert_cmpint(seen[FALSE], ==, step != save);
    g_assert_true(sv_file_remove_tree(root, NULL));
}

int main(int argc, char **argv)
{
    static const Step steps[] = {create, save, drop};
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/record/cut/create", &steps[0], test_cut);
    g_test_add_data_func("/record/cut/save", &steps[1], test_cut);
    g_test_add_data_func("/record/cut/remove", &steps[2], test_cut);
    return g_test_run();
}
