/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The container that a verb is about, and the way to its monitor. */
#pragma once

#include "cli/cli.h"
#include "core/client.h"
#include "core/record.h"
#include "oci/spec.h"

G_BEGIN_DECLS

typedef struct {
    SvRecord *record; /* of an existing container, else NULL */
    const SvConfig *config; /* of the sandbox, owned */
    SvPaths *paths;
    int fd; /* connection, -1: none */
    guint32 stream;
} SvTarget;
#define SV_TARGET_INIT                                                                             \
    {                                                                                              \
        NULL, NULL, NULL, -1, 1                                                                    \
    }
void sv_target_clear(SvTarget *target);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SvTarget, sv_target_clear)

/* Checks @id and loads its record: SV_ERR_NOT_FOUND `container does not exist: "ID"`. */
SvRecord *sv_target_record(const SvCli *cli, const char *id, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* The record, and whether @verb may be done in its state as far as can be told without the monitor.
 * @verb NULL: any. */
gboolean sv_target_load(SvTarget *target, SvCli *cli, const char *id, const char *verb,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Paths of the sandbox with the configuration it was made with. @make: the root folder is made. */
gboolean sv_target_locate(SvTarget *target, SvCli *cli, const char *sandbox, gboolean make,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Connects to the monitor, which is started when it is not there. */
gboolean sv_target_connect(SvTarget *target, SvCli *cli, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* One call without an answer's message. */
gboolean sv_target_call(SvTarget *target, const char *method, const ProtobufCMessage *message,
    int timeout_ms, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The same for what may be asked twice: when the monitor dies meanwhile, the next one is asked, connected or
 * not before. *@again: that happened, and the first may have done it already. */
gboolean sv_target_call_again(SvTarget *target, SvCli *cli, const char *method,
    const ProtobufCMessage *message, int timeout_ms, gboolean *again, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* The same for a question: the answer (transfer full), NULL + error. */
ProtobufCMessage *sv_target_ask(SvTarget *target, SvCli *cli, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* start, pause or resume, asked again like that: done already is fine then. @hooks_ms: that it may take besides. */
gboolean sv_target_order(SvTarget *target, SvCli *cli, const char *id, const char *verb,
    const char *method, int hooks_ms, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* load, connect and a call whose message names only the container. */
gboolean sv_target_simple(SvCli *cli, const char *id, const char *verb, const char *method,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Deadlines for the answer of the monitor, which keeps its own for every step. */
int sv_target_short_ms(const SvTarget *target); /* a question to the guest */
/* How long all hooks of @kind of a bundle's config.json may take; 0: it has none, or is not there any more. */
int sv_target_hooks_ms(const SvTarget *target, const char *bundle, SvHookKind kind);
int sv_target_stop_ms(const SvTarget *target); /* an end with everything that belongs to it */

G_END_DECLS
