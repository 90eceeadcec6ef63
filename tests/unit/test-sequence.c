/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sequences: failure, time-out and cancellation in every step; late answers; undoing that fails. */
#include <config.h>

#include "core/lifecycle.h"
#include "core/sequence.h"
#include <string.h>

#define N_STEPS 4

typedef enum {
    NOW, /* answers inside run */
    LATER, /* answers on a later turn of the loop */
    FAIL, /* fails inside run */
    FAIL_LATER,
    HANG, /* never answers */
} How;

typedef struct {
    How how[N_STEPS], undo_how[N_STEPS];
    GString *trace; /* "a b ~b ~a" */
    GMainLoop *loop;
    SvSequence *seq;
    guint64 ticket; /* of the step that hangs, or hung */
    int cancel_in; /* step that cancels, -1 */
    gboolean cancel_after; /* ... after it has answered */
    guint done;
    GError *error;
    guint n_times;
} Test;

typedef struct {
    guint64 ticket;
    gboolean fail;
} Answer;

static GError *failure(void)
{
    return g_error_new(SV_CORE_ERROR, SV_ERR_FAILED, "made to fail");
}

static gboolean answer_later(gpointer data)
{
    Answer *answer = data;

    g_assert_true(sv_ticket_valid(answer->ticket));
    if (answer->fail)
        sv_ticket_fail(answer->ticket, failure());
    else
        sv_ticket_next(answer->ticket);
    g_assert_false(sv_ticket_valid(answer->ticket));
    return G_SOURCE_REMOVE;
}

static void act(Test *t, SvSequence *seq, How how)
{
    Answer answer = {sv_sequence_ticket(seq), how == FAIL_LATER};

    g_assert_true(sv_ticket_valid(answer.ticket));
    switch (how) {
    case NOW:
        sv_sequence_next(seq);
        break;
    case FAIL:
        sv_sequence_fail(seq, failure());
        break;
    case LATER:
    case FAIL_LATER:
        g_timeout_add_full(
            G_PRIORITY_DEFAULT, 1, answer_later, g_memdup2(&answer, sizeof answer), g_free);
        break;
    case HANG:
        t->ticket = answer.ticket;
        break;
    }
}

static void run_step(Test *t, SvSequence *seq, guint index)
{
    g_string_append_printf(t->trace, "%c ", 'a' + index);
    if ((int)index == t->cancel_in && !t->cancel_after)
        sv_sequence_cancel(seq, g_error_new(SV_CORE_ERROR, SV_ERR_CANCELLED, "the caller is gone"));
    else
        act(t, seq, t->how[index]);
    if ((int)index == t->cancel_in && t->cancel_after)
        sv_sequence_cancel(seq, g_error_new(SV_CORE_ERROR, SV_ERR_CANCELLED, "the caller is gone"));
}

static void undo_step(Test *t, SvSequence *seq, guint index)
{
    g_string_append_printf(t->trace, "~%c ", 'a' + index);
    /* No effect any more. */
    sv_sequence_cancel(seq, failure());
    act(t, seq, t->undo_how[index]);
}

#define STEP(i)                                                                                    \
    static void run##i(SvSequence *seq, gpointer data)                                             \
    {                                                                                              \
        run_step(data, seq, i);                                                                    \
    }                                                                                              \
    static void undo##i(SvSequence *seq, gpointer data)                                            \
    {                                                                                              \
        undo_step(data, seq, i);                                                                   \
    }
STEP(0)
STEP(1)
STEP(2)
STEP(3)

static const SvStep steps[] = {
    {"a", run0, undo0, 30},
    {"b", run1, undo1, 30},
    {"c", run2, undo2, 30},
    {"d", run3, undo3, 30},
    {NULL},
};

static void done(SvSequence *seq, const GError *error, gpointer user_data)
{
    Test *t = user_data;
    const GPtrArray *times = sv_sequence_times(seq);

    t->done++;
    t->error = error ? g_error_copy(error) : NULL;
    t->n_times = times->len;
    for (guint i = 0; i < times->len; i++) {
        const SvStepTime *time = times->pdata[i];

        g_assert_cmpint(time->end_us, >=, time->start_us);
        g_assert_cmpint(time->name[0], ==, 'a' + i);
    }
    g_main_loop_quit(t->loop);
}

static void test_init(Test *t)
{
    *t = (Test){.cancel_in = -1};
    t->trace = g_string_new(NULL);
    t->loop = g_main_loop_new(NULL, FALSE);
}

static void test_run(Test *t, SvSequenceMode mode)
{
    t->seq = sv_sequence_start("test", steps, mode, done, t);
    g_assert_cmpuint(t->trace->len, ==, 0);
    g_main_loop_run(t->loop);
    g_assert_cmpuint(t->done, ==, 1);
}

