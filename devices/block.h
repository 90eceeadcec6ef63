/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A block device or image file as a disk of the machine. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

typedef enum { SV_BLOCK_DEVICE, SV_BLOCK_FILE } SvBlockKind;
typedef enum { SV_BUS_VIRTIO, SV_BUS_SCSI } SvBlockBus;

typedef struct {
    SvBlockKind kind;
    char *source; /* absolute host path */
    char *format; /* "raw" or "qcow2": stated, never probed */
    char *serial; /* at most 20 characters, see sv_block_serial */
    SvBlockBus bus;
    char *target; /* "vda"..., "sda"...: free in its domain */
    gboolean read_only, shareable, discard;
    char *cache; /* "none", "writeback", "directsync", ...; nullable */
    char *io; /* "native", "io_uring", "threads"; nullable */
} SvBlock;
SvBlock *sv_block_copy(const SvBlock *block);
void sv_block_free(SvBlock *block);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvBlock, sv_block_free)

/* 20 hex characters derived from (sandbox, container, index); (transfer full). */
char *sv_block_serial(const char *sandbox, const char *container, guint index)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
