/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host's end of the channel: greeting, first word, events, calls; and what a guest may do to it. */
#include "flow-fixture.h"

#include "core/agent.h"

#include "base/fd.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *dir, *path;
    FlowAgent *guest;
    SvAgent *agent;
    GString *log;
    const char *free_in; /* name of a handler */
    int lost_code;
    guint32 stream; /* of the last exit */
} Pair;

static void note(Pair *pair, const char *what, const char *detail)
{
    g_string_append_printf(pair->log, "%s%s%s ", what, detail ? ":" : "", detail ? detail : "");
    if (g_strcmp0(pair->free_in, what) == 0)
        g_clear_pointer(&pair->agent, sv_agent_free);
}

static void on_ready(SvAgent *agent, const Sandvirt__V1__HelloResponse *hello, gpointer user_data)
{
    Pair *pair = user_data;
    g_assert_true(sv_agent_is_ready(agent));
    note(pair, "ready", hello->version);
}

static void on_exited(
    SvAgent *agent, guint32 stream, const Sandvirt__V1__ExitEvent *event, gpointer user_data)
{
    Pair *pair = user_data;
    pair->stream = stream;
    note(pair, "exited", event->container_id);
}

static void on_oom(SvAgent *agent, const char *container_id, guint64 kills, gpointer user_data)
{
    note(user_data, "oom", container_id);
}

static void on_shutting_down(SvAgent *agent, const char *reason, gpointer user_data)
{
    note(user_data, "shutting-down", reason);
}

static void on_frame(SvAgent *agent, const SvFrame *frame, gpointer user_data)
{
    note(user_data, "frame", NULL);
}

static void on_lost(SvAgent *agent, const GError *error, gpointer user_data)
{
    Pair *pair = user_data;
    pair->lost_code = error->code;
    g_assert_false(sv_agent_is_ready(agent));
    note(pair, "lost", NULL);
}

static const SvAgentHandlers handlers = {
    .ready = on_ready,
    .exited = on_exited,
    .oom = on_oom,
    .shutting_down = on_shutting_down,
    .frame = on_frame,
    .lost = on_lost,
};

static const guint8 token[SV_SYNC_ID_LEN] = "0123456789abcdef";

static gboolean pair_connect(Pair *pair, GError **error)
{
    pair->agent = sv_agent_connect(pair->path, token, &handlers, pair, error);
    return pair->agent != NULL;
}

static Pair *pair_new(void)
{
    Pair *pair = g_new0(Pair, 1);
    pair->dir = g_dir_make_tmp("sv-agent-XXXXXX", NULL);
    pair->path = g_build_filename(pair->dir, "agent", NULL);
    pair->guest = flow_agent_new();
    pair->log = g_string_new(NULL);
    flow_agent_listen(pair->guest, pair->path);
    return pair;
}

static void pair_free(Pair *pair)
{
    sv_agent_free(pair->agent);
    flow_settle();
    flow_agent_free(pair->guest);
    flow_settle();
    g_unlink(pair->path);
    g_assert_cmpint(g_rmdir(pair->dir), ==, 0);
    g_string_free(pair->log, TRUE);
    g_free(pair->path);
    g_free(pair->dir);
    g_free(pair);
}

static Pair *pair_ready(void)
{
    Pair *pair = pair_new();
    g_autoptr(GError) error = NULL;
    g_assert_true(pair_connect(pair, &error));
    FLOW_WAIT(sv_agent_is_ready(pair->agent));
    g_string_truncate(pair->log, 0);
    return pair;
}

typedef struct {
    guint done;
    int code;
} Call;

static void on_done(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Call *call = user_data;
    call->done++;
    call->code = error ? error->code : -1;
}

/* ---- */

static void test_connect(void)
{
    Pair *pair = pair_new();
    g_autoptr(GError) error = NULL;
    guint64 first;
    memcpy(&first, token, sizeof first);
    g_assert_true(pair_connect(pair, &error));
    g_assert_false(sv_agent_is_ready(pair->agent));
    FLOW_WAIT(pair->log->len);
    g_assert_cmpstr(pair->log->str, ==, "ready:fake ");
    g_assert_cmpuint(pair->guest->token, ==, first);
    g_assert_cmpint(sv_agent_fd(pair->agent), >=, 0);
    /* the next connection takes its place */
    sv_agent_free(pair->agent);
    g_assert_true(pair_connect(pair, &error));
    FLOW_WAIT(sv_agent_is_ready(pair->agent));
    g_assert_cmpuint(pair->guest->connections, ==, 2);
    g_clear_pointer(&pair->agent, sv_agent_free);
    flow_agent_close(pair->guest, TRUE);
    g_assert_false(pair_connect(pair, &error));
    g_assert_true(sv_error_is(error, SV_ERR_CLOSED));
    g_clear_error(&error);
    g_unlink(pair->path);
    g_assert_false(pair_connect(pair, &error));
    g_assert_true(sv_error_is(error, SV_ERR_NOT_FOUND));
    g_assert_false(sv_agent_is_ready(NULL));
    pair_free(pair);
}

