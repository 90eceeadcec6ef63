/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/top.h"

#include "base/json.h"
#include "monitor/root-stats.h"
#include "monitor/top-table.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define INTERVAL_S 2
#define FIRST_MS 500 /* a rate needs two looks */

typedef struct {
    const SvConfig *config;
    const char *root;
    gboolean once, json;
    GMainLoop *loop;
    GPtrArray *before; /* SvMachineStats, the last look; nullable */
    gint64 before_us;
    GError *error;
} Top;

static const SvMachineStats *find(const GPtrArray *all, const char *name)
{
    for (guint i = 0; all && i < all->len; i++)
        if (g_str_equal(((SvMachineStats *)all->pdata[i])->name, name))
            return all->pdata[i];
    return NULL;
}

/* A second, since the last look; 0 when the machine is another one. */
static double rate(guint64 now, guint64 before, gint64 us)
{
    return now > before && us > 0 ? (double)(now - before) * 1e6 / (double)us : 0;
}

static SvTopRow row_of(const Top *top, const SvMachineStats *now, gint64 now_us)
{
    const SvMachineStats *before = find(top->before, now->name);
    gint64 us = now_us - top->before_us;
    SvTopRow row = {.stats = now};
    if (!before)
        return row;
    row.cpu_percent = rate(now->cpu_ns, before->cpu_ns, us) / 1e7;
    row.read = rate(now->disk_read + now->file_read, before->disk_read + before->file_read, us);
    row.written = rate(
        now->disk_written + now->file_written, before->disk_written + before->file_written, us);
    row.received = rate(now->net_received, before->net_received, us);
    row.sent = rate(now->net_sent, before->net_sent, us);
    return row;
}

/* Columns and lines of the terminal; 0 when it is none. */
static struct winsize terminal_size(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return (struct winsize){0};
    return size;
}

static void print_table(const Top *top, const GPtrArray *all, gint64 now_us)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(SvTopRow));
    struct winsize size = terminal_size();
    for (guint i = 0; i < all->len; i++) {
        SvTopRow row = row_of(top, all->pdata[i], now_us);
        g_array_append_val(rows, row);
    }
    g_autofree char *text = sv_top_table(rows, size.ws_col, top->once ? 0 : size.ws_row);
    g_print("%s%s", top->once ? "" : "\033[H\033[2J", text);
    fflush(stdout);
}

static JsonObject *as_object(const Top *top, const SvMachineStats *s, gint64 now_us)
{
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "sandbox", s->metadata->sandbox);
    json_object_set_string_member(object, "root", s->metadata->root);
    json_object_set_string_member(object, "domain", s->name);
    json_object_set_string_member(object, "title", s->title ? s->title : "");
    json_object_set_int_member(object, "vcpus", s->vcpus);
    json_object_set_double_member(object, "cpuPercent", row_of(top, s, now_us).cpu_percent);
    json_object_set_int_member(object, "cpuNs", (gint64)s->cpu_ns);
    json_object_set_int_member(object, "memory", (gint64)s->memory);
    json_object_set_int_member(object, "memoryUsed", (gint64)s->memory_used);
    json_object_set_int_member(object, "diskRead", (gint64)s->disk_read);
    json_object_set_int_member(object, "diskWritten", (gint64)s->disk_written);
    json_object_set_int_member(object, "fileRead", (gint64)s->file_read);
    json_object_set_int_member(object, "fileWritten", (gint64)s->file_written);
    json_object_set_int_member(object, "netReceived", (gint64)s->net_received);
    json_object_set_int_member(object, "netSent", (gint64)s->net_sent);
    json_object_set_boolean_member(object, "suspended", s->state == SV_MACHINE_SUSPENDED);
    JsonArray *containers = json_array_new();
    for (guint i = 0; i < s->metadata->containers->len; i++) {
        const SvMetadataContainer *container = s->metadata->containers->pdata[i];
        JsonObject *item = json_object_new();
        json_object_set_string_member(item, "id", container->id ? container->id : "");
        json_object_set_string_member(item, "name", container->name ? container->name : "");
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
    gboolean over = !all || top->once;
    if (all) {
        g_clear_pointer(&top->before, g_ptr_array_unref);
        top->before = g_steal_pointer(&all);
        top->before_us = now_us;
    }
    if (over) {
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
    top.loop = g_main_loop_new(NULL, FALSE);
    top.before = sv_root_stats(config, root, &top.error);
    if (top.before) {
        top.before_us = g_get_monotonic_time();
        g_timeout_add(FIRST_MS, on_first, &top);
        g_main_loop_run(top.loop);
    }
    g_main_loop_unref(top.loop);
    g_clear_pointer(&top.before, g_ptr_array_unref);
    if (top.error)
        g_propagate_error(error, top.error);
    return top.error == NULL;
}
