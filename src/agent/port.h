/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The virtio-serial port of the channel, found by its name. */
#pragma once

#include "agent/uevent.h"

G_BEGIN_DECLS

#define SV_PORT_NAME "org.sandvirt.agent.0"

/* The port's name below /dev (transfer full) or NULL; @sys_class: /sys/class/virtio-ports. */
char *sv_port_find(const char *sys_class, const char *name);
/* Waits for it by device events; opened read-write, non-blocking. Called once. */
typedef void (*SvPortFunc)(int fd, gpointer user_data);
void sv_port_wait(SvUevents *uevents, SvPortFunc func, gpointer user_data);

G_END_DECLS