static void test_clear(Test *t)
{
    /* Whatever is still on its way must be ignored. */
    for (guint i = 0; i < 5; i++)
        g_main_context_iteration(NULL, FALSE);
    g_assert_cmpuint(t->done, ==, 1);
    g_string_free(t->trace, TRUE);
    g_main_loop_unref(t->loop);
    g_clear_error(&t->error);
}

/* "a b c ~c ~b ~a " for 2 */
static char *undone_trace(guint last)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i <= last; i++)
        g_string_append_printf(text, "%c ", 'a' + i);
    for (guint i = last + 1; i > 0; i--)
        g_string_append_printf(text, "~%c ", 'a' + i - 1);
    return g_string_free(text, FALSE);
}

static void test_success(void)
{
    static const How hows[] = {NOW, LATER};

    for (gsize h = 0; h < G_N_ELEMENTS(hows); h++)
        for (guint mode = 0; mode < 2; mode++) {
            Test t;

            test_init(&t);
            for (guint i = 0; i < N_STEPS; i++)
                t.how[i] = hows[h];
            test_run(&t, mode);
            g_assert_no_error(t.error);
            g_assert_cmpstr(t.trace->str, ==, "a b c d ");
            g_assert_cmpuint(t.n_times, ==, N_STEPS);
            test_clear(&t);
        }
}

static void test_failure_in_every_step(void)
{
    static const How hows[] = {FAIL, FAIL_LATER};

    for (gsize h = 0; h < G_N_ELEMENTS(hows); h++)
        for (guint bad = 0; bad < N_STEPS; bad++) {
            g_autofree char *expected = undone_trace(bad);
            Test t;

            test_init(&t);
            t.how[bad] = hows[h];
            test_run(&t, SV_SEQUENCE_UNDO);
            g_assert_error(t.error, SV_CORE_ERROR, SV_ERR_FAILED);
            g_assert_cmpstr(t.trace->str, ==, expected);
            g_assert_cmpuint(t.n_times, ==, bad + 1);
            test_clear(&t);
        }
}

static void test_timeout_in_every_step(void)
{
    for (guint bad = 0; bad < N_STEPS; bad++) {
        g_autofree char *expected = undone_trace(bad);
        g_autofree char *text = g_strdup_printf("%c timed out", 'a' + bad);
        Test t;

        test_init(&t);
        t.how[bad] = HANG;
        test_run(&t, SV_SEQUENCE_UNDO);
        g_assert_error(t.error, SV_CORE_ERROR, SV_ERR_TIMEOUT);
        g_assert_cmpstr(t.error->message, ==, text);
        g_assert_cmpstr(t.trace->str, ==, expected);
        /* The late answer. */
        g_assert_false(sv_ticket_valid(t.ticket));
        sv_ticket_next(t.ticket);
        sv_ticket_fail(t.ticket, failure());
        test_clear(&t);
    }
}

static void test_cancel_in_every_step(void)
{
    for (guint after = 0; after < 2; after++)
        for (guint at = 0; at < N_STEPS; at++) {
            g_autofree char *expected = undone_trace(at);
            Test t;

            test_init(&t);
            t.cancel_in = at;
            t.cancel_after = after;
            test_run(&t, SV_SEQUENCE_UNDO);
            g_assert_error(t.error, SV_CORE_ERROR, SV_ERR_CANCELLED);
            g_assert_cmpstr(t.trace->str, ==, expected);
            test_clear(&t);
        }
}

static gboolean cancel_it(gpointer data)
{
    Test *t = data;

    sv_sequence_cancel(t->seq, g_error_new(SV_CORE_ERROR, SV_ERR_CANCELLED, "gone"));
    /* What answers afterwards is late. */
    g_assert_false(sv_ticket_valid(t->ticket));
    sv_ticket_next(t->ticket);
    return G_SOURCE_REMOVE;
}

static void test_cancel_from_outside(void)
{
    for (guint at = 0; at < N_STEPS; at++) {
        g_autofree char *expected = undone_trace(at);
        Test t;

        test_init(&t);
        t.how[at] = HANG;
        g_timeout_add(5, cancel_it, &t);
        test_run(&t, SV_SEQUENCE_UNDO);
        g_assert_error(t.error, SV_CORE_ERROR, SV_ERR_CANCELLED);
        g_assert_cmpstr(t.trace->str, ==, expected);
        test_clear(&t);
    }
}

static void test_cancel_before_the_first(void)
{
    Test t;

    test_init(&t);
    t.seq = sv_sequence_start("test", steps, SV_SEQUENCE_UNDO, done, &t);
    sv_sequence_cancel(t.seq, failure());
    sv_sequence_cancel(t.seq, g_error_new(SV_CORE_ERROR, SV_ERR_CANCELLED, "second"));
    g_main_loop_run(t.loop);
    g_assert_error(t.error, SV_CORE_ERROR, SV_ERR_FAILED);
    g_assert_cmpstr(t.trace->str, ==, "");
    test_clear(&t);
}

