/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "flow-agent.h"

#include "base/fd.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ALL "*"

typedef struct {
    gboolean fails, held;
    SvErr code;
    guint count, spared;
    GPtrArray *waiting; /* Held */
} Plan;

typedef struct {
    guint32 stream;
    char *method;
    GBytes *payload;
} Held;

static void held_free(gpointer data)
{
    Held *held = data;
    g_free(held->method);
    g_bytes_unref(held->payload);
    g_free(held);
}

static void plan_free(gpointer data)
{
    Plan *plan = data;
    g_ptr_array_unref(plan->waiting);
    g_free(plan);
}

static Plan *plan_of(FlowAgent *agent, const char *method)
{
    Plan *plan = g_hash_table_lookup(agent->plans, method);
    if (!plan) {
        plan = g_new0(Plan, 1);
        plan->waiting = g_ptr_array_new_with_free_func(held_free);
        g_hash_table_insert(agent->plans, g_strdup(method), plan);
    }
    return plan;
}

static void process_free(gpointer data)
{
    FlowGuestProcess *process = data;
    g_free(process->id);
    g_free(process->config);
    g_string_free(process->input, TRUE);
    g_free(process);
}

FlowAgent *flow_agent_new(void)
{
    FlowAgent *agent = g_new0(FlowAgent, 1);
    agent->listener = agent->greeting_fd = -1;
    agent->greeting = g_byte_array_new();
    agent->plans = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, plan_free);
    agent->processes = g_hash_table_new_full(NULL, NULL, NULL, process_free);
    return agent;
}

static void hang_up(FlowAgent *agent)
{
    GHashTableIter iter;
    gpointer value;
    if (agent->greet_source)
        g_source_remove(agent->greet_source);
    agent->greet_source = 0;
    sv_fd_clear(&agent->greeting_fd);
    g_byte_array_set_size(agent->greeting, 0);
    g_clear_pointer(&agent->conn, sv_conn_free);
    g_hash_table_iter_init(&iter, agent->plans);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_set_size(((Plan *)value)->waiting, 0);
}

void flow_agent_close(FlowAgent *agent, gboolean for_good)
{
    hang_up(agent);
    if (!for_good)
        return;
    if (agent->listen_source)
        g_source_remove(agent->listen_source);
    agent->listen_source = 0;
    sv_fd_clear(&agent->listener);
    g_hash_table_remove_all(agent->processes);
    agent->set_up = FALSE;
}

void flow_agent_free(FlowAgent *agent)
{
    if (!agent)
        return;
    flow_agent_close(agent, TRUE);
    g_hash_table_destroy(agent->processes);
    g_hash_table_destroy(agent->plans);
    g_byte_array_unref(agent->greeting);
    g_free(agent->resources);
    g_free(agent->first);
    g_free(agent);
}

/* ---- processes */

FlowGuestProcess *flow_agent_find(FlowAgent *agent, guint32 handle)
{
    return g_hash_table_lookup(agent->processes, GUINT_TO_POINTER(handle));
}

FlowGuestProcess *flow_agent_add(FlowAgent *agent, guint32 handle, const char *id)
{
    FlowGuestProcess *process = g_new0(FlowGuestProcess, 1);
    process->handle = handle;
    process->id = g_strdup(id);
    process->input = g_string_new(NULL);
    process->state = SANDVIRT__V1__PROCESS_STATE__PROCESS_CREATED;
    g_hash_table_insert(agent->processes, GUINT_TO_POINTER(handle), process);
    return process;
}

static GPtrArray *processes_of(FlowAgent *agent, const char *id)
{
    GPtrArray *found = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, agent->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (!id || g_str_equal(((FlowGuestProcess *)value)->id, id))
            g_ptr_array_add(found, value);
    return found;
}

static FlowGuestProcess *init_of(FlowAgent *agent, const char *id)
{
    g_autoptr(GPtrArray) all = processes_of(agent, id);
    for (guint i = 0; i < all->len; i++)
        if (!((FlowGuestProcess *)all->pdata[i])->exec)
            return all->pdata[i];
    return NULL;
}

