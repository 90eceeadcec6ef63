/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sandvirt-launcher forks monitors and nothing else, so that no monitor descends from an engine, stays in
 * its session or its cgroup. It knows no state: a monitor finds everything by itself. */
#pragma once

#include "base/error.h"
#include "sandvirt.pb-c.h"

G_BEGIN_DECLS

#define SV_LAUNCHER_ERROR (sv_launcher_error_quark())
GQuark sv_launcher_error_quark(void);

/* ---- monitors.c: the children. Main loop only. */
typedef struct SvMonitors SvMonitors;
/* @error NULL: it listens. Called once. */
typedef void (*SvEnsured)(const GError *error, gpointer user_data);

/* @monitor_path: used when a request names none. */
SvMonitors *sv_monitors_new(const char *monitor_path) G_GNUC_WARN_UNUSED_RESULT;
/* Does not end the children. */
void sv_monitors_free(SvMonitors *monitors);
/* Makes sure that the monitor of that sandbox runs and listens. */
void sv_monitors_ensure(SvMonitors *monitors, const Sandvirt__V1__EnsureRequest *request,
    SvEnsured done, gpointer user_data);

/* ---- server.c: the socket */
typedef struct SvServer SvServer;
/* Takes the listening socket @fd. */
SvServer *sv_server_new(int fd, SvMonitors *monitors) G_GNUC_WARN_UNUSED_RESULT;
void sv_server_free(SvServer *server);

G_END_DECLS
