/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `ps` as text. The host's ps, which runc calls, sees nothing of a machine: its most used arguments are
 * understood here. All text in the rows comes from the guest. */
#pragma once

#include "base/error.h"
#include "sandvirt.pb-c.h"

G_BEGIN_DECLS

/* @args: of ps ("-ef", "aux", "-o", "pid,args", ...), NULL-terminated; none: as with -ef. (transfer full) */
char *sv_ps_table(const Sandvirt__V1__PsResponse *response, char **args, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
