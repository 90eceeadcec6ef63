/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/top.h"

#include "base/json.h"
#include "monitor/root-stats.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_S 2
#define FIRST_MS 500 /* a rate needs two looks */
#define MIB (1024.0 * 1024.0)

typedef struct {
    const SvConfig *config;
    const char *root;
    gboolean once, json;
    GMainLoop *loop;
    GHashTable *before; /* name -> guint64 cpu_ns */
    gint64 before_us;
    GError *error;
} Top;

/* Percent of one CPU since the last look. */
static double cpu_percent(const Top *top, const SvMachineStats *stats, gint64 now_us)
{
    const guint64 *before = g_hash_table_lookup(top->before, stats->name);
    if (!before || now_us <= top->before_us || stats->cpu_ns < *before)
        return 0;
    return (double)(stats->cpu_ns - *before) / 10.0 / (double)(now_us - top->before_us);
}

static void remember(Top *top, const GPtrArray *all, gint64 now_us)
{
    g_hash_table_remove_all(top->before);
    for (guint i = 0; i < all->len; i++) {
        const SvMachineStats *stats = all->pdata[i];
        g_hash_table_insert(
            top->before, g_strdup(stats->name), g_memdup2(&stats->cpu_ns, sizeof stats->cpu_ns));
    }
    top->before_us = now_us;
}

static guint running(const SvMachineStats *stats)
{
    guint n = 0;
    for (guint i = 0; i < stats->metadata->containers->len; i++)
        n += g_strcmp0(((const SvMetadataContainer *)stats->metadata->containers->pdata[i])->state,
                 "running") == 0;
    return n;
}

static void print_table(const Top *top, const GPtrArray *all, gint64 now_us)
{
    if (!top->once)
        g_print("\033[H\033[2J");
    g_print("%-32s %5s %6s %9s %9s %9s %9s %9s %9s %6s\n", "POD", "VCPUS", "CPU%", "MEM MiB",
        "USED MiB", "READ MiB", "WRIT MiB", "RECV MiB", "SENT MiB", "RUN");
    for (guint i = 0; i < all->len; i++) {
        const SvMachineStats *s = all->pdata[i];
        const char *title = s->title && *s->title ? s->title : s->metadata->sandbox;
        g_print("%-32.32s %5u %6.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %3u/%-2u\n", title,
            s->vcpus, cpu_percent(top, s, now_us), (double)s->memory / MIB,
            (double)s->memory_used / MIB, (double)s->disk_read / MIB, (double)s->disk_written / MIB,
            (double)s->net_received / MIB, (double)s->net_sent / MIB, running(s),
            s->metadata->containers->len);
    }
    fflush(stdout);
}

static JsonObject *as_object(const Top *top, const SvMachineStats *s, gint64 now_us)
{
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "sandbox", s->metadata->sandbox);
    json_object_set_string_member(object, "domain", s->name);
    json_object_set_string_member(object, "title", s->title ? s->title : "");
    json_object_set_int_member(object, "vcpus", s->vcpus);
    json_object_set_double_member(object, "cpuPercent", cpu_percent(top, s, now_us));
    json_object_set_int_member(object, "cpuNs", (gint64)s->cpu_ns);
    json_object_set_int_member(object, "memory", (gint64)s->memory);
    json_object_set_int_member(object, "memoryUsed", (gint64)s->memory_used);
    json_object_set_int_member(object, "diskRead", (gint64)s->disk_read);
    json_object_set_int_member(object, "diskWritten", (gint64)s->disk_written);
    json_object_set_int_member(object, "netReceived", (gint64)s->net_received);
    json_object_set_int_member(object, "netSent", (gint64)s->net_sent);
    json_object_set_boolean_member(object, "suspended", s->state == 3);
    JsonArray *containers = json_array_new();
    for (guint i = 0; i < s->metadata->containers->len; i++) {
        const SvMetadataContainer *container = s->metadata->containers->pdata[i];
        JsonObject *item = json_object_new();
        json_object_set_string_member(item, "id", container->id ? container->id : "");
        json_object_set_string_member(item, "state", container->state ? container->state : "");
        json_array_add_object_element(containers, item);
    }
    json_object_set_array_member(object, "containers", containers);
    return object;
}

static void print_json(const Top *top, const GPtrArray *all, gint64 now_us)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_ARRAY);
    JsonArray *array = json_array_new();
    for (guint i = 0; i < all->len; i++)
        json_array_add_object_element(array, as_object(top, all->pdata[i], now_us));
    json_node_take_array(node, array);
    g_autofree char *text = sv_json_text(node, FALSE);
    g_print("%s\n", text);
    fflush(stdout);
}

static gboolean on_tick(gpointer user_data)
{
    Top *top = user_data;
    g_autoptr(GPtrArray) all = sv_root_stats(top->config, top->root, &top->error);
    gint64 now_us = g_get_monotonic_time();
    if (all && top->json)
        print_json(top, all, now_us);
    else if (all)
        print_table(top, all, now_us);
    if (all)
        remember(top, all, now_us);
    if (!all || top->once) {
        g_main_loop_quit(top->loop);
        return G_SOURCE_REMOVE;
    }
    return G_SOURCE_CONTINUE;
}

static gboolean on_first(gpointer user_data)
{
    Top *top = user_data;
    if (on_tick(top))
        g_timeout_add_seconds(INTERVAL_S, on_tick, top);
    return G_SOURCE_REMOVE;
}

gboolean sv_top(
    const SvConfig *config, const char *root, gboolean once, gboolean json, GError **error)
{
    Top top = {.config = config, .root = root, .once = once, .json = json};
    top.before = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    top.loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(GPtrArray) all = sv_root_stats(config, root, &top.error);
    if (all) {
        remember(&top, all, g_get_monotonic_time());
        g_timeout_add(FIRST_MS, on_first, &top);
        g_main_loop_run(top.loop);
    }
    g_main_loop_unref(top.loop);
    g_hash_table_unref(top.before);
    if (top.error)
        g_propagate_error(error, top.error);
    return top.error == NULL;
}
