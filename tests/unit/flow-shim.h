/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A shim whose pid is a real process's and whose words are the test's. */
#pragma once

#include "core/conn.h"
#include "flow-proc.h"
#include "sandvirt.pb-c.h"

G_BEGIN_DECLS

typedef struct {
    FlowProc *proc;
    char *id;
    guint32 handle;
    SvConn *conn; /* nullable */
    guint attaches, attached; /* sent, answered well */
    int attach_code; /* of the last answer, -1: none or well */
    guint64 offsets[3]; /* what the next Attach says */
    guint rows, cols;
    gboolean has_rootfs;
    /* what it does by itself */
    gboolean hold_root, fail_root; /* no answer to Root; an error */
    gboolean hold_exit; /* does not exit when it is told to */
    guint32 root_stream; /* held */
    guint roots, exits;
    int exit_status; /* told, -1 */
    GString *out[3]; /* received, by index of stream */
    gboolean eof[3];
    guint64 input_acked;
    guint8 input_flags;
} FlowShim;

FlowShim *flow_shim_new(const char *id, guint32 handle, int clone_flags);
void flow_shim_free(FlowShim *shim);
/* Connects to @path as the process and sends Attach. */
void flow_shim_attach(FlowShim *shim, const char *path);
void flow_shim_close(FlowShim *shim); /* hangs up, lives on */
void flow_shim_answer_root(FlowShim *shim, gboolean ok); /* a held one */
void flow_shim_ack(FlowShim *shim, guint8 flags, guint64 offset);
void flow_shim_input(FlowShim *shim, guint8 flags, guint64 offset, const char *text);
void flow_shim_signal(FlowShim *shim, guint signo);
void flow_shim_resize(FlowShim *shim, guint rows, guint cols);

G_END_DECLS