typedef struct {
    FlowAgent *agent;
    guint32 handle;
} Event;

static void on_exit_acked(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    g_autofree Event *event = user_data;
    if (error)
        return; /* the connection has gone, the agent may have too */
    FlowGuestProcess *process = flow_agent_find(event->agent, event->handle);
    if (process)
        process->exit_acked = TRUE;
}

static void tell_exit(FlowAgent *agent, FlowGuestProcess *process)
{
    if (!agent->conn)
        return;
    Sandvirt__V1__ExitEvent message = SANDVIRT__V1__EXIT_EVENT__INIT;
    message.handle = process->handle;
    message.container_id = process->id;
    message.exit_code = process->code;
    message.oom = process->oom;
    process->exits_sent++;
    Event *event = g_new0(Event, 1);
    event->agent = agent;
    event->handle = process->handle;
    sv_conn_call(
        agent->conn, SV_SERVICE_HOST, "Exit", &message.base, NULL, 0, -1, on_exit_acked, event);
}

static void end_process(FlowAgent *agent, FlowGuestProcess *process, int code)
{
    if (process->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED)
        return;
    process->state = SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED;
    process->code = code;
    process->frozen = FALSE;
    tell_exit(agent, process);
}

void flow_agent_exit(FlowAgent *agent, guint32 handle, int code)
{
    FlowGuestProcess *process = flow_agent_find(agent, handle);
    g_assert_nonnull(process);
    end_process(agent, process, code);
}

void flow_agent_oom(FlowAgent *agent, const char *id, guint64 kills)
{
    Sandvirt__V1__OomEvent message = SANDVIRT__V1__OOM_EVENT__INIT;
    message.container_id = (char *)id;
    message.kills = kills;
    sv_conn_call(agent->conn, SV_SERVICE_HOST, "Oom", &message.base, NULL, 0, -1, NULL, NULL);
}

void flow_agent_shutting_down(FlowAgent *agent)
{
    Sandvirt__V1__ShuttingDownEvent message = SANDVIRT__V1__SHUTTING_DOWN_EVENT__INIT;
    message.reason = (char *)"power button";
    sv_conn_call(
        agent->conn, SV_SERVICE_HOST, "ShuttingDown", &message.base, NULL, 0, -1, NULL, NULL);
}

void flow_agent_output(
    FlowAgent *agent, guint32 handle, guint8 flags, guint64 offset, const char *text)
{
    sv_conn_send(agent->conn, sv_message_data(handle, flags, offset, text, strlen(text)));
}

void flow_agent_raw(FlowAgent *agent, const void *data, gsize len)
{
    sv_conn_send(agent->conn, g_bytes_new(data, len));
}

/* ---- methods */

static GError *no_such(const char *what)
{
    return g_error_new(SV_RPC_ERROR, SV_ERR_NOT_FOUND, "the guest has no such %s", what);
}

/* Unpacks into a variable of the message's type. */
#define UNPACK(Type, descriptor, payload)                                                          \
    ((Type *)sv_message_unpack(                                                                    \
        &(descriptor), g_bytes_get_data(payload, NULL), g_bytes_get_size(payload), NULL))

