/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/block.h"

#include <string.h>

#define SERIAL_LEN 20 /* what virtio-blk shows of it in the guest */

SvBlock *sv_block_copy(const SvBlock *block)
{
    if (block == NULL)
        return NULL;
    SvBlock *copy = g_new0(SvBlock, 1);
    *copy = *block;
    copy->source = g_strdup(block->source);
    copy->format = g_strdup(block->format);
    copy->serial = g_strdup(block->serial);
    copy->target = g_strdup(block->target);
    copy->cache = g_strdup(block->cache);
    copy->io = g_strdup(block->io);
    return copy;
}

void sv_block_free(SvBlock *block)
{
    if (block == NULL)
        return;
    g_free(block->source);
    g_free(block->format);
    g_free(block->serial);
    g_free(block->target);
    g_free(block->cache);
    g_free(block->io);
    g_free(block);
}

char *sv_block_serial(const char *sandbox, const char *container, guint index)
{
    g_return_val_if_fail(sandbox != NULL && container != NULL, NULL);
    /* ids hold no "/": different triples give different texts */
    g_autofree char *text = g_strdup_printf("%s/%s/%u", sandbox, container, index);
    char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
    sum[SERIAL_LEN] = '\0';
    return sum;
}
