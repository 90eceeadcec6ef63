/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A row of asynchronous steps with their undoing: create runs it forward and, on the first failure or
 * cancellation, backward over what was done; stop runs it forward whatever single steps say. Main loop. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

typedef struct SvSequence SvSequence;
/* Begins the step; ends it by exactly one sv_sequence_next / sv_sequence_fail, now or later. */
typedef void (*SvStepFunc)(SvSequence *seq, gpointer user_data);

typedef struct {
    const char *name; /* phase name in logs, time-out errors and the timeline */
    SvStepFunc run; /* nullable: nothing to do going forward */
    SvStepFunc undo; /* nullable; also ends by next or fail. Called for every step that was BEGUN */
    guint
        timeout_ms; /* 0: none; passing it fails the step with SV_ERR_TIMEOUT "STEP timed out"; of the
                         undo too */
} SvStep;

typedef enum {
    SV_SEQUENCE_UNDO, /* first failure: undo backwards, each undo tried whatever the others say */
    SV_SEQUENCE_CONTINUE, /* failures are logged and remembered (the first), all steps run */
} SvSequenceMode;

/* Called from the main loop, as run and undo are: never from inside a call into the sequence.
 * @error NULL: all well. In CONTINUE mode the first failure. The sequence frees itself afterwards. */
typedef void (*SvSequenceDone)(SvSequence *seq, const GError *error, gpointer user_data);

/* @steps: array ended by a NULL name, static. @label: for logs ("create ID"). Runs from the main loop's next
 * turn (never inside this call). */
SvSequence *sv_sequence_start(const char *label, const SvStep *steps, SvSequenceMode mode,
    SvSequenceDone done, gpointer user_data);
void sv_sequence_next(SvSequence *seq);
/* Takes @error. A late call for a step that timed out or was cancelled is ignored: that is why steps
 * keep a ticket: */
void sv_sequence_fail(SvSequence *seq, GError *error);
/* Ticket of the current step: pass it to asynchronous calls, and finish through these; a stale ticket
 * (timed out, cancelled, sequence ended and freed) is a no-op. Tickets are unique in the process. Main
 * thread only (a ticket is the id of the step's GSource). 0 when no step is out. */
guint64 sv_sequence_ticket(SvSequence *seq);
void sv_ticket_next(guint64 ticket);
void sv_ticket_fail(guint64 ticket, GError *error); /* takes error */
gboolean sv_ticket_valid(guint64 ticket);
/* Ends the steps of all that wait: *tickets (of guint64) is empty before the first is ended. @error NULL: next. */
void sv_tickets_end(GArray **tickets, const GError *error);
/* For calls that answer with an error or none: sv_ticket_done as their callback, and as its user_data a
 * handle of the current step (transfer full: the callback frees it). */
gpointer sv_sequence_handle(SvSequence *seq);
void sv_ticket_done(const GError *error, gpointer handle);
/* Cancels: the current step is abandoned as if it failed with @error (taken), then undone. In
 * CONTINUE mode: no effect. No effect while undoing. Not after @done: forget @seq there. */
void sv_sequence_cancel(SvSequence *seq, GError *error);
/* Ends it without any further callback, @done included: for an owner that is being freed. NULL is fine.
 * Not from inside @done. */
void sv_sequence_drop(SvSequence *seq);
/* Name and duration of each step that ended going forward. */
typedef struct {
    const char *name;
    gint64 start_us, end_us; /* monotonic */
} SvStepTime;
/* GPtrArray of SvStepTime (transfer none); also in @done. */
const GPtrArray *sv_sequence_times(const SvSequence *seq);

G_END_DECLS
