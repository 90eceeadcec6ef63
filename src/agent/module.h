/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernel modules, loaded from a list that is in the order of their dependencies.
 * A line of the list: GROUP PATH. Group "channel": before the channel can work; "late": after that; any other
 * is what the kernel asks for by itself ("fs-xfs", "rtnl-link-veth"), and it asks this program. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct SvModules SvModules;

/* Parses the list's text; unknown lines and comments are ignored. */
SvModules *sv_modules_parse(const char *text) G_GNUC_WARN_UNUSED_RESULT;
SvModules *sv_modules_load(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_modules_free(SvModules *modules);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvModules, sv_modules_free)

/* (transfer container) paths of a group that are not loaded yet, in order. */
GPtrArray *sv_modules_pending(SvModules *modules, const char *group) G_GNUC_WARN_UNUSED_RESULT;
/* Loads what is pending of @group; failures are logged and not tried again. */
void sv_modules_insert(SvModules *modules, const char *group);
/* Loads the group, one module at a time, when the main loop has nothing else to do. */
void sv_modules_insert_idle(SvModules *modules, const char *group);

/* The agent as the kernel's modprobe ("-q -- NAME"): loads the group NAME of the list at @path. The exit
 * status of the program. */
int sv_modules_probe(const char *path, int argc, char **argv);

G_END_DECLS
