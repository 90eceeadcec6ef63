/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/late.h"
#include "agent/boot.h"
#include "agent/crun.h"
#include "agent/hotplug.h"
#include "agent/power.h"

static gboolean on_idle(gpointer user_data)
{
    SvAgent *agent = user_data;

    sv_late_finish(agent, FALSE);
    sv_modules_insert_idle(agent->modules, "late");
    return G_SOURCE_REMOVE;
}

void sv_late_begin(SvAgent *agent)
{
    if (!agent->started)
        g_idle_add(on_idle, agent);
}

void sv_late_finish(SvAgent *agent, gboolean modules)
{
    if (!agent->started) {
        agent->started = TRUE;
        sv_boot_rest();
        sv_power_watch_button(agent);
        sv_hotplug_watch(agent);
        agent->crun = sv_crun_prepare();
    }
    if (modules)
        sv_modules_insert(agent->modules, "late");
}