static void do_hello(FlowAgent *agent, guint32 stream)
{
    Sandvirt__V1__HelloResponse reply = SANDVIRT__V1__HELLO_RESPONSE__INIT;
    g_autoptr(GPtrArray) all = processes_of(agent, NULL);
    g_autofree Sandvirt__V1__ProcessInfo *infos = g_new0(Sandvirt__V1__ProcessInfo, all->len);
    g_autofree Sandvirt__V1__ProcessInfo **refs = g_new0(Sandvirt__V1__ProcessInfo *, all->len);
    for (guint i = 0; i < all->len; i++) {
        const FlowGuestProcess *process = all->pdata[i];
        sandvirt__v1__process_info__init(&infos[i]);
        infos[i].handle = process->handle;
        infos[i].container_id = process->id;
        infos[i].exec = process->exec;
        infos[i].state = process->state;
        infos[i].pid = 100 + process->handle;
        infos[i].exit_code = process->code;
        infos[i].frozen = process->frozen;
        refs[i] = &infos[i];
    }
    reply.version = (char *)"fake";
    reply.kernel = (char *)"none";
    reply.set_up = agent->set_up;
    reply.processes = refs;
    reply.n_processes = all->len;
    sv_conn_reply(agent->conn, stream, &reply.base);
    for (guint i = 0; i < all->len; i++) {
        FlowGuestProcess *process = all->pdata[i];
        if (process->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED && !process->exit_acked)
            tell_exit(agent, process);
    }
}

static void do_create(FlowAgent *agent, guint32 stream, GBytes *payload)
{
    Sandvirt__V1__CreateRequest *request =
        UNPACK(Sandvirt__V1__CreateRequest, sandvirt__v1__create_request__descriptor, payload);
    Sandvirt__V1__CreateResponse reply = SANDVIRT__V1__CREATE_RESPONSE__INIT;
    FlowGuestProcess *process = flow_agent_add(agent, request->handle, request->container_id);
    process->config = g_strndup((const char *)request->config.data, request->config.len);
    process->rows = request->rows;
    process->cols = request->cols;
    reply.pid = 100 + request->handle;
    sv_conn_reply(agent->conn, stream, &reply.base);
    sv_message_free(request);
}

static GError *do_container(FlowAgent *agent, const char *method, GBytes *payload)
{
    Sandvirt__V1__ContainerRequest *request = UNPACK(
        Sandvirt__V1__ContainerRequest, sandvirt__v1__container_request__descriptor, payload);
    FlowGuestProcess *process = init_of(agent, request->container_id);
    sv_message_free(request);
    if (!process)
        return no_such("container");
    if (g_str_equal(method, "Start"))
        process->state = SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING;
    else
        process->frozen = g_str_equal(method, "Pause");
    if (!process->frozen && process->term_pending)
        end_process(agent, process, 128 + SIGTERM);
    return NULL;
}

static void do_exec(FlowAgent *agent, guint32 stream, GBytes *payload)
{
    Sandvirt__V1__ExecRequest *request =
        UNPACK(Sandvirt__V1__ExecRequest, sandvirt__v1__exec_request__descriptor, payload);
    Sandvirt__V1__ExecResponse reply = SANDVIRT__V1__EXEC_RESPONSE__INIT;
    FlowGuestProcess *init = init_of(agent, request->container_id);
    if (!init || init->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED) {
        g_autoptr(GError) error = no_such("container");
        sv_conn_reply_error(agent->conn, stream, error);
    } else {
        FlowGuestProcess *process = flow_agent_add(agent, request->handle, request->container_id);
        process->exec = TRUE;
        process->config = g_strndup((const char *)request->process.data, request->process.len);
        process->rows = request->rows;
        process->cols = request->cols;
        process->state = SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING;
        reply.pid = 100 + request->handle;
        sv_conn_reply(agent->conn, stream, &reply.base);
    }
    sv_message_free(request);
}

static void do_update(FlowAgent *agent, GBytes *payload)
{
    Sandvirt__V1__UpdateRequest *request =
        UNPACK(Sandvirt__V1__UpdateRequest, sandvirt__v1__update_request__descriptor, payload);
    GString *first = g_string_new(NULL);
    for (size_t i = 0; i < request->n_first; i++)
        g_string_append_printf(first, "%s=%s ", request->first[i]->key, request->first[i]->value);
    g_free(agent->resources);
    agent->resources = g_strndup((const char *)request->resources.data, request->resources.len);
    g_free(agent->first);
    agent->first = g_string_free(first, FALSE);
    sv_message_free(request);
}

