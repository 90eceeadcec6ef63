/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Disks by serial, and their file systems. */
#pragma once

#include "agent/service.h"

G_BEGIN_DECLS

typedef struct {
    char name[64]; /* below /dev and /sys/block */
    guint major, minor;
    guint64 size_bytes;
    gboolean read_only;
} SvBlock;

/* A serial as the guest shows it is that of the host, cut to 20 characters by virtio-blk. */
gboolean sv_block_serial_matches(const char *shown, const char *serial);
/* Serial out of the page 0x80 of SCSI's vital product data (transfer full), NULL on garbage. */
char *sv_block_parse_vpd80(const guint8 *page, gsize len);

/* The serial of disk @name below @sys_block ("/sys/block"); (transfer full), NULL when it has none. */
char *sv_block_serial(const char *sys_block, const char *name);
gboolean sv_block_describe(const char *sys_block, const char *name, SvBlock *block);

/* Method WaitBlock. */
void sv_block_wait_call(SvCall *call);

/* Options of mount(8) to flags; what is no flag goes to @data ("a,b", transfer full). */
gulong sv_block_mount_flags(const char *options, gboolean read_only, char **data);

G_END_DECLS
