/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections to the pod's localhost on the host, carried to the guest's. Main loop. */
#pragma once

#include "core/agent.h"

G_BEGIN_DECLS

typedef struct SvForwarding SvForwarding;

/* The agent as it is now; NULL: none that is ready. */
typedef SvAgent *(*SvForwardingAgent)(gpointer user_data);

/* @fds: listeners of devices/network-localhost (-1: none), taken. */
SvForwarding *sv_forwarding_new(const int fds[2], SvForwardingAgent agent, gpointer user_data)
    G_GNUC_WARN_UNUSED_RESULT;
/* Connections are reset. Only after the agent is freed, whose answers may be due. */
void sv_forwarding_free(SvForwarding *forwarding);
/* A frame from the guest with a handle of ours. */
void sv_forwarding_frame(SvForwarding *forwarding, const SvFrame *frame);
guint sv_forwarding_count(const SvForwarding *forwarding);

G_END_DECLS
