/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/network.h"
#include "agent/setup.h"
#include <string.h>

#define DEFAULT_TIMEOUT_MS 10000

/* ---- the work, in the order in which the kernel wants it */

gboolean sv_network_pass(SvNetWork *work, GError *local, const char *what, GError **error)
{
    if (what)
        g_prefix_error(&local, "%s: ", what);
    if (!work->before) {
        g_propagate_error(error, local);
        return FALSE;
    }
    g_ptr_array_add(work->warnings, g_strdup(local->message));
    g_error_free(local);
    return TRUE;
}

gboolean sv_network_reread_devices(SvNetWork *work, GError **error)
{
    g_clear_pointer(&work->devices, g_ptr_array_unref);
    work->devices = sv_net_devices_read(work->nl, error);
    return work->devices != NULL;
}

/* Setting one to what it is may change others. */
static gboolean is_set(const Sandvirt__V1__Sysctl *sysctl)
{
    g_autofree char *path = sv_setup_sysctl_path(sysctl->key);
    g_autofree char *text = NULL;

    return path && g_file_get_contents(path, &text, NULL, NULL) &&
        strcmp(g_strchomp(text), sysctl->value) == 0;
}

/* The guest's kernel may not know all of the host's. */
static void apply_sysctls(SvNetWork *work)
{
    const SvNetRequest *wanted = work->wanted;

    for (gsize i = 0; !work->before && i < wanted->n_sysctls; i++) {
        g_autoptr(GError) error = NULL;

        if (is_set(wanted->sysctls[i]) || sv_setup_sysctls(wanted->sysctls + i, 1, &error) ||
            sv_error_is(error, SV_ERR_NOT_FOUND))
            continue;
        g_ptr_array_add(work->warnings, g_strdup(error->message));
    }
}

static gboolean is_still_wanted(const SvNetLink *link, gpointer user_data)
{
    return sv_network_link_like(user_data, link) != NULL;
}

gboolean sv_network_apply(SvNetlink *nl, const SvNetRequest *wanted, const SvNetRequest *before,
    GPtrArray *warnings, GError **error)
{
    /* What was on a link that is gone went with it. */
    g_autoptr(SvNetRequest) lasting =
        before ? sv_net_request_restrict(before, is_still_wanted, (gpointer)wanted) : NULL;
    SvNetWork work = {nl, wanted, before, warnings, NULL};

    apply_sysctls(&work);
    gboolean ok = sv_network_apply_links(&work, error);
    work.before = lasting;
    ok = ok && sv_network_apply_items(&work, error);
    if (ok)
        sv_network_settle_links(&work);
    g_clear_pointer(&work.devices, g_ptr_array_unref);
    return ok;
}

/* ---- waiting for the devices */

struct SvNetworkWait {
    SvCall *call;
    SvNetlink *nl;
    guint listener, timer;
};

static const SvNetRequest *request_of(const SvNetworkWait *wait)
{
    return (const SvNetRequest *)wait->call->message;
}

static void wait_free(SvNetworkWait *wait)
{
    SvAgent *agent = wait->call->agent;

    if (wait->listener)
        sv_uevents_unlisten(agent->uevents, wait->listener);
    if (wait->timer)
        g_source_remove(wait->timer);
    sv_netlink_free(wait->nl);
    agent->network_wait = NULL;
    g_free(wait);
}

/* Ends the call. @error NULL: all devices are there. */
static void finish(SvNetworkWait *wait, const GError *error)
{
    SvCall *call = wait->call;
    SvAgent *agent = call->agent;
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) local = NULL;
    Sandvirt__V1__NetworkResponse response = SANDVIRT__V1__NETWORK_RESPONSE__INIT;

    if (error ||
        !sv_network_apply(
            wait->nl, request_of(wait), (const SvNetRequest *)agent->network, warnings, &local)) {
        wait_free(wait);
        sv_call_fail(call, error ? error : local);
        return;
    }
    wait_free(wait);
    if (agent->network)
        protobuf_c_message_free_unpacked(agent->network, NULL);
    agent->network = g_steal_pointer(&call->message);
    response.n_warnings = warnings->len;
    response.warnings = (char **)warnings->pdata;
    sv_call_reply(call, &response.base);
}

/* TRUE when it is decided. */
static gboolean look(SvNetworkWait *wait, gboolean last)
{
    const SvNetLink *missing = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) devices = sv_net_devices_read(wait->nl, &error);

    if (devices && !sv_network_devices_there(request_of(wait), devices, &missing)) {
        if (!last)
            return FALSE;
        error = g_error_new(SV_AGENT_ERROR, SV_ERR_TIMEOUT,
            "the network device for %s did not come up in the guest in time", missing->name);
    }
    finish(wait, error);
    return TRUE;
}

static void on_event(const SvUevent *event, gpointer user_data)
{
    look(user_data, FALSE);
}

static gboolean on_timeout(gpointer user_data)
{
    SvNetworkWait *wait = user_data;

    wait->timer = 0;
    look(wait, TRUE);
    return G_SOURCE_REMOVE;
}

void sv_network_configure(SvCall *call)
{
    SvAgent *agent = call->agent;
    guint32 timeout_ms = ((const SvNetRequest *)call->message)->timeout_ms;
    g_autoptr(GError) error = NULL;
    SvNetlink *nl = sv_netlink_new(NETLINK_ROUTE, &error);

    if (agent->network_wait) {
        /* of a monitor that is gone */
        g_autoptr(GError) other =
            g_error_new_literal(SV_AGENT_ERROR, SV_ERR_CANCELLED, "the network is configured anew");
        finish(agent->network_wait, other);
    }
    if (!nl) {
        sv_call_fail(call, error);
        return;
    }
    SvNetworkWait *wait = g_new0(SvNetworkWait, 1);
    wait->call = call;
    wait->nl = nl;
    agent->network_wait = wait;
    /* Listening began with the agent: no event is lost between the look and the wait. */
    if (look(wait, FALSE))
        return;
    wait->listener = sv_uevents_listen(agent->uevents, "net", on_event, wait);
    wait->timer = g_timeout_add(timeout_ms ? timeout_ms : DEFAULT_TIMEOUT_MS, on_timeout, wait);
}
