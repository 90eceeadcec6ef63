/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of `top`, and the drawing of a timeline. */
#include "cli/svg.h"
#include "monitor/top-table.h"

#include <string.h>

static SvMachineStats *machine(const char *title, const char *state)
{
    SvMachineStats *stats = g_new0(SvMachineStats, 1);
    SvMetadataContainer *container = sv_metadata_container_new();
    stats->title = (char *)title;
    stats->state = SV_MACHINE_RUNNING;
    stats->vcpus = 2;
    stats->memory = 256 << 20;
    stats->memory_used = 300 << 20;
    stats->metadata = sv_metadata_new();
    stats->metadata->sandbox = g_strdup("the-id");
    container->state = g_strdup(state);
    g_ptr_array_add(stats->metadata->containers, container);
    return stats;
}

static void add(GArray *rows, SvMachineStats *stats, double cpu, double bytes)
{
    SvTopRow row = {.stats = stats, .cpu_percent = cpu, .read = bytes, .received = bytes};
    g_array_append_val(rows, row);
}

static void clear(GArray *rows)
{
    for (guint i = 0; i < rows->len; i++) {
        SvMachineStats *stats = (SvMachineStats *)g_array_index(rows, SvTopRow, i).stats;
        sv_metadata_free(stats->metadata);
        g_free(stats);
    }
    g_array_unref(rows);
}

static GArray *three(void)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(SvTopRow));
    SvMachineStats *suspended = machine("space/suspended", "stopped");
    suspended->state = SV_MACHINE_SUSPENDED;
    add(rows, suspended, 0, 0);
    add(rows, machine("space/a-pod-with-a-name-that-is-long-6d4cf56db6-x7k2p", "running"), 150.26,
        1536);
    add(rows, machine(NULL, "running"), 7, 3 << 20);
    return rows;
}

static void test_all(void)
{
    GArray *rows = three();
    g_autofree char *text = sv_top_table(rows, 0, 0);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 6);
    g_assert_cmpstr(lines[0], ==,
        "3 pods (1 suspended), 2 of 3 containers run, 6 vCPUs at 157 %, 900 MiB of the host");
    g_assert_true(g_str_has_prefix(lines[1], "POD "));
    /* the busiest first, names whole, those without one by their id */
    g_assert_true(
        g_str_has_prefix(lines[2], "space/a-pod-with-a-name-that-is-long-6d4cf56db6-x7k2p   1/1 "));
    g_assert_nonnull(strstr(lines[2], " 150.3    256    300   1.5K      0   1.5K      0"));
    g_assert_true(g_str_has_prefix(lines[3], "the-id "));
    g_assert_nonnull(strstr(lines[3], " 3.0M "));
    g_assert_true(g_str_has_suffix(lines[4], " suspended"));
    g_assert_null(strstr(lines[3], "suspended"));
    /* the columns stand below their names */
    g_assert_cmpuint(strlen(lines[1]), ==, strlen(lines[2]));
    g_assert_cmpuint(strlen(lines[1]), ==, strlen(lines[3]));
    clear(rows);
}

static void test_cut(void)
{
    GArray *rows = three();
    g_autofree char *text = sv_top_table(rows, 80, 5);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    /* one line less than the terminal has: the cursor stands there */
    g_assert_cmpuint(g_strv_length(lines), ==, 5);
    g_assert_cmpuint(strlen(lines[1]), <=, 80);
    g_assert_cmpuint(strlen(lines[2]), ==, strlen(lines[1]));
    g_assert_nonnull(strstr(lines[2], "space/..6db6-x7k2p "));
    g_assert_cmpstr(lines[3], ==, "and 2 more");
    g_autofree char *narrow = sv_top_table(rows, 10, 1);
    g_assert_nonnull(strstr(narrow, "suspended"));
    clear(rows);
}

static void test_none(void)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(SvTopRow));
    g_autofree char *text = sv_top_table(rows, 80, 24);
    g_assert_true(g_str_has_prefix(text, "0 pods, 0 of 0 containers run"));
    clear(rows);
}

static guint count(const char *text, const char *part)
{
    guint n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

/* Lines at round times, few of them; the pod's name where it is known. */
static void test_svg(void)
{
    static const gint64 totals[] = {1, 1000, 9999, 47000, 831000, 6942000, 60000000};
    for (guint i = 0; i < G_N_ELEMENTS(totals); i++) {
        g_autoptr(SvTimeline) timeline = sv_timeline_new("<id>");
        sv_timeline_add(timeline, "crun", 0, totals[i]);
        g_autofree char *svg = sv_svg_timeline(timeline, totals[i] > 5000 ? "space/pod" : NULL);
        guint lines = count(svg, "<line");
        g_assert_cmpuint(lines, >=, 1);
        g_assert_cmpuint(lines, <=, 7);
        g_assert_nonnull(strstr(svg, "&lt;id&gt;"));
        g_assert_cmpuint(count(svg, "space/pod: ready after"), ==, totals[i] > 5000);
    }
    g_autoptr(SvTimeline) timeline = sv_timeline_new("id");
    sv_timeline_add(timeline, "crun", 0, 6942000);
    g_autofree char *svg = sv_svg_timeline(timeline, NULL);
    g_assert_nonnull(strstr(svg, ">2000 ms<"));
    g_assert_nonnull(strstr(svg, ">6000 ms<"));
    g_assert_cmpuint(count(svg, "<line"), ==, 4);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/top/all", test_all);
    g_test_add_func("/top/cut", test_cut);
    g_test_add_func("/top/none", test_none);
    g_test_add_func("/timeline/svg", test_svg);
    return g_test_run();
}
