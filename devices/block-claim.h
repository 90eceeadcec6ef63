/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which container has which disk: libvirt attaches one block device to two machines without a word. A
 * claim is a line in a file named by the disk (a partition's lies in that of its disk), so it outlives
 * the monitor that made it; whether its owner still lives is asked of the caller. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

typedef struct {
    char *device; /* "8:1"; of an image file "INODE@8:1" */
    char *disk; /* name of the claim's file: "8:0"; of an image file as @device */
    gboolean exclusive; /* else only together with others that are not */
    char *boot_id, *root, *sandbox, *container, *alias;
} SvBlockClaim;
void sv_block_claim_free(SvBlockClaim *claim);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvBlockClaim, sv_block_claim_free)

typedef gboolean (*SvBlockClaimAlive)(const SvBlockClaim *claim, gpointer user_data);

/* Adds @claim to @dir (made 0700), and takes dead ones of the same disk out. Held by another:
 * SV_ERR_BUSY with its name. Claimed already with the same root and alias: success. *others (nullable
 * out): how many other live claims the device has. */
gboolean sv_block_claim_take(const char *dir, const SvBlockClaim *claim, SvBlockClaimAlive alive,
    gpointer user_data, guint *others, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Takes the claim with that disk, root and alias out. What goes wrong is no error: a claim whose owner
 * is gone counts for nothing. */
void sv_block_claim_drop(const char *dir, const SvBlockClaim *claim);
/* All claims in @dir, dead ones too; (transfer full) of SvBlockClaim. */
GPtrArray *sv_block_claim_list(const char *dir);

G_END_DECLS
