/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns: of what keeps the guest busy only so much is asked for at once, the rest in the order it came.
 * All at once would not be done sooner, but all of it late, and each call has a deadline. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct SvTurns SvTurns;

/* Calls the guest. FALSE: given up meanwhile, the turn was not needed. */
typedef gboolean (*SvTurnFunc)(gpointer user_data);

SvTurns *sv_turns_new(void) G_GNUC_WARN_UNUSED_RESULT;
/* Calls may end when their owner is gone: each holds a reference until its sv_turns_end. Whoever still
 * waits at the last one is dropped. */
SvTurns *sv_turns_ref(SvTurns *turns);
void sv_turns_unref(SvTurns *turns);

/* Calls @func, now or when fewer than @limit are under way. @drop frees @user_data when it never is. */
void sv_turns_take(
    SvTurns *turns, guint limit, SvTurnFunc func, gpointer user_data, GDestroyNotify drop);
/* What was begun by a @func that returned TRUE has ended. */
void sv_turns_end(SvTurns *turns);

G_END_DECLS
