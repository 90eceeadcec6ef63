/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a domain. libvirt's destroy of a QEMU that does not react takes 10 s and more; it comes to
 * its end at once when QEMU is killed meanwhile, which is what happens after the grace. With the daemon
 * gone the same kill ends the machine; the daemon cleans up when it is back. */
#include <config.h>

#include "hypervisor/libvirt-priv.h"

#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>

#include "base/fd.h"
#include "base/process.h"

#define AFTER_KILL_MS 2000 /* for the daemon to notice; it takes 0.2 s */
#define LOOK_MS 2000 /* a destroy that waits longer is looked after: see stillborn.c */

/* main loop only */
struct SvDestroy {
    SvLibvirt *lv;
    SvCall *call; /* NULL: ended */
    SvCall *look; /* whether there is something to be destroyed; nullable */
    int pidfd; /* -1: none */
    guint timer, watch, look_timer;
    SvHvDone done;
    gpointer user_data;
};

void sv_destroy_free(gpointer data)
{
    SvDestroy *destroy = data;
    g_clear_handle_id(&destroy->timer, g_source_remove);
    g_clear_handle_id(&destroy->watch, g_source_remove);
    g_clear_handle_id(&destroy->look_timer, g_source_remove);
    sv_fd_close(destroy->pidfd);
    g_free(destroy);
}

static void finish(SvDestroy *destroy, const GError *error)
{
    SvLibvirt *lv = destroy->lv;
    SvHvDone done = destroy->done;
    gpointer user_data = destroy->user_data;
    if (destroy->call != NULL)
        sv_call_drop(destroy->call);
    if (destroy->look != NULL)
        sv_call_drop(destroy->look);
    lv->destroys = g_list_remove(lv->destroys, destroy);
    sv_destroy_free(destroy);
    done(&lv->hv, error, user_data);
}

static gboolean on_no_answer(gpointer data)
{
    SvDestroy *destroy = data;
    destroy->timer = 0;
    g_warning("QEMU is killed, libvirt has not noticed; ignoring");
    finish(destroy, NULL);
    return G_SOURCE_REMOVE;
}

static gboolean on_exit_seen(int fd, GIOCondition condition, gpointer data)
{
    SvDestroy *destroy = data;
    destroy->watch = 0;
    if (destroy->lv->link.conn == NULL)
        finish(destroy, NULL);
    else
        destroy->timer = g_timeout_add(AFTER_KILL_MS, on_no_answer, destroy);
    return G_SOURCE_REMOVE;
}

static gboolean on_grace_over(gpointer data)
{
    SvDestroy *destroy = data;
    destroy->timer = 0;
    g_message("the machine does not end, killing QEMU");
    sv_process_signal(destroy->pidfd, SIGKILL);
    destroy->watch = g_unix_fd_add(destroy->pidfd, G_IO_IN, on_exit_seen, destroy);
    return G_SOURCE_REMOVE;
}

static void call_done(SvCall *call, const GError *error)
{
    SvDestroy *destroy = call->user_data;
    destroy->call = NULL;
    /* the connection broke or was never there: QEMU's own end decides */
    if (error != NULL && destroy->pidfd >= 0 && (destroy->timer != 0 || destroy->watch != 0))
        return;
    finish(destroy, error);
}

/* In the thread: our domain, over a connection of the call's own; NULL without @error when there is none. libvirt's
 * client may overlook a call (seen with 9.0: one in ten) that is made while another thread waits for an answer on the same
 * connection, until something else arrives: the daemon's ping after 5 s, if it sends any. */
static virDomainPtr find_domain(SvCall *call, virConnectPtr *conn, GError **error)
{
    *conn = sv_libvirt_open(call->uri, error);
    return *conn != NULL ? sv_domain_lookup(*conn, call->uuid, error) : NULL;
}

/* ---- a domain without a process, whose destroy would wait for its lock for ever */

/* In the thread; what exists is worth waiting for. */
static gboolean do_look(SvCall *call, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(AutoConnect) conn = NULL;
    g_autoptr(AutoDomain) dom = find_domain(call, &conn, &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    call->status.exists = dom != NULL && !sv_domain_is_stillborn(dom);
    if (dom != NULL && !call->status.exists)
        sv_domain_tell_stillborn(call->name);
    return TRUE;
}

static gboolean on_look(gpointer data);

static void looked(SvCall *call, const GError *error)
{
    SvDestroy *destroy = call->user_data;
    destroy->look = NULL;
    if (error == NULL && !call->status.exists)
        finish(destroy, NULL);
    else
        destroy->look_timer = g_timeout_add(LOOK_MS, on_look, destroy);
}

static gboolean on_look(gpointer data)
{
    SvDestroy *destroy = data;
    destroy->look_timer = 0;
    destroy->look =
        sv_call_new(destroy->lv, "see whether the machine has a process", do_look, NULL);
    destroy->look->internal_done = looked;
    destroy->look->user_data = destroy;
    sv_call_go(destroy->look, SV_LANE_QUERY, destroy->lv->config->call_ms);
    return G_SOURCE_REMOVE;
}

/* ---- the call */

/* In the thread. */
static gboolean do_destroy(SvCall *call, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(AutoConnect) conn = NULL;
    g_autoptr(AutoDomain) dom = find_domain(call, &conn, &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (dom == NULL || virDomainIsActive(dom) == 0 || virDomainDestroy(dom) == 0) {
        if (dom != NULL)
            sv_domain_undefine(dom);
        return TRUE;
    }
    sv_hv_set_libvirt_error(error, "%s", call->what);
    /* it may have ended by itself */
    g_autoptr(AutoDomain) again = sv_domain_lookup(conn, call->uuid, &local);
    if (again != NULL || local != NULL)
        return FALSE;
    g_clear_error(error);
    return TRUE;
}

void sv_libvirt_destroy(SvHv *hv, int qemu_pidfd, guint grace_ms, SvHvDone done, gpointer user_data)
{
    SvLibvirt *lv = (SvLibvirt *)hv;
    SvDestroy *destroy = g_new0(SvDestroy, 1);
    destroy->lv = lv;
    destroy->done = done;
    destroy->user_data = user_data;
    destroy->pidfd = qemu_pidfd >= 0 ? fcntl(qemu_pidfd, F_DUPFD_CLOEXEC, 3) : -1;
    if (destroy->pidfd >= 0)
        destroy->timer = g_timeout_add(grace_ms, on_grace_over, destroy);
    else
        destroy->look_timer = g_timeout_add(LOOK_MS, on_look, destroy);
    lv->destroys = g_list_prepend(lv->destroys, destroy);

    destroy->call = sv_call_new(lv, "destroy the machine", do_destroy, NULL);
    destroy->call->internal_done = call_done;
    destroy->call->user_data = destroy;
    /* A start on its way undoes itself; after it there is something to look for. */
    SvLane lane = SV_LANE_URGENT;
    if (lv->starting != NULL) {
        sv_job_cancel(lv->starting->job);
        lane = SV_LANE_CHANGE;
    }
    sv_call_go(destroy->call, lane, lv->config->call_ms);
}
