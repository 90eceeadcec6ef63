/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The libvirt driver.
 *
 * One instance speaks of one domain, that with @uuid and @name, and only when it carries our metadata.
 * It lives on the default main context, where libvirt's event loop sits; its calls run in threads of
 * its own (hypervisor/worker.h).
 *
 * A call has a deadline (call_ms of the configuration) after which it ends with SV_ERR_TIMEOUT. While
 * the connection is down calls wait for it to come back, for as long: SV_ERR_CLOSED then. A start that
 * comes to its end after its deadline is undone.
 *
 * Nothing is asked periodically: a connection that breaks is told by its socket, a daemon that hangs is
 * found by the deadline of a call, and only then a keep-alive runs until the call returns. */
#pragma once

#include "conf/config.h"
#include "core/hypervisor.h"

G_BEGIN_DECLS

/* Main thread; the default main context must be run by the caller. Sets up libvirt's event loop and
 * limits malloc's arenas, once per process. @func: every event, never from inside a call. Free with
 * hv->ops->free(hv). (transfer full) */
SvHv *sv_libvirt_new(const SvConfig *config, const char *uuid, const char *name, SvHvEventFunc func,
    gpointer user_data) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
