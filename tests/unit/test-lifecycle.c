/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life-cycle table, cell by cell, written down a second time. */
#include <config.h>

#include "core/lifecycle.h"
#include <string.h>

#define NO SV_N_STATES

/* Rows: from; columns: created failed start exited freeze thaw delete. */
static const SvState expected[SV_N_STATES][SV_N_EVENTS] = {
    /* creating */ {SV_STATE_READY, SV_STATE_GONE, NO, SV_STATE_GONE, NO, NO, NO},
    /* ready    */ {NO, NO, SV_STATE_RUNNING, SV_STATE_STOPPED, NO, NO, SV_STATE_STOPPED},
    /* running  */ {NO, NO, NO, SV_STATE_STOPPED, SV_STATE_PAUSED, NO, NO},
    /* paused   */ {NO, NO, NO, SV_STATE_STOPPED, NO, SV_STATE_RUNNING, NO},
    /* stopped  */ {NO, NO, NO, SV_STATE_STOPPED, NO, NO, SV_STATE_GONE},
    /* gone     */ {NO, NO, NO, SV_STATE_GONE, NO, NO, NO},
};

static void test_every_pair(void)
{
    for (guint state = 0; state < SV_N_STATES; state++)
        for (guint event = 0; event < SV_N_EVENTS; event++) {
            g_autoptr(GError) error = NULL;
            SvState next = 99;
            gboolean ok = sv_lifecycle_next(state, event, &next, &error);

            g_test_message("%s + %s", sv_state_name(state), sv_event_name(event));
            if (expected[state][event] != NO) {
                g_assert_no_error(error);
                g_assert_true(ok);
                g_assert_cmpint(next, ==, expected[state][event]);
            } else {
                const char *word = state == SV_STATE_GONE ? "gone" : sv_state_oci_name(state);

                g_assert_false(ok);
                g_assert_error(error, SV_CORE_ERROR, SV_ERR_STATE);
                g_assert_nonnull(strstr(error->message, word));
                g_assert_cmpint(next, ==, 99);
            }
        }
}

static void test_exit_is_never_forbidden(void)
{
    for (guint state = 0; state < SV_N_STATES; state++) {
        g_autoptr(GError) error = NULL;
        SvState next = 99;

        g_assert_true(sv_lifecycle_next(state, SV_EVENT_EXITED, &next, &error));
        g_assert_no_error(error);
    }
}

