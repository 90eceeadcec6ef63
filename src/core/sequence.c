/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* No table of tickets of its own: a ticket is the id of the step's GSource in the default main context
 * (it carries the step's deadline too), and the context tells whether that source still lives. Every
 * move to the next step goes through the main loop, so no callback is ever called from inside a call
 * into the sequence. */
#include <config.h>

#include "core/sequence.h"

#include "core/lifecycle.h"

typedef enum {
    PHASE_FORWARD,
    PHASE_UNDO,
} Phase;

struct SvSequence {
    char *label;
    const SvStep *steps;
    SvSequenceMode mode;
    SvSequenceDone done;
    gpointer user_data;

    Phase phase;
    guint current; /* index of the step being run or undone */
    gboolean begun; /* the current step was begun, so it has to be undone */
    GSource *step; /* lives while the current step is out; owned */
    GSource *advance; /* the next move is due on the main loop; owned */
    GError *error; /* the first failure */
    gint64 start_us; /* of the current step */
    GPtrArray *times; /* SvStepTime */
};

/* A source that belongs to a sequence. */
typedef struct {
    GSource base;
    SvSequence *seq;
} SequenceSource;

static void end_step(SvSequence *seq, GError *error);
static void advance(SvSequence *seq);

static gboolean step_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
    SvSequence *seq = ((SequenceSource *)source)->seq;

    end_step(seq,
        g_error_new(SV_CORE_ERROR, SV_ERR_TIMEOUT, "%s timed out", seq->steps[seq->current].name));
    return G_SOURCE_REMOVE;
}

static gboolean advance_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
    SvSequence *seq = ((SequenceSource *)source)->seq;

    g_source_destroy(seq->advance);
    g_clear_pointer(&seq->advance, g_source_unref);
    advance(seq);
    return G_SOURCE_REMOVE;
}

/* The address of the table is also the mark of our sources. */
static const GSourceFuncs step_funcs = {.dispatch = step_dispatch};
static const GSourceFuncs advance_funcs = {.dispatch = advance_dispatch};

static GSource *source_new(SvSequence *seq, const GSourceFuncs *funcs, gint64 ready_us)
{
    /* GLib only reads the table. */
    GSource *source = g_source_new((GSourceFuncs *)funcs, sizeof(SequenceSource));

    ((SequenceSource *)source)->seq = seq;
    g_source_set_static_name(source, "sv-sequence");
    g_source_set_ready_time(source, ready_us);
    g_source_attach(source, NULL);
    return source;
}

static void schedule(SvSequence *seq)
{
    if (!seq->advance)
        seq->advance = source_new(seq, &advance_funcs, 0);
}

static void log_failure(SvSequence *seq, const GError *error, const char *what)
{
    const char *step = seq->steps[seq->current].name;

    g_log_structured(G_LOG_DOMAIN, G_LOG_LEVEL_WARNING, "PHASE", step, "MESSAGE",
        "ignoring: %s: %s%s: %s", seq->label, what, step, error->message);
}

/* Takes @error: why the current step ended. */
static void end_step(SvSequence *seq, GError *error)
{
    const SvStepTime time = {seq->steps[seq->current].name, seq->start_us, g_get_monotonic_time()};

    g_source_destroy(seq->step);
    g_clear_pointer(&seq->step, g_source_unref);
    if (seq->phase == PHASE_FORWARD)
        g_ptr_array_add(seq->times, g_memdup2(&time, sizeof time));
    if (error && seq->phase == PHASE_UNDO)
        log_failure(seq, error, "undoing ");
    else if (error && seq->mode == SV_SEQUENCE_CONTINUE)
        log_failure(seq, error, "");
    if (error && !seq->error)
        seq->error = g_steal_pointer(&error);
    g_clear_error(&error);
    schedule(seq);
}

void sv_sequence_drop(SvSequence *seq)
{
    if (!seq)
        return;
    if (seq->step)
        g_source_destroy(seq->step);
    if (seq->advance)
        g_source_destroy(seq->advance);
    g_clear_pointer(&seq->step, g_source_unref);
    g_clear_pointer(&seq->advance, g_source_unref);
    g_clear_error(&seq->error);
    g_ptr_array_unref(seq->times);
    g_free(seq->label);
    g_free(seq);
}

/* One line that tells where the time went. */
static void log_times(const SvSequence *seq)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < seq->times->len; i++) {
        const SvStepTime *time = seq->times->pdata[i];

        g_string_append_printf(text, "%s %s %" G_GINT64_FORMAT " ms", i > 0 ? "," : "", time->name,
            (time->end_us - time->start_us) / 1000);
    }
    g_debug("%s took:%s", seq->label, text->str);
}

