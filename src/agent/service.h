/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests of the host: one table of methods, each answered now or later. */
#pragma once

#include "agent/agent.h"
#include <protobuf-c/protobuf-c.h>

G_BEGIN_DECLS

typedef struct {
    SvAgent *agent;
    guint64 session; /* an answer to a former session is dropped */
    guint32 stream;
    ProtobufCMessage *message; /* of the method's type; owned */
    gint64 began_us; /* monotonic: when the loop woke up for it */
} SvCall;

/* Each ends the call and frees it. @message NULL: an empty answer. */
void sv_call_reply(SvCall *call, const ProtobufCMessage *message);
void sv_call_fail(SvCall *call, const GError *error);
/* The host of this call is still the one connected. */
gboolean sv_call_is_current(const SvCall *call);

/* What the channel calls. */
extern const SvChannelFuncs sv_service_funcs;

G_END_DECLS