static void test_messages(void)
{
    static const struct {
        SvState state;
        SvEvent event;
        const char *text;
    } cases[] = {
        {SV_STATE_STOPPED, SV_EVENT_START, "cannot start a stopped container"},
        {SV_STATE_RUNNING, SV_EVENT_START, "cannot start a running container"},
        {SV_STATE_RUNNING, SV_EVENT_DELETE, "cannot delete a running container"},
        {SV_STATE_PAUSED, SV_EVENT_DELETE, "cannot delete a paused container"},
        {SV_STATE_READY, SV_EVENT_FREEZE, "cannot pause a created container"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        SvState next = 0;

        g_assert_false(sv_lifecycle_next(cases[i].state, cases[i].event, &next, &error));
        g_assert_cmpstr(error->message, ==, cases[i].text);
    }
}

/* Letters: what each verb may work in; c r R p s g, in the order of the states. */
static void test_verbs(void)
{
    static const struct {
        const char *verb, *allowed;
    } cases[] = {
        {"start", "-+----"},
        {"exec", "-++---"},
        {"pause", "--+---"},
        {"resume", "---+--"},
        {"stats", "-+++--"},
        {"delete", "-+--+-"},
        {"ps", "-+++--"},
        {"update", "-+++--"},
        {"kill", "++++--"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        for (guint state = 0; state < SV_N_STATES; state++) {
            g_autoptr(GError) error = NULL;
            gboolean ok = sv_lifecycle_allows(state, cases[i].verb, &error);

            g_test_message("%s in %s", cases[i].verb, sv_state_name(state));
            g_assert_cmpint(ok, ==, cases[i].allowed[state] == '+');
            g_assert_cmpint(error == NULL, ==, ok);
            if (!ok && state == SV_STATE_GONE)
                g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
        }
}

static void test_verb_messages(void)
{
    static const struct {
        SvState state;
        const char *verb, *text;
        SvErr code;
    } cases[] = {
        {SV_STATE_STOPPED, "start", "cannot start a stopped container", SV_ERR_STATE},
        {SV_STATE_RUNNING, "start", "cannot start a running container", SV_ERR_STATE},
        {SV_STATE_STOPPED, "exec", "cannot exec in a stopped container", SV_ERR_STATE},
        {SV_STATE_PAUSED, "exec", "cannot exec in a paused container", SV_ERR_STATE},
        {SV_STATE_STOPPED, "stats", "cannot stat a stopped container: container not running",
            SV_ERR_STATE},
        {SV_STATE_STOPPED, "pause", "cannot pause a stopped container: container not running",
            SV_ERR_STATE},
        {SV_STATE_READY, "pause", "cannot pause a created container", SV_ERR_STATE},
        {SV_STATE_RUNNING, "resume", "cannot resume a running container: container not paused",
            SV_ERR_STATE},
        {SV_STATE_RUNNING, "delete", "cannot delete a running container", SV_ERR_STATE},
        {SV_STATE_STOPPED, "kill", "container not running", SV_ERR_NOT_RUNNING},
        {SV_STATE_GONE, "kill", "container does not exist", SV_ERR_NOT_FOUND},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(sv_lifecycle_allows(cases[i].state, cases[i].verb, &error));
        g_assert_cmpstr(error->message, ==, cases[i].text);
        g_assert_error(error, SV_CORE_ERROR, (gint)cases[i].code);
    }
}

static void test_names(void)
{
    for (guint i = 0; i < SV_N_STATES; i++) {
        SvState state = 99;

        g_assert_true(sv_state_parse(sv_state_name(i), &state));
        g_assert_cmpint(state, ==, i);
    }
    for (guint i = 0; i < SV_N_CAUSES; i++) {
        SvCause cause = 99;

        g_assert_true(sv_cause_parse(sv_cause_name(i), &cause));
        g_assert_cmpint(cause, ==, i);
    }
    SvState state = 99;
    g_assert_false(sv_state_parse("created", &state));
    g_assert_false(sv_state_parse("", &state));
    g_assert_cmpint(state, ==, 99);
    g_assert_cmpstr(sv_state_oci_name(SV_STATE_READY), ==, "created");
    g_assert_cmpstr(sv_event_name(SV_N_EVENTS), ==, "?");
}

static void test_markdown(void)
{
    g_autofree char *text = sv_lifecycle_markdown();

    g_assert_nonnull(strstr(text, "| running | - | - | - | stopped | paused | - | - |\n"));
    g_assert_nonnull(strstr(text, "| from | created |"));
}

/* docs/architecture.md carries the table between two marks; SV_REGENERATE=1 writes it. */
static void test_document(void)
{
    const char *begin = "<!-- lifecycle -->\n", *end = "<!-- /lifecycle -->";
    g_autofree char *table = sv_lifecycle_markdown();
    g_autofree char *path = g_build_filename(SV_SOURCE_ROOT, "docs/architecture.md", NULL);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    char *from = strstr(text, begin), *to = strstr(text, end);
    g_assert_true(from && to && from < to);
    from += strlen(begin);
    g_autofree char *head = g_strndup(text, (gsize)(from - text));
    g_autofree char *there = g_strndup(from, (gsize)(to - from));
    if (g_getenv("SV_REGENERATE")) {
        g_autofree char *all = g_strconcat(head, table, to, NULL);
        g_assert_true(g_file_set_contents(path, all, -1, NULL));
        return;
    }
    g_assert_cmpstr(there, ==, table);
}

/* What list tells of an end is explained by the manual page. */
static void test_causes_explained(void)
{
    g_autofree char *path = g_build_filename(SV_SOURCE_ROOT, "conf/man.text", NULL);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    for (guint cause = SV_CAUSE_EXITED; cause < SV_N_CAUSES; cause++) {
        g_test_message("%s", sv_cause_name(cause));
        /* no container that is listed has it */
        if (cause != SV_CAUSE_ROLLED_BACK)
            g_assert_nonnull(strstr(text, sv_cause_name(cause)));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lifecycle/every-pair", test_every_pair);
    g_test_add_func("/lifecycle/exit-is-never-forbidden", test_exit_is_never_forbidden);
    g_test_add_func("/lifecycle/messages", test_messages);
    g_test_add_func("/lifecycle/verbs", test_verbs);
    g_test_add_func("/lifecycle/verb-messages", test_verb_messages);
    g_test_add_func("/lifecycle/names", test_names);
    g_test_add_func("/lifecycle/markdown", test_markdown);
    g_test_add_func("/lifecycle/document", test_document);
    g_test_add_func("/lifecycle/causes-explained", test_causes_explained);
    return g_test_run();
}
