/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a container: kill, wait, unmount, sync, forget. */
#pragma once

#include "agent/container.h"

G_BEGIN_DECLS

/* @busy: something could not be let go in time. */
typedef void (*SvReleaseDone)(gboolean busy, gpointer user_data);
/* Ends and frees @container. May be called again while it is at work: all are told at the end. */
void sv_container_release(
    SvContainer *container, guint timeout_ms, SvReleaseDone done, gpointer user_data);
/* A call of crun for the container ended. */
void sv_container_release_check(SvContainer *container);
/* Its creation has failed: those who asked for its removal meanwhile wait for the release. */
void sv_container_adopt_removers(SvContainer *container);

G_END_DECLS
