/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A child of the test with a pid of its own (flow-helper.c): stands for a shim, QEMU or virtiofsd. */
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

typedef struct {
    pid_t pid;
    guint64 start; /* time, as in the records */
    int pidfd, control;
    guint watch;
    gboolean ended; /* and reaped */
    int status; /* 0..255, 128+signal */
    void (*on_end)(gpointer user_data); /* nullable */
    gpointer user_data;
} FlowProc;

/* @arg: further argument on its command line, nullable. @clone_flags as sv_command_set_clone_flags. */
FlowProc *flow_proc_new(const char *arg, int clone_flags);
void flow_proc_free(FlowProc *proc); /* kills and reaps */
/* Sockets that the kernel takes for this process's. */
int flow_proc_connect(FlowProc *proc, const char *path);
int flow_proc_listen(FlowProc *proc, const char *path);
void flow_proc_exit(FlowProc *proc, int status);
void flow_proc_kill(FlowProc *proc);

G_END_DECLS
