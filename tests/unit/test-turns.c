/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/turns.h"

typedef struct {
    SvTurns *turns;
    GString *seen;
    char name;
    gboolean given_up, at_once;
} Client;

static void client_drop(gpointer data)
{
    Client *client = data;

    g_string_append_printf(client->seen, "-%c", client->name);
    g_free(client);
}

static gboolean begin(gpointer data)
{
    Client *client = data;
    gboolean needed = !client->given_up;

    g_string_append_c(client->seen, needed ? client->name : '.');
    if (client->at_once)
        sv_turns_end(client->turns);
    g_free(client);
    return needed;
}

static void take(SvTurns *turns, GString *seen, char name, gboolean given_up, gboolean at_once)
{
    Client *client = g_new(Client, 1);

    *client = (Client){turns, seen, name, given_up, at_once};
    sv_turns_take(turns, 2, begin, client, client_drop);
}

static void test_order(void)
{
    g_autoptr(GString) seen = g_string_new(NULL);
    SvTurns *turns = sv_turns_new();

    for (char name = 'a'; name <= 'f'; name++)
        take(turns, seen, name, name == 'd', FALSE);
    g_assert_cmpstr(seen->str, ==, "ab");
    sv_turns_end(turns);
    g_assert_cmpstr(seen->str, ==, "abc");
    sv_turns_end(turns); /* who has given up takes no turn */
    g_assert_cmpstr(seen->str, ==, "abc.e");
    sv_turns_end(turns);
    sv_turns_end(turns);
    sv_turns_end(turns);
    g_assert_cmpstr(seen->str, ==, "abc.ef");
    take(turns, seen, 'g', FALSE, FALSE);
    g_assert_cmpstr(seen->str, ==, "abc.efg");
    sv_turns_end(turns);
    sv_turns_unref(turns);
}

static void test_at_once(void)
{
    g_autoptr(GString) seen = g_string_new(NULL);
    SvTurns *turns = sv_turns_new();

    take(turns, seen, 'a', FALSE, FALSE);
    take(turns, seen, 'b', FALSE, FALSE);
    for (char name = 'c'; name <= 'h'; name++)
        take(turns, seen, name, FALSE, TRUE);
    g_assert_cmpstr(seen->str, ==, "ab");
    sv_turns_end(turns);
    g_assert_cmpstr(seen->str, ==, "abcdefgh");
    sv_turns_end(turns);
    sv_turns_unref(turns);
}

/* The owner has gone; a call of it is still out. */
static void test_owner_gone(void)
{
    g_autoptr(GString) seen = g_string_new(NULL);
    SvTurns *turns = sv_turns_new();

    take(turns, seen, 'a', FALSE, FALSE);
    take(turns, seen, 'b', FALSE, FALSE);
    take(turns, seen, 'c', TRUE, FALSE);
    sv_turns_ref(turns);
    sv_turns_unref(turns);
    sv_turns_end(turns);
    g_assert_cmpstr(seen->str, ==, "ab.");
    sv_turns_end(turns);
    take(turns, seen, 'd', FALSE, FALSE);
    take(turns, seen, 'e', FALSE, FALSE);
    take(turns, seen, 'f', FALSE, FALSE);
    sv_turns_unref(turns); /* nobody's turn will end any more */
    g_assert_cmpstr(seen->str, ==, "ab.de-f");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/turns/order", test_order);
    g_test_add_func("/turns/at-once", test_at_once);
    g_test_add_func("/turns/owner-gone", test_owner_gone);
    return g_test_run();
}
