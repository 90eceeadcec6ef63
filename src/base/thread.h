/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Work that blocks (writing back, unmounting, mounting) in a thread of its own. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* In the thread: may touch nothing but @data. */
typedef void (*SvThreadFunc)(gpointer data);
/* Runs @work in a thread, then @done on the main loop. */
void sv_thread_run(SvThreadFunc work, SvThreadFunc done, gpointer data);

G_END_DECLS
