/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/turns.h"

typedef struct {
    guint limit;
    SvTurnFunc func;
    gpointer user_data;
    GDestroyNotify drop;
} Turn;

struct SvTurns {
    guint refs;
    guint under_way;
    GQueue waiting; /* of Turn */
};

SvTurns *sv_turns_new(void)
{
    SvTurns *turns = g_new0(SvTurns, 1);

    turns->refs = 1;
    g_queue_init(&turns->waiting);
    return turns;
}

SvTurns *sv_turns_ref(SvTurns *turns)
{
    turns->refs++;
    return turns;
}

static void turn_drop(gpointer data)
{
    Turn *turn = data;

    if (turn->drop)
        turn->drop(turn->user_data);
    g_free(turn);
}

void sv_turns_unref(SvTurns *turns)
{
    if (!turns || --turns->refs > 0)
        return;
    g_queue_clear_full(&turns->waiting, turn_drop);
    g_free(turns);
}

/* Those whose turn it is. */
static void go_on(SvTurns *turns)
{
    Turn *turn;

    sv_turns_ref(turns);
    while ((turn = g_queue_peek_head(&turns->waiting)) && turns->under_way < turn->limit) {
        g_queue_pop_head(&turns->waiting);
        turns->under_way++; /* before: it may end at once */
        if (!turn->func(turn->user_data))
            turns->under_way--;
        g_free(turn);
    }
    sv_turns_unref(turns);
}

void sv_turns_take(
    SvTurns *turns, guint limit, SvTurnFunc func, gpointer user_data, GDestroyNotify drop)
{
    Turn *turn = g_new(Turn, 1);

    *turn = (Turn){limit, func, user_data, drop};
    g_queue_push_tail(&turns->waiting, turn);
    go_on(turns);
}

void sv_turns_end(SvTurns *turns)
{
    g_return_if_fail(turns->under_way > 0);
    turns->under_way--;
    go_on(turns);
}