/* Whatever lies in the channel before the session's pattern is another session's. */
static void test_no_pattern(void)
{
    Pair *pair = pair_new();
    g_autofree guint8 *zeros = g_malloc0(1024 * 1024);
    g_autoptr(GError) error = NULL;
    pair->guest->mute = TRUE;
    g_assert_true(pair_connect(pair, &error));
    FLOW_WAIT(pair->guest->connections == 1 && pair->guest->greeting->len == 48);
    int fd = pair->guest->greeting_fd;
    /* the right pattern of another session, then much of nothing */
    sv_fd_set_nonblock(fd, TRUE);
    g_assert_cmpint(write(fd, sv_sync_magic, SV_SYNC_MAGIC_LEN), ==, SV_SYNC_MAGIC_LEN);
    for (guint i = 0; i < 64; i++) {
        if (write(fd, zeros, 1024 * 1024) < 0)
            g_debug("full");
        flow_settle();
    }
    g_assert_cmpstr(pair->log->str, ==, "");
    g_assert_false(sv_agent_is_ready(pair->agent));
    flow_agent_close(pair->guest, TRUE);
    FLOW_WAIT(pair->log->len);
    g_assert_cmpstr(pair->log->str, ==, "lost ");
    g_assert_cmpint(pair->lost_code, ==, SV_ERR_CLOSED);
    pair_free(pair);
}

static void test_hello(gconstpointer data)
{
    Pair *pair = pair_new();
    const char *how = data;
    g_autoptr(GError) error = NULL;
    int code = SV_ERR_CLOSED;
    flow_agent_hold(pair->guest, "Hello");
    g_assert_true(pair_connect(pair, &error));
    FLOW_WAIT(flow_agent_count(pair->guest, "Hello") == 1);
    if (g_str_equal(how, "error")) {
        g_autoptr(GError) failure = g_error_new_literal(SV_RPC_ERROR, SV_ERR_IO, "no");
        sv_conn_reply_error(pair->guest->conn, 1, failure);
        code = SV_ERR_IO;
    } else if (g_str_equal(how, "garbage")) {
        const Sandvirt__V1__StateEvent wrong = {
            .base = PROTOBUF_C_MESSAGE_INIT(&sandvirt__v1__state_event__descriptor),
            .json = (char *)"a version"};
        sv_conn_reply(pair->guest->conn, 1, &wrong.base); /* happens to be a HelloResponse */
        FLOW_WAIT(sv_agent_is_ready(pair->agent));
        g_assert_cmpstr(pair->log->str, ==, "ready:a version ");
        sv_conn_reply(pair->guest->conn, 1, &wrong.base); /* twice */
        flow_settle();
        flow_agent_raw(pair->guest, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11);
        code = SV_ERR_INVALID;
    } else {
        flow_agent_close(pair->guest, FALSE);
    }
    FLOW_WAIT(strstr(pair->log->str, "lost "));
    flow_settle();
    g_assert_true(g_str_has_suffix(pair->log->str, "lost "));
    g_assert_cmpint(pair->lost_code, ==, code);
    pair_free(pair);
}

static void test_events(void)
{
    Pair *pair = pair_ready();
    flow_agent_add(pair->guest, 5, "a");
    flow_agent_oom(pair->guest, "a", 1);
    flow_agent_exit(pair->guest, 5, 3);
    flow_agent_shutting_down(pair->guest);
    flow_agent_output(pair->guest, 5, SV_STREAM_STDOUT, 0, "x");
    FLOW_WAIT(strstr(pair->log->str, "frame"));
    g_assert_cmpstr(pair->log->str, ==, "oom:a exited:a shutting-down:power button frame ");
    flow_settle();
    g_assert_false(flow_agent_find(pair->guest, 5)->exit_acked);
    sv_agent_acknowledge(pair->agent, pair->stream);
    FLOW_WAIT(flow_agent_find(pair->guest, 5)->exit_acked);
    pair_free(pair);
}

