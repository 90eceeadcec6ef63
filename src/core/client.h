/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the command line reaches the monitor of a sandbox. Blocking. */
#pragma once

#include "core/paths.h"
#include "rpc/message.h"
#include "sandvirt.pb-c.h"

G_BEGIN_DECLS

/* A program that is started with a ready descriptor writes one of these into it: "R" when it serves,
 * "E<one line>" when it cannot. SV_READY_LOCKED inside that line: another one serves already. */
#define SV_READY_OK 'R'
#define SV_READY_ERROR 'E'
#define SV_READY_LOCKED "locked by another"
#define SV_READY_MAX 4096

/* Connects to the monitor of @paths' sandbox when one listens. -1 + SV_ERR_NOT_FOUND when none does. */
int sv_client_connect(const SvPaths *paths, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* As above, and starts one when none listens: asks the launcher (method Ensure; answered when the monitor
 * listens); without a launcher: a warning and sandvirt-monitor by a double fork, whose ready byte is
 * waited for on a pipe. @monitor_path: absolute path of sandvirt-monitor. Deadline @timeout_ms in all. */
int sv_client_ensure(const SvPaths *paths, const char *monitor_path, const char *config_path,
    gboolean debug, int timeout_ms, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* One call on a connection (stream ids are chosen inside from *stream, which is advanced by 2, starts
 * at 1). As sv_rpc_call. */
ProtobufCMessage *sv_client_call(int fd, guint32 *stream, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type, int timeout_ms,
    GError **error);

/* The same without an answer's message. When @watch_fd becomes readable or is closed (a pidfd) while the answer
 * is due, *@watched is set and the answer, which is then the monitor's word on it, waited for @grace_ms
 * more at most: SV_ERR_CANCELLED afterwards. */
gboolean sv_client_call_watching(int fd, guint32 *stream, const char *method,
    const ProtobufCMessage *message, int timeout_ms, int watch_fd, int grace_ms, gboolean *watched,
    GError **error);

G_END_DECLS
