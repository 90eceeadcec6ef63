/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/thread.h"

typedef struct {
    SvThreadFunc work, done;
    gpointer data;
} Work;

static gboolean on_done(gpointer user_data)
{
    g_autofree Work *work = user_data;

    work->done(work->data);
    return G_SOURCE_REMOVE;
}

static gpointer run(gpointer user_data)
{
    Work *work = user_data;

    work->work(work->data);
    g_idle_add_full(G_PRIORITY_DEFAULT, on_done, work, NULL);
    return NULL;
}

void sv_thread_run(SvThreadFunc work, SvThreadFunc done, gpointer data)
{
    Work *item = g_new0(Work, 1);

    item->work = work;
    item->done = done;
    item->data = data;
    g_thread_unref(g_thread_new("sv-thread", run, item));
}