static void finish(SvSequence *seq)
{
    log_times(seq);
    seq->done(seq, seq->error, seq->user_data);
    sv_sequence_drop(seq);
}

static void begin_step(SvSequence *seq, SvStepFunc func)
{
    const SvStep *step = &seq->steps[seq->current];
    gint64 deadline = -1;

    seq->begun = TRUE;
    seq->start_us = g_get_monotonic_time();
    if (step->timeout_ms > 0)
        deadline = seq->start_us + (gint64)step->timeout_ms * 1000;
    seq->step = source_new(seq, &step_funcs, deadline);
    g_debug("%s: %s%s", seq->label, seq->phase == PHASE_UNDO ? "undoing " : "", step->name);
    if (func)
        func(seq, seq->user_data);
    else
        sv_sequence_next(seq);
}

/* From the step that was begun last, backwards. */
static void undo_next(SvSequence *seq)
{
    if (seq->phase == PHASE_FORWARD) {
        seq->phase = PHASE_UNDO;
        if (!seq->begun) {
            finish(seq);
            return;
        }
    } else if (seq->current == 0) {
        finish(seq);
        return;
    } else {
        seq->current--;
    }
    begin_step(seq, seq->steps[seq->current].undo);
}

/* On the main loop: no step is out. */
static void advance(SvSequence *seq)
{
    if (seq->phase == PHASE_UNDO || (seq->error && seq->mode == SV_SEQUENCE_UNDO)) {
        undo_next(seq);
        return;
    }
    if (seq->begun)
        seq->current++;
    if (!seq->steps[seq->current].name) {
        finish(seq);
        return;
    }
    begin_step(seq, seq->steps[seq->current].run);
}

SvSequence *sv_sequence_start(const char *label, const SvStep *steps, SvSequenceMode mode,
    SvSequenceDone done, gpointer user_data)
{
    SvSequence *seq = g_new0(SvSequence, 1);

    seq->label = g_strdup(label);
    seq->steps = steps;
    seq->mode = mode;
    seq->done = done;
    seq->user_data = user_data;
    seq->times = g_ptr_array_new_with_free_func(g_free);
    schedule(seq);
    return seq;
}

void sv_sequence_next(SvSequence *seq)
{
    sv_sequence_fail(seq, NULL);
}

void sv_sequence_fail(SvSequence *seq, GError *error)
{
    if (seq->step) {
        end_step(seq, error);
        return;
    }
    g_debug("%s: ignoring a late answer", seq->label);
    g_clear_error(&error);
}

void sv_sequence_cancel(SvSequence *seq, GError *error)
{
    if (seq->mode == SV_SEQUENCE_CONTINUE || seq->phase == PHASE_UNDO || seq->error) {
        g_clear_error(&error);
        return;
    }
    if (seq->step) {
        end_step(seq, error);
        return;
    }
    seq->error = error;
    schedule(seq);
}

/* ---- tickets */

static SvSequence *ticket_lookup(guint64 ticket)
{
    GSource *source = NULL;

    if (ticket == 0 || ticket > G_MAXUINT)
        return NULL;
    source = g_main_context_find_source_by_id(NULL, (guint)ticket);
    /* Not one of ours when the id was given again after four thousand million sources. */
    if (!source || source->source_funcs != &step_funcs)
        return NULL;
    return ((SequenceSource *)source)->seq;
}

guint64 sv_sequence_ticket(SvSequence *seq)
{
    return seq->step ? g_source_get_id(seq->step) : 0;
}

void sv_ticket_next(guint64 ticket)
{
    sv_ticket_fail(ticket, NULL);
}

void sv_ticket_fail(guint64 ticket, GError *error)
{
    SvSequence *seq = ticket_lookup(ticket);

    if (seq)
        sv_sequence_fail(seq, error);
    else
        g_clear_error(&error);
}

void sv_tickets_end(GArray **tickets, const GError *error)
{
    g_autoptr(GArray) ended = *tickets;

    *tickets = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (guint i = 0; i < ended->len; i++)
        sv_ticket_fail(g_array_index(ended, guint64, i), error ? g_error_copy(error) : NULL);
}

gboolean sv_ticket_valid(guint64 ticket)
{
    return ticket_lookup(ticket) != NULL;
}

gpointer sv_sequence_handle(SvSequence *seq)
{
    guint64 ticket = sv_sequence_ticket(seq);

    return g_memdup2(&ticket, sizeof ticket);
}

void sv_ticket_done(const GError *error, gpointer handle)
{
    g_autofree guint64 *ticket = handle;

    sv_ticket_fail(*ticket, error ? g_error_copy(error) : NULL);
}

const GPtrArray *sv_sequence_times(const SvSequence *seq)
{
    return seq->times;
}
