/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/lifecycle.h"

#include "base/names.h"
#include <string.h>

SV_DEFINE_ERROR_QUARK(core)

/* Internal names, in the record. OCI has "created" for READY and none for GONE. */
static const char *const state_names[SV_N_STATES] = {
    [SV_STATE_CREATING] = "creating",
    [SV_STATE_READY] = "ready",
    [SV_STATE_RUNNING] = "running",
    [SV_STATE_PAUSED] = "paused",
    [SV_STATE_STOPPED] = "stopped",
    [SV_STATE_GONE] = "gone",
};

static const char *const event_names[SV_N_EVENTS] = {
    [SV_EVENT_CREATED] = "created",
    [SV_EVENT_FAILED] = "failed",
    [SV_EVENT_START] = "start",
    [SV_EVENT_EXITED] = "exited",
    [SV_EVENT_FREEZE] = "freeze",
    [SV_EVENT_THAW] = "thaw",
    [SV_EVENT_DELETE] = "delete",
};

static const char *const cause_names[SV_N_CAUSES] = {
    [SV_CAUSE_NONE] = "none",
    [SV_CAUSE_EXITED] = "exited",
    [SV_CAUSE_SIGNALLED] = "signalled",
    [SV_CAUSE_SHIM_KILLED] = "shim-killed",
    [SV_CAUSE_DOMAIN_DESTROYED] = "domain-destroyed",
    [SV_CAUSE_DOMAIN_CRASHED] = "domain-crashed",
    [SV_CAUSE_GUEST_PANIC] = "guest-panic",
    [SV_CAUSE_GUEST_POWERED_OFF] = "guest-powered-off",
    [SV_CAUSE_AGENT_LOST] = "agent-lost",
    [SV_CAUSE_SHARE_LOST] = "share-lost",
    [SV_CAUSE_OOM] = "oom",
    [SV_CAUSE_ROLLED_BACK] = "rolled-back",
    [SV_CAUSE_HOST_RESTARTED] = "host-restarted",
    [SV_CAUSE_DISK_HELD] = "disk-held",
};

/* What an event is called in "cannot ... a stopped container". */
static const char *const event_phrases[SV_N_EVENTS] = {
    [SV_EVENT_CREATED] = "finish creating",
    [SV_EVENT_FAILED] = "roll back",
    [SV_EVENT_START] = "start",
    [SV_EVENT_EXITED] = "end",
    [SV_EVENT_FREEZE] = "pause",
    [SV_EVENT_THAW] = "resume",
    [SV_EVENT_DELETE] = "delete",
};

/* The moves. A cell that is not named is forbidden: cells hold the next state + 1, so that 0 means
 * forbidden. EXITED has a cell in every state: an exit is never a forbidden move. */
#define TO(state) (SV_STATE_##state + 1)
static const guint8 moves[SV_N_STATES][SV_N_EVENTS] = {
    [SV_STATE_CREATING] =
        {
            [SV_EVENT_CREATED] = TO(READY),
            [SV_EVENT_FAILED] = TO(GONE),
            [SV_EVENT_EXITED] = TO(GONE),
        },
    [SV_STATE_READY] =
        {
            [SV_EVENT_START] = TO(RUNNING),
            [SV_EVENT_EXITED] = TO(STOPPED),
            [SV_EVENT_DELETE] = TO(STOPPED),
        },
    [SV_STATE_RUNNING] =
        {
            [SV_EVENT_EXITED] = TO(STOPPED),
            [SV_EVENT_FREEZE] = TO(PAUSED),
        },
    [SV_STATE_PAUSED] =
        {
            [SV_EVENT_EXITED] = TO(STOPPED),
            [SV_EVENT_THAW] = TO(RUNNING),
        },
    [SV_STATE_STOPPED] =
        {
            [SV_EVENT_EXITED] = TO(STOPPED),
            [SV_EVENT_DELETE] = TO(GONE),
        },
    [SV_STATE_GONE] =
        {
            [SV_EVENT_EXITED] = TO(GONE),
        },
};
#undef TO

