/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/timeline-write.h"

#include "core/timeline.h"

#include <string.h>

void sv_timeline_note_machine(SvSandbox *sandbox, const SvSequence *seq)
{
    const GPtrArray *times = sv_sequence_times(seq);
    g_array_set_size(sandbox->machine_times, 0);
    for (guint i = 0; i < times->len; i++)
        g_array_append_vals(sandbox->machine_times, times->pdata[i], 1);
}

void sv_timeline_note_agent(SvSandbox *sandbox, const Sandvirt__V1__HelloResponse *hello)
{
    sandbox->agent_heard_us = g_get_monotonic_time();
    sandbox->agent_start_ns = hello->uptime_ns;
    sandbox->agent_ready_ns = hello->ready_ns;
}

/* The guest's clock starts with its kernel. Its numbers are the guest's: any are possible. */
static void add_guest(
    SvTimeline *timeline, const SvSandbox *sandbox, const SvStepTime *step, gint64 zero_us)
{
    gint64 heard_us = CLAMP(sandbox->agent_heard_us, step->start_us, step->end_us);
    gint64 ready_us = CLAMP(sandbox->agent_ready_ns / 1000, 0, heard_us - step->start_us);
    gint64 start_us = CLAMP(sandbox->agent_start_ns / 1000, 0, ready_us);
    gint64 kernel_us = heard_us - ready_us;
    sv_timeline_add(timeline, "guest: firmware", step->start_us - zero_us, kernel_us - zero_us);
    sv_timeline_add(timeline, "guest: kernel", kernel_us - zero_us, kernel_us + start_us - zero_us);
    sv_timeline_add(
        timeline, "guest: agent", kernel_us + start_us - zero_us, step->end_us - zero_us);
}

static void add_machine(SvTimeline *timeline, const SvSandbox *sandbox, gint64 zero_us)
{
    for (guint i = 0; i < sandbox->machine_times->len; i++) {
        const SvStepTime *step = &g_array_index(sandbox->machine_times, SvStepTime, i);
        g_autofree char *name = g_strdup_printf("%s: %s",
            g_str_equal(step->name, "connect") || g_str_equal(step->name, "domain") ? "libvirt"
                                                                                    : "machine",
            step->name);
        if (g_str_equal(step->name, "agent"))
            add_guest(timeline, sandbox, step, zero_us);
        else
            sv_timeline_add(timeline, name, step->start_us - zero_us, step->end_us - zero_us);
    }
}

static const char *phase_name(const char *step)
{
    return g_str_equal(step, "guest") ? "crun" : step;
}

void sv_timeline_write(SvContainer *container, const SvSequence *seq)
{
    SvSandbox *sandbox = container->sandbox;
    const GPtrArray *times = sv_sequence_times(seq);
    g_autoptr(SvTimeline) timeline = sv_timeline_new(container->record->id);
    g_autoptr(GError) error = NULL;
    gint64 zero_us = container->record->created_us - g_get_real_time() + g_get_monotonic_time();
    for (guint i = 0; i < times->len; i++) {
        const SvStepTime *step = times->pdata[i];
        if (i == 0)
            sv_timeline_add(timeline, "request", 0, step->start_us - zero_us);
        timeline->machine |= g_str_equal(step->name, "machine") && sandbox->machine_times->len > 0;
        if (g_str_equal(step->name, "machine") && timeline->machine)
            add_machine(timeline, sandbox, zero_us);
        else
            sv_timeline_add(
                timeline, phase_name(step->name), step->start_us - zero_us, step->end_us - zero_us);
    }
    g_array_set_size(sandbox->machine_times, 0); /* of the first container only */
    if (!sv_timeline_save(timeline, sandbox->paths->root, &error))
        g_info("ignoring: timeline of container %s: %s", container->record->id, error->message);
}