/* Each undo is tried whatever the others say; the first error is the one told. */
static void test_undo_fails(void)
{
    static const How hows[] = {FAIL, FAIL_LATER, HANG};

    for (gsize h = 0; h < G_N_ELEMENTS(hows); h++) {
        g_autofree char *expected = undone_trace(3);
        Test t;

        test_init(&t);
        t.how[3] = HANG;
        for (guint i = 0; i < N_STEPS; i++)
            t.undo_how[i] = hows[h];
        test_run(&t, SV_SEQUENCE_UNDO);
        g_assert_error(t.error, SV_CORE_ERROR, SV_ERR_TIMEOUT);
        g_assert_cmpstr(t.error->message, ==, "d timed out");
        g_assert_cmpstr(t.trace->str, ==, expected);
        test_clear(&t);
    }
}

static void test_continue(void)
{
    Test t;

    test_init(&t);
    t.how[0] = HANG;
    t.how[1] = FAIL;
    t.how[3] = FAIL_LATER;
    t.cancel_in = 2;
    t.cancel_after = TRUE;
    test_run(&t, SV_SEQUENCE_CONTINUE);
    g_assert_error(t.error, SV_CORE_ERROR, SV_ERR_TIMEOUT);
    g_assert_cmpstr(t.trace->str, ==, "a b c d ");
    g_assert_cmpuint(t.n_times, ==, N_STEPS);
    test_clear(&t);
}

static void test_null_functions(void)
{
    static const SvStep some[] = {
        {"a", NULL, undo0}, {"b", run1, NULL}, {"c", run2, undo2}, {NULL}};
    Test t;

    test_init(&t);
    t.how[2] = FAIL;
    sv_sequence_start("test", some, SV_SEQUENCE_UNDO, done, &t);
    g_main_loop_run(t.loop);
    g_assert_cmpstr(t.trace->str, ==, "b c ~c ~a ");
    test_clear(&t);
}

static void test_no_steps(void)
{
    static const SvStep none[] = {{NULL}};
    Test t;

    test_init(&t);
    sv_sequence_start("test", none, SV_SEQUENCE_UNDO, done, &t);
    g_main_loop_run(t.loop);
    g_assert_no_error(t.error);
    test_clear(&t);
}

static void never(SvSequence *seq, const GError *error, gpointer user_data)
{
    g_assert_not_reached();
}

/* Dropped in a step: no callback any more, tickets are stale. */
static void test_drop(void)
{
    Test t;

    test_init(&t);
    sv_sequence_drop(NULL);
    sv_sequence_drop(sv_sequence_start("test", steps, SV_SEQUENCE_UNDO, never, &t));
    t.how[0] = HANG;
    t.seq = sv_sequence_start("test", steps, SV_SEQUENCE_UNDO, never, &t);
    while (!t.ticket)
        g_main_context_iteration(NULL, TRUE);
    sv_sequence_drop(t.seq);
    g_assert_false(sv_ticket_valid(t.ticket));
    sv_ticket_next(t.ticket);
    for (guint i = 0; i < 5; i++)
        g_main_context_iteration(NULL, FALSE);
    g_assert_cmpstr(t.trace->str, ==, "a ");
    t.done = 1;
    test_clear(&t);
}

/* Tickets are never those of foreign sources. */
static gboolean nothing(gpointer data)
{
    return G_SOURCE_CONTINUE;
}

static void test_foreign_tickets(void)
{
    guint id = g_timeout_add(100000, nothing, NULL);

    g_assert_false(sv_ticket_valid(id));
    g_assert_false(sv_ticket_valid(0));
    g_assert_false(sv_ticket_valid(G_MAXUINT64));
    sv_ticket_fail(id, failure());
    g_assert_true(g_source_remove(id));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    /* What is ignored is told as a warning. */
    g_log_set_always_fatal(G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
    g_test_add_func("/sequence/success", test_success);
    g_test_add_func("/sequence/failure-in-every-step", test_failure_in_every_step);
    g_test_add_func("/sequence/timeout-in-every-step", test_timeout_in_every_step);
    g_test_add_func("/sequence/cancel-in-every-step", test_cancel_in_every_step);
    g_test_add_func("/sequence/cancel-from-outside", test_cancel_from_outside);
    g_test_add_func("/sequence/cancel-before-the-first", test_cancel_before_the_first);
    g_test_add_func("/sequence/undo-fails", test_undo_fails);
    g_test_add_func("/sequence/continue", test_continue);
    g_test_add_func("/sequence/null-functions", test_null_functions);
    g_test_add_func("/sequence/no-steps", test_no_steps);
    g_test_add_func("/sequence/drop", test_drop);
    g_test_add_func("/sequence/foreign-tickets", test_foreign_tickets);
    return g_test_run();
}