#define IN(state) (1u << SV_STATE_##state)
/* What a verb may do: the states it works in, and its words in "cannot ... a stopped container". */
static const struct {
    const char *verb, *phrase;
    guint states;
} verbs[] = {
    {"start", "start", IN(READY)},
    {"exec", "exec in", IN(READY) | IN(RUNNING)},
    {"pause", "pause", IN(RUNNING)},
    {"resume", "resume", IN(PAUSED)},
    {"stats", "stat", IN(READY) | IN(RUNNING) | IN(PAUSED)},
    {"delete", "delete", IN(READY) | IN(STOPPED)},
    {"ps", "list the processes of", IN(READY) | IN(RUNNING) | IN(PAUSED)},
    {"update", "update", IN(READY) | IN(RUNNING) | IN(PAUSED)},
    {"kill", "kill", IN(CREATING) | IN(READY) | IN(RUNNING) | IN(PAUSED)},
};
#undef IN

const char *sv_state_name(SvState state)
{
    return sv_enum_name(state_names, SV_N_STATES, state);
}

const char *sv_state_oci_name(SvState state)
{
    if (state == SV_STATE_READY)
        return "created";
    /* Nothing is left of it: OCI knows no other word. */
    if (state == SV_STATE_GONE)
        return "stopped";
    return sv_state_name(state);
}

const char *sv_event_name(SvEvent event)
{
    return sv_enum_name(event_names, SV_N_EVENTS, event);
}

const char *sv_cause_name(SvCause cause)
{
    return sv_enum_name(cause_names, SV_N_CAUSES, cause);
}

gboolean sv_state_parse(const char *text, SvState *state)
{
    guint value = 0;

    if (!sv_enum_parse(state_names, SV_N_STATES, text, &value))
        return FALSE;
    *state = value;
    return TRUE;
}

gboolean sv_cause_parse(const char *text, SvCause *cause)
{
    guint value = 0;

    if (!sv_enum_parse(cause_names, SV_N_CAUSES, text, &value))
        return FALSE;
    *cause = value;
    return TRUE;
}

/* The word for the state in messages: what the user sees in `state`. */
static const char *state_word(SvState state)
{
    return state == SV_STATE_GONE ? "gone" : sv_state_oci_name(state);
}

gboolean sv_lifecycle_next(SvState state, SvEvent event, SvState *next, GError **error)
{
    g_return_val_if_fail((guint)state < SV_N_STATES, FALSE);
    g_return_val_if_fail((guint)event < SV_N_EVENTS, FALSE);

    if (moves[state][event] == 0) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_STATE, "cannot %s a %s container",
            event_phrases[event], state_word(state));
        return FALSE;
    }
    *next = moves[state][event] - 1;
    return TRUE;
}

/* What runc says in that case: there is who looks for it. */
static const char *runc_phrase(SvState state, const char *verb)
{
    if (strcmp(verb, "resume") == 0)
        return ": container not paused";
    if (state == SV_STATE_STOPPED &&
        (strcmp(verb, "pause") == 0 || strcmp(verb, "update") == 0 || strcmp(verb, "stats") == 0))
        return ": container not running";
    return "";
}

gboolean sv_lifecycle_allows(SvState state, const char *verb, GError **error)
{
    g_return_val_if_fail((guint)state < SV_N_STATES, FALSE);

    for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++) {
        if (strcmp(verbs[i].verb, verb) != 0)
            continue;
        if (verbs[i].states & (1u << state))
            return TRUE;
        if (state == SV_STATE_GONE)
            g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "container does not exist");
        else if (state == SV_STATE_STOPPED && strcmp(verb, "kill") == 0)
            g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_RUNNING, "container not running");
        else
            g_set_error(error, SV_CORE_ERROR, SV_ERR_STATE, "cannot %s a %s container%s",
                verbs[i].phrase, state_word(state), runc_phrase(state, verb));
        return FALSE;
    }
    g_return_val_if_reached(FALSE);
}

char *sv_lifecycle_markdown(void)
{
    GString *text = g_string_new("| from |");

    for (guint event = 0; event < SV_N_EVENTS; event++)
        g_string_append_printf(text, " %s |", event_names[event]);
    g_string_append(text, "\n|---|");
    for (guint event = 0; event < SV_N_EVENTS; event++)
        g_string_append(text, "---|");
    g_string_append_c(text, '\n');
    for (guint state = 0; state < SV_N_STATES; state++) {
        g_string_append_printf(text, "| %s |", state_names[state]);
        for (guint event = 0; event < SV_N_EVENTS; event++) {
            guint cell = moves[state][event];

            g_string_append_printf(text, " %s |", cell ? state_names[cell - 1] : "-");
        }
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}
