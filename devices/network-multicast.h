/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames to groups that the guest has joined: a macvlan, an ipvlan or a card passes only those on whose groups its own
 * namespace has joined, and the guest's are not known there. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* A descriptor that keeps the links which are added to it open for all groups; nobody sees it on them, and its end, or
 * that of its process, ends it. -1 + @error. Blocking, any thread. */
int sv_multicast_open(int netns_fd, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* @fd -1: nothing. Once for each link and each way; a link that is gone is fine. May wait for the kernel. */
void sv_multicast_add(int fd, int index);
void sv_multicast_remove(int fd, int index);

G_END_DECLS
