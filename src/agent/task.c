/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/task.h"

typedef struct {
    SvTaskFunc work;
    SvTaskFunc done;
    gpointer data;
} Task;

static gboolean on_done(gpointer user_data)
{
    g_autofree Task *task = user_data;

    task->done(task->data);
    return G_SOURCE_REMOVE;
}

static gpointer run(gpointer user_data)
{
    Task *task = user_data;

    task->work(task->data);
    g_idle_add_full(G_PRIORITY_DEFAULT, on_done, task, NULL);
    return NULL;
}

void sv_task_run(SvTaskFunc work, SvTaskFunc done, gpointer data)
{
    Task *task = g_new0(Task, 1);

    task->work = work;
    task->done = done;
    task->data = data;
    g_thread_unref(g_thread_new("sv-task", run, task));
}