static void test_free_inside(gconstpointer data)
{
    const char *where = data;
    Pair *pair = pair_new();
    Call call = {0};
    g_autoptr(GError) error = NULL;
    pair->free_in = where;
    flow_agent_hold(pair->guest, "Ps");
    g_assert_true(pair_connect(pair, &error));
    if (!g_str_equal(where, "ready")) {
        FLOW_WAIT(sv_agent_is_ready(pair->agent));
        sv_agent_call(pair->agent, "Ps", NULL, NULL, 0, on_done, &call);
        FLOW_WAIT(flow_agent_count(pair->guest, "Ps") == 1);
        flow_agent_add(pair->guest, 5, "a");
        flow_agent_exit(pair->guest, 5, 3);
        flow_agent_oom(pair->guest, "a", 1);
        flow_agent_shutting_down(pair->guest);
        flow_agent_output(pair->guest, 5, SV_STREAM_STDOUT, 0, "x");
        if (g_str_equal(where, "lost"))
            flow_agent_raw(pair->guest, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11);
        FLOW_WAIT(call.done);
        g_assert_cmpint(call.code, ==, g_str_equal(where, "lost") ? SV_ERR_INVALID : SV_ERR_CLOSED);
    }
    FLOW_WAIT(!pair->agent);
    flow_settle();
    g_assert_cmpuint(call.done, <=, 1);
    pair_free(pair);
}

/* An event that is no message: the guest broke the protocol, which is told once. */
static void test_bad_event(void)
{
    Pair *pair = pair_ready();
    Sandvirt__V1__Request request = SANDVIRT__V1__REQUEST__INIT;
    guint8 packed[256];
    request.service = (char *)SV_SERVICE_HOST;
    request.method = (char *)"Oom";
    request.payload.data = (guint8 *)"\xff\xff\xff";
    request.payload.len = 3;
    gsize len = sandvirt__v1__request__pack(&request, packed + SV_FRAME_HEADER);
    sv_frame_put_header(packed, (guint32)len, 2, SV_FRAME_REQUEST, 0);
    pair->free_in = "lost";
    flow_agent_raw(pair->guest, packed, SV_FRAME_HEADER + len);
    FLOW_WAIT(!pair->agent);
    g_assert_cmpstr(pair->log->str, ==, "lost ");
    g_assert_cmpint(pair->lost_code, ==, SV_ERR_INVALID);
    pair_free(pair);
}

static void test_calls(void)
{
    Pair *pair = pair_ready();
    Call late = {0}, well = {0}, lost = {0}, none = {0}, after = {0};
    flow_agent_hold(pair->guest, "Ps");
    sv_agent_call(pair->agent, "Ps", NULL, NULL, 20, on_done, &late);
    FLOW_WAIT(late.done);
    g_assert_cmpint(late.code, ==, SV_ERR_TIMEOUT);
    flow_agent_release(pair->guest, "Ps"); /* late, for nobody */
    sv_agent_call(pair->agent, "Time", NULL, NULL, 5000, on_done, &well);
    FLOW_WAIT(well.done);
    g_assert_cmpint(well.code, ==, -1);
    flow_agent_hold(pair->guest, "Ps");
    sv_agent_call(pair->agent, "Ps", NULL, NULL, 0, on_done, &lost);
    FLOW_WAIT(flow_agent_count(pair->guest, "Ps") == 2);
    flow_agent_close(pair->guest, FALSE);
    FLOW_WAIT(strstr(pair->log->str, "lost"));
    g_assert_cmpint(lost.code, ==, SV_ERR_CLOSED);
    sv_agent_call(pair->agent, "Ps", NULL, NULL, 0, on_done, &after);
    sv_agent_call(NULL, "Ps", NULL, NULL, 0, on_done, &none);
    sv_agent_call(NULL, "Ps", NULL, NULL, 0, NULL, NULL);
    g_assert_cmpuint(none.done + after.done, ==, 0);
    FLOW_WAIT(none.done && after.done);
    g_assert_cmpint(none.code, ==, SV_ERR_CLOSED);
    g_assert_cmpint(after.code, ==, SV_ERR_CLOSED);
    g_assert_cmpuint(late.done + well.done + lost.done, ==, 3);
    pair_free(pair);
}

static const char *const places[] = {"ready", "exited", "oom", "shutting-down", "frame", "lost"};
static const char *const hellos[] = {"error", "garbage", "closed"};

int main(int argc, char **argv)
{
    flow_init(&argc, &argv); /* needs nothing of what may be refused */
    g_test_add_func("/flow/agent/connect", test_connect);
    g_test_add_func("/flow/agent/no-pattern", test_no_pattern);
    for (guint i = 0; i < G_N_ELEMENTS(hellos); i++) {
        g_autofree char *path = g_strdup_printf("/flow/agent/hello-%s", hellos[i]);
        g_test_add_data_func(path, hellos[i], test_hello);
    }
    g_test_add_func("/flow/agent/events", test_events);
    for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *path = g_strdup_printf("/flow/agent/free-in-%s", places[i]);
        g_test_add_data_func(path, places[i], test_free_inside);
    }
    g_test_add_func("/flow/agent/bad-event", test_bad_event);
    g_test_add_func("/flow/agent/calls", test_calls);
    return g_test_run();
}
