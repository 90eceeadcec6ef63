/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's device events (NETLINK_KOBJECT_UEVENT). */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    const char *action; /* "add", "change", "remove", ...; "" when missing */
    const char *devpath; /* below /sys */
    const char *subsystem;
    const char *devname; /* below /dev */
} SvUevent;

/* One datagram: ACTION@PATH, NUL, KEY=VALUE, NUL, ... Strings point into @data. */
gboolean sv_uevent_parse(const char *data, gsize len, SvUevent *event);

typedef struct SvUevents SvUevents;
typedef void (*SvUeventFunc)(const SvUevent *event, gpointer user_data);

SvUevents *sv_uevents_new(GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_uevents_free(SvUevents *uevents);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvUevents, sv_uevents_free)
/* Events of @subsystem (NULL: all) from now on. After lost events @func is called with NULL. */
guint sv_uevents_listen(
    SvUevents *uevents, const char *subsystem, SvUeventFunc func, gpointer user_data);
void sv_uevents_unlisten(SvUevents *uevents, guint id);

G_END_DECLS