static GError *do_signal(FlowAgent *agent, GBytes *payload)
{
    Sandvirt__V1__SignalRequest *request =
        UNPACK(Sandvirt__V1__SignalRequest, sandvirt__v1__signal_request__descriptor, payload);
    g_autoptr(GPtrArray) all = processes_of(agent, request->container_id);
    gboolean found = FALSE;
    for (guint i = 0; i < all->len; i++) {
        FlowGuestProcess *process = all->pdata[i];
        if (!request->all && process->handle != request->handle)
            continue;
        if (process->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED)
            continue;
        found = TRUE;
        process->term_pending |= request->signal == SIGTERM && process->frozen;
        if (!agent->immortal &&
            (request->signal == SIGKILL || (request->signal == SIGTERM && !process->frozen)))
            end_process(agent, process, 128 + (int)request->signal);
    }
    sv_message_free(request);
    return found ? NULL : no_such("process");
}

static GError *do_remove(FlowAgent *agent, guint32 stream, GBytes *payload)
{
    Sandvirt__V1__RemoveRequest *request =
        UNPACK(Sandvirt__V1__RemoveRequest, sandvirt__v1__remove_request__descriptor, payload);
    Sandvirt__V1__RemoveResponse reply = SANDVIRT__V1__REMOVE_RESPONSE__INIT;
    g_autoptr(GPtrArray) all = processes_of(agent, request->container_id);
    for (guint i = 0; i < all->len && !agent->forgetful; i++)
        end_process(agent, all->pdata[i], 128 + SIGKILL);
    sv_message_free(request);
    if (!all->len)
        return no_such("container");
    sv_conn_reply(agent->conn, stream, &reply.base);
    return NULL;
}

static GError *do_attach(FlowAgent *agent, guint32 stream, GBytes *payload)
{
    Sandvirt__V1__StreamRequest *request =
        UNPACK(Sandvirt__V1__StreamRequest, sandvirt__v1__stream_request__descriptor, payload);
    Sandvirt__V1__StreamResponse reply = SANDVIRT__V1__STREAM_RESPONSE__INIT;
    FlowGuestProcess *process = flow_agent_find(agent, request->handle);
    if (process) {
        process->attaches++;
        process->from[SV_STREAM_STDOUT] = request->stdout_offset;
        process->from[SV_STREAM_STDERR] = request->stderr_offset;
        reply.stdin_received = process->input->len;
        sv_conn_reply(agent->conn, stream, &reply.base);
    }
    sv_message_free(request);
    return process ? NULL : no_such("process");
}

/* A connection is a row like a process: input and acknowledgements of its handle. */
static void do_forward(FlowAgent *agent, GBytes *payload)
{
    Sandvirt__V1__ForwardRequest *request =
        UNPACK(Sandvirt__V1__ForwardRequest, sandvirt__v1__forward_request__descriptor, payload);
    g_autofree char *id = g_strdup_printf("forward-%u%s", request->port, request->ipv6 ? "-6" : "");
    flow_agent_add(agent, request->handle, id);
    sv_message_free(request);
}

static void do_resize(FlowAgent *agent, GBytes *payload)
{
    Sandvirt__V1__ResizeRequest *request =
        UNPACK(Sandvirt__V1__ResizeRequest, sandvirt__v1__resize_request__descriptor, payload);
    FlowGuestProcess *process = flow_agent_find(agent, request->handle);
    if (process) {
        process->rows = request->rows;
        process->cols = request->cols;
    }
    sv_message_free(request);
}

static void do_stats(FlowAgent *agent, guint32 stream)
{
    Sandvirt__V1__StatsResponse reply = SANDVIRT__V1__STATS_RESPONSE__INIT;
    Sandvirt__V1__KeyValue file = SANDVIRT__V1__KEY_VALUE__INIT;
    Sandvirt__V1__KeyValue *files[] = {&file};
    file.key = (char *)"cpu.stat";
    file.value = (char *)"usage_usec 7\n";
    reply.files = files;
    reply.n_files = 1;
    sv_conn_reply(agent->conn, stream, &reply.base);
}

