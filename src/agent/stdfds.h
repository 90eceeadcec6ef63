/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pipes or a console socket for a process that crun is about to make. */
#pragma once

#include "agent/crun.h"
#include "agent/process.h"

G_BEGIN_DECLS

typedef struct SvStdio SvStdio;

/* @dir: where the console socket goes. @with_stdin FALSE: /dev/null. */
SvStdio *sv_stdio_new(const char *dir, guint32 handle, gboolean terminal, gboolean with_stdin,
    guint rows, guint cols, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_stdio_free(SvStdio *self);
/* Sockets for the descriptors from 3 on; @modes as in AttachRequest. */
gboolean sv_stdio_add(SvStdio *self, const guint32 *modes, gsize n, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Path of the console socket, NULL for pipes. */
const char *sv_stdio_console(const SvStdio *self);
/* The child's ends (-1: /dev/null), still owned. */
void sv_stdio_child_fds(const SvStdio *self, SvCrunCall *call);
void sv_stdio_close_child(SvStdio *self);
/* crun has ended well: the agent's ends go to @process. */
gboolean sv_stdio_hand_over(SvStdio *self, SvProcess *process, GError **error);

G_END_DECLS
