/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's table of disks: they are found by serial whenever they come, and each is looked at only so
 * often as it says something itself. */
#include "agent/agent-error.h"
#include "agent/block-table.h"
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define MANY 128
#define LONG_MS 60000

typedef struct {
    char *dir;
    SvBlockTable *table;
} Fixture;

typedef struct {
    guint calls;
    char *name; /* NULL: an error */
    int code;
    guint64 size_bytes;
    guint major, minor;
    gboolean read_only;
} Answer;

static void set_up(Fixture *fixture, gconstpointer data)
{
    fixture->dir = g_dir_make_tmp("sv-agent-XXXXXX", NULL);
    fixture->table = sv_block_table_new(fixture->dir);
}

static void tear_down(Fixture *fixture, gconstpointer data)
{
    g_autofree char *command = g_strdup_printf("rm -rf %s", fixture->dir);

    sv_block_table_free(fixture->table);
    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
    g_free(fixture->dir);
}

static void put(Fixture *fixture, const char *name, const char *file, const char *text)
{
    g_autofree char *path = g_build_filename(fixture->dir, name, file, NULL);
    g_autofree char *parent = g_path_get_dirname(path);

    g_assert_cmpint(g_mkdir_with_parents(parent, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void add_disk(Fixture *fixture, const char *name, const char *serial)
{
    put(fixture, name, "serial", serial);
    put(fixture, name, "dev", "254:16\n");
    put(fixture, name, "size", "8\n");
    put(fixture, name, "ro", "1\n");
}

static void send(Fixture *fixture, const char *action, const char *name)
{
    g_autofree char *path = g_strdup_printf("/devices/x/block/%s", name);
    SvUevent event = {.action = action, .devpath = path, .subsystem = "block", .devname = name};

    sv_block_table_event(&event, fixture->table);
}

static void on_done(const SvBlock *block, const GError *error, gpointer user_data)
{
    Answer *answer = user_data;

    answer->calls++;
    g_assert_true(!block != !error);
    answer->code = error ? error->code : 0;
    g_free(answer->name);
    answer->name = block ? g_strdup(block->name) : NULL;
    if (!block)
        return;
    answer->size_bytes = block->size_bytes;
    answer->major = block->major;
    answer->minor = block->minor;
    answer->read_only = block->read_only;
}

static void wait_for(Fixture *fixture, const char *serial, guint ms, Answer *answer)
{
    g_free(answer->name);
    memset(answer, 0, sizeof *answer);
    sv_block_table_wait(fixture->table, serial, ms, on_done, answer);
}

static void test_there(Fixture *fixture, gconstpointer data)
{
    Answer answer = {0};

    add_disk(fixture, "vda", "one\n");
    put(fixture, "sda", "device/vpd_pg80", "x\x80");
    wait_for(fixture, "one", LONG_MS, &answer);
    g_assert_cmpuint(answer.calls, ==, 1);
    g_assert_cmpstr(answer.name, ==, "vda");
    g_assert_cmpuint(answer.major, ==, 254);
    g_assert_cmpuint(answer.minor, ==, 16);
    g_assert_cmpuint(answer.size_bytes, ==, 4096);
    g_assert_true(answer.read_only);
    g_free(answer.name);
}

static void test_comes(Fixture *fixture, gconstpointer data)
{
    Answer answer = {0};

    wait_for(fixture, "one", LONG_MS, &answer);
    add_disk(fixture, "vda", "two");
    send(fixture, "add", "vda");
    send(fixture, "add", "vda1"); /* a partition */
    /* no number and no serial at first */
    put(fixture, "vdb", "size", "8");
    send(fixture, "add", "vdb");
    put(fixture, "vdb", "serial", "one");
    send(fixture, "change", "vdb");
    g_assert_cmpuint(answer.calls, ==, 0);
    add_disk(fixture, "vdb", "one");
    send(fixture, "change", "vdb");
    g_assert_cmpuint(answer.calls, ==, 1);
    g_assert_cmpstr(answer.name, ==, "vdb");
    /* events were lost */
    wait_for(fixture, "three", LONG_MS, &answer);
    add_disk(fixture, "vdc", "three");
    sv_block_table_event(NULL, fixture->table);
    g_assert_cmpstr(answer.name, ==, "vdc");
    g_free(answer.name);
}

static void test_goes(Fixture *fixture, gconstpointer data)
{
    Answer answer = {0};

    add_disk(fixture, "vda", "one");
    wait_for(fixture, "one", LONG_MS, &answer);
    g_assert_cmpstr(answer.name, ==, "vda");
    /* another one has its name, before the events come */
    put(fixture, "vda", "serial", "two");
    wait_for(fixture, "one", LONG_MS, &answer);
    g_assert_cmpuint(answer.calls, ==, 0);
    add_disk(fixture, "vdb", "one");
    send(fixture, "add", "vdb");
    g_assert_cmpstr(answer.name, ==, "vdb");
    send(fixture, "remove", "vdb");
    wait_for(fixture, "one", LONG_MS, &answer);
    g_assert_cmpuint(answer.calls, ==, 0);
    g_free(answer.name);
}

static void test_twins(Fixture *fixture, gconstpointer data)
{
    Answer answer = {0};

    add_disk(fixture, "vda", "one");
    add_disk(fixture, "vdb", "one");
    wait_for(fixture, "one", LONG_MS, &answer);
    g_assert_cmpint(answer.code, ==, SV_ERR_EXISTS);
}

static void test_never(Fixture *fixture, gconstpointer data)
{
    Answer answer = {0};

    wait_for(fixture, "one", 1, &answer);
    while (!answer.calls)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(answer.code, ==, SV_ERR_TIMEOUT);
}

/* How often somebody has opened a serial since the last call. */
static guint count_reads(int fd)
{
    _Alignas(struct inotify_event) char data[64 * 1024];
    guint reads = 0;
    ssize_t n;

    while ((n = read(fd, data, sizeof data)) > 0)
        for (char *p = data; p < data + n;) {
            const struct inotify_event *event = (const struct inotify_event *)p;

            g_assert_false(event->mask & IN_Q_OVERFLOW);
            if (event->len && g_str_equal(event->name, "serial"))
                reads++;
            p += sizeof *event + event->len;
        }
    return reads;
}

/* Many disks for as many that wait, all at once. */
static void test_many(Fixture *fixture, gconstpointer data)
{
    g_autofree Answer *answers = g_new0(Answer, MANY);
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    guint reads = 0;

    for (guint i = 0; i < MANY; i++) {
        g_autofree char *serial = g_strdup_printf("serial%u", i);

        wait_for(fixture, serial, LONG_MS, &answers[i]);
    }
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *serial = g_strdup_printf("serial%u", i);
        g_autofree char *name = g_strdup_printf("vd%u", i);
        g_autofree char *path = g_build_filename(fixture->dir, name, NULL);

        add_disk(fixture, name, serial);
        g_assert_cmpint(inotify_add_watch(fd, path, IN_OPEN), >=, 0);
        send(fixture, "add", name);
        reads += count_reads(fd);
        g_assert_cmpuint(answers[i].calls, ==, 1);
        g_assert_cmpstr(answers[i].name, ==, name);
    }
    g_assert_cmpuint(reads, <=, 2 * MANY);
    /* and for those that come when the disks are there */
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *serial = g_strdup_printf("serial%u", i);

        wait_for(fixture, serial, LONG_MS, &answers[i]);
        g_assert_cmpuint(answers[i].calls, ==, 1);
        g_free(answers[i].name);
    }
    g_assert_cmpuint(count_reads(fd), <=, 2 * MANY);
    close(fd);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *path;
        void (*test)(Fixture *, gconstpointer);
    } tests[] = {
        {"/agent/block/there", test_there},
        {"/agent/block/comes", test_comes},
        {"/agent/block/goes", test_goes},
        {"/agent/block/twins", test_twins},
        {"/agent/block/never", test_never},
        {"/agent/block/many", test_many},
    };

    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].path, Fixture, NULL, set_up, tests[i].test, tear_down);
    return g_test_run();
}