static void do_wait_block(FlowAgent *agent, guint32 stream)
{
    Sandvirt__V1__WaitBlockResponse reply = SANDVIRT__V1__WAIT_BLOCK_RESPONSE__INIT;
    g_autofree char *node = g_strdup_printf("/dev/vd%c", 'a' + agent->disks % 26);
    reply.node = node;
    reply.major = 254;
    reply.minor = 16 * agent->disks++;
    reply.size_bytes = agent->disk_bytes;
    sv_conn_reply(agent->conn, stream, &reply.base);
}

static void serve(FlowAgent *agent, guint32 stream, const char *method, GBytes *payload)
{
    g_autoptr(GError) error = NULL;
    gboolean answered = FALSE;
    if (g_str_equal(method, "Hello")) {
        do_hello(agent, stream);
        answered = TRUE;
    } else if (g_str_equal(method, "Create")) {
        do_create(agent, stream, payload);
        answered = TRUE;
    } else if (g_str_equal(method, "Exec")) {
        do_exec(agent, stream, payload);
        answered = TRUE;
    } else if (g_str_equal(method, "WaitBlock")) {
        do_wait_block(agent, stream);
        answered = TRUE;
    } else if (g_str_equal(method, "Stats")) {
        do_stats(agent, stream);
        answered = TRUE;
    } else if (g_str_equal(method, "Remove")) {
        error = do_remove(agent, stream, payload);
        answered = !error;
    } else if (g_str_equal(method, "Attach")) {
        error = do_attach(agent, stream, payload);
        answered = !error;
    } else if (g_str_equal(method, "Signal")) {
        error = do_signal(agent, payload);
    } else if (g_str_equal(method, "Start") || g_str_equal(method, "Pause") ||
        g_str_equal(method, "Resume")) {
        error = do_container(agent, method, payload);
    } else if (g_str_equal(method, "Resize")) {
        do_resize(agent, payload);
    } else if (g_str_equal(method, "Update")) {
        do_update(agent, payload);
    } else if (g_str_equal(method, "Forward")) {
        do_forward(agent, payload);
    } else if (g_str_equal(method, "Setup")) {
        agent->set_up = TRUE;
    }
    if (error)
        sv_conn_reply_error(agent->conn, stream, error);
    else if (!answered)
        sv_conn_reply(agent->conn, stream, NULL);
    if (g_str_equal(method, "Shutdown") && agent->on_shutdown)
        agent->on_shutdown(agent->user_data);
}

/* As in src/agent/service.c: core asks for nothing else. */
static const struct {
    const char *method;
    const ProtobufCMessageDescriptor *type;
} known[] = {
    {"Hello", &sandvirt__v1__hello_request__descriptor},
    {"Setup", &sandvirt__v1__setup_request__descriptor},
    {"AddSharedMemory", &sandvirt__v1__shared_memory__descriptor},
    {"WaitBlock", &sandvirt__v1__wait_block_request__descriptor},
    {"Create", &sandvirt__v1__create_request__descriptor},
    {"Start", &sandvirt__v1__container_request__descriptor},
    {"Pause", &sandvirt__v1__container_request__descriptor},
    {"Resume", &sandvirt__v1__container_request__descriptor},
    {"Exec", &sandvirt__v1__exec_request__descriptor},
    {"Signal", &sandvirt__v1__signal_request__descriptor},
    {"Remove", &sandvirt__v1__remove_request__descriptor},
    {"Forget", &sandvirt__v1__handle_request__descriptor},
    {"Attach", &sandvirt__v1__stream_request__descriptor},
    {"Resize", &sandvirt__v1__resize_request__descriptor},
    {"Update", &sandvirt__v1__update_request__descriptor},
    {"AddNode", &sandvirt__v1__node_request__descriptor},
    {"RemoveNode", &sandvirt__v1__node_request__descriptor},
    {"Stats", &sandvirt__v1__stats_request__descriptor},
    {"Ps", &sandvirt__v1__ps_request__descriptor},
    {"Online", &sandvirt__v1__online_request__descriptor},
    {"ConfigureNetwork", &sandvirt__v1__network_request__descriptor},
    {"Forward", &sandvirt__v1__forward_request__descriptor},
    {"Time", &sandvirt__v1__time_request__descriptor},
    {"Shutdown", &sandvirt__v1__shutdown_request__descriptor},
};

