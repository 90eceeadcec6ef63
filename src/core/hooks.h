/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hooks of config.json that run on the host (OCI runtime specification, POSIX-platform Hooks). */
#pragma once

#include "core/sandbox.h"
#include "oci/spec.h"

G_BEGIN_DECLS

/* Runs all hooks of @kind one after the other with the state JSON (@status, pid of the shim) on their standard
 * input; each with its time-out (else hook_ms). The first failure ends the row: @done gets it. */
void sv_hooks_run(
    SvContainer *container, SvHookKind kind, const char *status, SvDone done, gpointer user_data);
/* poststart, poststop: failures are warnings, and the others run all the same; @done (nullable) gets no error.
 * Survives the container. */
void sv_hooks_run_ignored(
    SvContainer *container, SvHookKind kind, const char *status, SvDone done, gpointer user_data);

G_END_DECLS
