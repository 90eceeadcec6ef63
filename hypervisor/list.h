/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The domains of sandvirt on this host, for `check` and `gc`: one-shot programs that may block. */
#pragma once

#include "conf/config.h"
#include "devices/machine.h"

G_BEGIN_DECLS

typedef struct {
    char *name, *uuid;
    int id; /* libvirt's */
    SvMetadata *metadata; /* never NULL: others' domains are not listed */
} SvFound;
void sv_found_free(SvFound *found);

typedef struct {
    guint libvirt[3], qemu[3]; /* major, minor, release */
    GPtrArray *domains; /* of SvFound */
} SvInventory;
void sv_inventory_free(SvInventory *inventory);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvInventory, sv_inventory_free)

/* Connects, asks, closes. Blocking: as long as the daemon takes. Needs no main loop. A domain whose
 * metadata cannot be read is skipped. (transfer full) */
SvInventory *sv_libvirt_inventory(const SvConfig *config, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Destroys the domain @uuid when it carries our metadata with the root @root; gone or not
 * ours: success. Blocking. */
gboolean sv_libvirt_end_domain(const SvConfig *config, const char *uuid, const char *root,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