static void check_request(const SvRequest *request)
{
    guint i = 0;
    g_assert_cmpstr(request->service, ==, SV_SERVICE_AGENT);
    while (i < G_N_ELEMENTS(known) && !g_str_equal(known[i].method, request->method))
        i++;
    if (i == G_N_ELEMENTS(known))
        g_error("the agent has no method %s", request->method);
    ProtobufCMessage *message =
        sv_message_unpack(known[i].type, request->payload, request->payload_len, NULL);
    if (!message)
        g_error("%s without a message of its type", request->method);
    sv_message_free(message);
}

static void on_request(SvConn *conn, const SvRequest *request, gpointer user_data)
{
    FlowAgent *agent = user_data;
    Plan *plan = plan_of(agent, request->method);
    g_autoptr(GBytes) payload = g_bytes_new(request->payload, request->payload_len);
    check_request(request);
    plan->count++;
    if (plan->spared) {
        plan->spared--;
        serve(agent, request->stream, request->method, payload);
    } else if (plan->held || plan_of(agent, ALL)->held) {
        Held *held = g_new0(Held, 1);
        held->stream = request->stream;
        held->method = g_strdup(request->method);
        held->payload = g_bytes_ref(payload);
        g_ptr_array_add(plan->waiting, held);
    } else if (plan->fails) {
        g_autoptr(GError) error =
            g_error_new(SV_RPC_ERROR, plan->code, "%s: told to fail", request->method);
        sv_conn_reply_error(conn, request->stream, error);
    } else {
        serve(agent, request->stream, request->method, payload);
    }
}

static void on_frame(SvConn *conn, const SvFrame *frame, gpointer user_data)
{
    FlowAgent *agent = user_data;
    FlowGuestProcess *process = flow_agent_find(agent, frame->stream);
    guint stream = frame->flags & SV_STREAM_MASK;
    guint64 offset;
    const guint8 *data;
    gsize len;
    g_assert_true(sv_frame_parse_offset(frame, &offset, &data, &len));
    g_assert_cmpuint(stream, <=, SV_STREAM_STDERR);
    if (!process)
        return;
    if (frame->type == SV_FRAME_ACK) {
        process->acked[stream] = offset;
        process->flags[stream] |= frame->flags;
        return;
    }
    g_assert_cmpuint(stream, ==, SV_STREAM_STDIN);
    if (offset > process->input->len)
        g_error("a hole in the input");
    gsize known = process->input->len - offset;
    if (len > known)
        g_string_append_len(process->input, (const char *)data + known, (gssize)(len - known));
    process->input_eof |= (frame->flags & SV_FLAG_EOF) != 0;
    if (!agent->deaf)
        sv_conn_send(conn, sv_message_ack(process->handle, SV_STREAM_STDIN, process->input->len));
}

static void on_closed(SvConn *conn, const GError *error, gpointer user_data)
{
    hang_up(user_data);
}

static const SvConnHandlers handlers = {
    .request = on_request,
    .frame = on_frame,
    .closed = on_closed,
};

/* ---- sessions: MAGIC TOKEN SESSION from the host, MAGIC SESSION back */

#define GREETING_LEN (SV_SYNC_MAGIC_LEN + 2 * SV_SYNC_ID_LEN)

