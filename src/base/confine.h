/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Giving up what a program does not need any more. Nothing here can be taken back. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define SV_CAP(number) (G_GUINT64_CONSTANT(1) << (number))
/* Keeps of the thread's capabilities only those of the mask @keep (bits by SV_CAP(CAP_...)). @forever: a
 * program that is executed cannot get the others back either, and no_new_privs is set. Without it one
 * that root executes has them all. Call it before there are other threads. */
gboolean sv_confine_capabilities(guint64 keep, gboolean forever, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* These system calls fail with EPERM from now on, in this thread, its later ones and its children. Needs
 * no_new_privs (see above). A filter of our own and not libseccomp's: the shim is one per container,
 * static, and counts its pages. */
gboolean sv_confine_syscalls(const int *denied, guint n, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
