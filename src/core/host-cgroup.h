/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cgroups on the host, version 1, 2 and hybrid: shims live in those of their containers, QEMU, virtiofsd and
 * monitor in the pod's, so that the engine's limits of the pod and its statistics are true. No limit is
 * written here: a container's are the guest's affair, a pod's stand in the parent that the engine made.
 * Blocking but quick; what a host does not allow is an error that callers only warn about. */
#pragma once

#include "base/error.h"
#include <sys/types.h>

G_BEGIN_DECLS

/* Where the hierarchies are; a parameter for tests. */
#define SV_CGROUP_TOP "/sys/fs/cgroup"

/* linux.cgroupsPath as a path below each hierarchy's root: "/a/b", or of "SLICE:PREFIX:NAME" with @systemd
 * "/a.slice/a-b.slice/PREFIX-NAME.scope", whose slice and unit come out too (transfer full, else NULL).
 * Refuses "..". */
char *sv_cgroup_path(const char *text, gboolean systemd, char **slice, char **unit, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* "/a/@name" for the cgroup "/a/b": a neighbour. (transfer full) */
char *sv_cgroup_sibling(const char *path, const char *name) G_GNUC_WARN_UNUSED_RESULT;

/* Folders (char *) of all hierarchies that are mounted; the only one of version 2 is @top itself. (transfer full) */
GPtrArray *sv_cgroup_hierarchies(const char *top) G_GNUC_WARN_UNUSED_RESULT;
/* Makes it in every hierarchy. *@made: the highest folder that was missing in some hierarchy (transfer full),
 * NULL when there was none. @owner (nullable): what is made is marked so, see core/cgroup-mark.h. */
gboolean sv_cgroup_make(const char *top, const char *path, const char *owner, char **made,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Moves the process with all its threads. @keep_devices: not in version 1's devices hierarchy, where
 * libvirt restricts what QEMU may open. All hierarchies are tried; the first error. */
gboolean sv_cgroup_enter(const char *top, const char *path, pid_t pid, gboolean keep_devices,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Removes it, and its parents up to @made (nullable), where nothing is in them any more. */
void sv_cgroup_remove(const char *top, const char *path, const char *made);
/* Removes the cgroups that libvirt has made in its default partition for the machine @domain and has forgotten; what
 * somebody lives in stays. */
void sv_cgroup_remove_machine(const char *top, const char *domain);

/* Where a process is, as lines of its /proc/PID/cgroup, to move it back there (transfer full); NULL: gone. */
char *sv_cgroup_places(pid_t pid) G_GNUC_WARN_UNUSED_RESULT;
/* @domain: into libvirt's folder of the machine and not one of its "emulator" below, whose threads libvirt
 * sorts by itself. */
gboolean sv_cgroup_return(const char *top, const char *places, pid_t pid, gboolean domain,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