static void greet(FlowAgent *agent)
{
    const guint8 *session = agent->greeting->data + SV_SYNC_MAGIC_LEN + SV_SYNC_ID_LEN;
    g_assert_cmpmem(agent->greeting->data, SV_SYNC_MAGIC_LEN, sv_sync_magic, SV_SYNC_MAGIC_LEN);
    memcpy(&agent->token, agent->greeting->data + SV_SYNC_MAGIC_LEN, sizeof agent->token);
    g_autoptr(GByteArray) answer = g_byte_array_new();
    /* the rest of a former session comes first */
    g_byte_array_append(answer, (const guint8 *)"rest", 4);
    g_byte_array_append(answer, sv_sync_magic, SV_SYNC_MAGIC_LEN);
    g_byte_array_append(answer, session, SV_SYNC_ID_LEN);
    int fd = sv_fd_steal(&agent->greeting_fd);
    agent->conn = sv_conn_new(fd, 2, SV_FRAME_MAX, &handlers, agent);
    sv_conn_send(agent->conn, g_bytes_new(answer->data, answer->len));
}

static gboolean on_greeting(gint fd, GIOCondition condition, gpointer user_data)
{
    FlowAgent *agent = user_data;
    guint8 bytes[GREETING_LEN];
    ssize_t n = recv(fd, bytes, GREETING_LEN - agent->greeting->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (n > 0)
        g_byte_array_append(agent->greeting, bytes, (guint)n);
    if (n > 0 && agent->greeting->len < GREETING_LEN)
        return G_SOURCE_CONTINUE;
    agent->greet_source = 0;
    if (n <= 0)
        sv_fd_clear(&agent->greeting_fd);
    else if (!agent->mute)
        greet(agent);
    return G_SOURCE_REMOVE;
}

static gboolean on_connection(gint fd, GIOCondition condition, gpointer user_data)
{
    FlowAgent *agent = user_data;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (peer < 0)
        return G_SOURCE_CONTINUE;
    hang_up(agent); /* as QEMU: one client, the next one waits until it has gone */
    agent->connections++;
    agent->greeting_fd = peer;
    agent->greet_source = g_unix_fd_add(peer, G_IO_IN | G_IO_HUP, on_greeting, agent);
    return G_SOURCE_CONTINUE;
}

void flow_agent_listen_fd(FlowAgent *agent, int fd)
{
    flow_agent_close(agent, TRUE);
    agent->listener = fd;
    agent->listen_source = g_unix_fd_add(fd, G_IO_IN, on_connection, agent);
}

void flow_agent_listen(FlowAgent *agent, const char *path)
{
    g_autoptr(GError) error = NULL;
    int fd = sv_unix_listen(path, 0600, 4, &error);
    g_assert_no_error(error);
    flow_agent_listen_fd(agent, fd);
}

/* ---- plans */

void flow_agent_fail(FlowAgent *agent, const char *method, SvErr code)
{
    Plan *plan = plan_of(agent, method);
    plan->fails = code != SV_ERR_LAST;
    plan->code = code;
}

void flow_agent_spare(FlowAgent *agent, const char *method, guint n)
{
    plan_of(agent, method)->spared = n;
}

void flow_agent_hold(FlowAgent *agent, const char *method)
{
    plan_of(agent, method ? method : ALL)->held = TRUE;
}

static void serve_waiting(FlowAgent *agent, Plan *plan)
{
    while (agent->conn && plan->waiting->len) {
        Held *held = g_ptr_array_steal_index(plan->waiting, 0);
        serve(agent, held->stream, held->method, held->payload);
        held_free(held);
    }
}

void flow_agent_release(FlowAgent *agent, const char *method)
{
    plan_of(agent, method ? method : ALL)->held = FALSE;
    if (plan_of(agent, ALL)->held)
        return;
    g_autoptr(GList) plans = g_hash_table_get_values(agent->plans);
    for (GList *item = plans; item; item = item->next)
        if (!((Plan *)item->data)->held)
            serve_waiting(agent, item->data);
}

guint flow_agent_count(FlowAgent *agent, const char *method)
{
    return plan_of(agent, method)->count;
}
