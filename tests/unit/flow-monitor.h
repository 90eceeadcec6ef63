/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A monitor in a process of its own that can be killed: this test program, executed again. Its agent and
 * its shims are the test's and survive it. */
#pragma once

#include "flow-fixture.h"

G_BEGIN_DECLS

typedef struct FlowMonitor FlowMonitor;

/* In main, first of all: TRUE when this process is such a monitor, and has been one. */
gboolean flow_monitor_main(int argc, char **argv);

/* Takes the place of flow->sandbox. @exists: the domain runs; @hold: operation of the driver that never
 * completes, nullable. */
FlowMonitor *flow_monitor_new(FlowFixture *flow, gboolean exists, const char *hold);
/* The operation that is held has been called. */
gboolean flow_monitor_is_held(const FlowMonitor *monitor);
/* SIGKILL. Its callers are told nothing any more. */
void flow_monitor_kill(FlowMonitor *monitor);

/* The caller goes away, the monitor lives; and another one comes. */
void flow_monitor_hang_up(FlowMonitor *monitor);
void flow_monitor_call_in(FlowMonitor *monitor);

/* @message: a message of the monitor's service; @answer nullable */
void flow_monitor_call(
    FlowMonitor *monitor, const char *method, const ProtobufCMessage *message, FlowAnswer *answer);
FlowContainer *flow_monitor_register(FlowMonitor *monitor, const char *id);
void flow_monitor_create_begin(FlowMonitor *monitor, FlowContainer *container, gboolean attach);
FlowContainer *flow_monitor_create(FlowMonitor *monitor, const char *id);
void flow_monitor_start(FlowMonitor *monitor, FlowContainer *container);
FlowContainer *flow_monitor_run(FlowMonitor *monitor, const char *id);
void flow_monitor_verb(
    FlowMonitor *monitor, const char *method, FlowContainer *container, FlowAnswer *answer);
void flow_monitor_delete(FlowMonitor *monitor, FlowContainer *container, FlowAnswer *answer);
FlowExec *flow_monitor_exec(FlowMonitor *monitor, FlowContainer *container);

/* The monitor after it: in this process. @exists as above. Waits until it has taken over. */
void flow_recover(FlowFixture *flow, gboolean exists);
void flow_recover_begin(FlowFixture *flow, gboolean exists, FlowAnswer *answer);

G_END_DECLS
