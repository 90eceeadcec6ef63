/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Work that blocks (mount, sync, unmount) in a thread of its own. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* In the thread: may touch nothing but @data. */
typedef void (*SvTaskFunc)(gpointer data);
/* Runs @work in a thread, then @done on the main loop. */
void sv_task_run(SvTaskFunc work, SvTaskFunc done, gpointer data);

G_END_DECLS
