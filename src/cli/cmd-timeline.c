/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/file.h"
#include "base/json.h"
#include "cli/svg.h"
#include "cli/target.h"
#include "core/timeline.h"
#include <string.h>

#define BAR_WIDTH 50

typedef struct {
    const char *svg;
    gboolean all;
} Options;
static const SvOption options[] = {
    {"svg", 0, SV_OPT_STRING, G_STRUCT_OFFSET(Options, svg), "FILE", "draw it into this file too"},
    {"all", 'a', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, all), NULL,
        "phases of less than a millisecond too"},
    {NULL},
};

static void append_bar(GString *text, const SvTimeline *timeline, const SvPhase *phase)
{
    gint64 total = MAX(timeline->total_us, 1);
    guint from = (guint)(phase->start_us * BAR_WIDTH / total);
    guint len = (guint)((phase->start_us + phase->length_us) * BAR_WIDTH / total) - from;

    for (guint i = 0; i < BAR_WIDTH; i++)
        g_string_append(text, i >= from && i < from + MAX(len, 1) ? "#" : ".");
}

static char *as_text(const SvTimeline *timeline, const char *pod, gboolean all)
{
    GString *text = g_string_new(NULL);
    g_autofree char *title = sv_timeline_title(timeline, timeline->id);

    if (pod)
        g_string_append_printf(text, "%s\n", pod);
    g_string_append_printf(text, "%s\n\n", title);
    for (guint i = 0; i < timeline->phases->len; i++) {
        const SvPhase *phase = timeline->phases->pdata[i];
        g_autofree char *name = sv_printable(phase->name, 24);

        if (!all && phase->length_us < 1000)
            continue;
        g_string_append_printf(text, "%-24s %10.1f ms  ", name, (double)phase->length_us / 1000);
        append_bar(text, timeline, phase);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}

/* The pod's name, as virsh lists it (transfer full); NULL when it is not known. */
static char *pod_of(SvCli *cli, const char *sandbox)
{
    g_auto(SvTarget) target = SV_TARGET_INIT;
    g_autoptr(SvSandboxRecord) record = NULL;

    if (sv_target_locate(&target, cli, sandbox, FALSE, NULL))
        record = sv_sandbox_record_load(target.paths, NULL);
    if (!record || !record->title || !*record->title || g_str_equal(record->title, sandbox))
        return NULL;
    return g_strdup(record->title);
}

static int cmd_timeline(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_autoptr(SvRecord) record = sv_target_record(cli, args[0], error);
    g_autoptr(SvTimeline) timeline = NULL;
    g_autofree char *text = NULL, *svg = NULL, *pod = NULL;

    if (!record)
        return -1;
    timeline = sv_timeline_load(cli->root, args[0], error);
    if (!timeline) {
        g_prefix_error(error, "the container was never ready: ");
        return -1;
    }
    pod = pod_of(cli, record->sandbox);
    if (opts->svg) {
        svg = sv_svg_timeline(timeline, pod);
        if (!sv_file_write_atomic(opts->svg, svg, strlen(svg), 0644, FALSE, error))
            return -1;
    }
    text = as_text(timeline, pod, opts->all);
    return sv_cli_print(text, error) ? 0 : -1;
}

const SvVerb sv_verb_timeline = {"timeline", "ID",
    "Show where the start of a container spent its time", options, sizeof(Options), 1, 1, 0,
    cmd_timeline};
