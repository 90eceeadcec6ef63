/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine's disks by serial. Device events keep it up to date, so that each disk is looked at when it
 * comes, however many are waited for. */
#pragma once

#include "agent/block.h"

G_BEGIN_DECLS

/* @sys_block: "/sys/block", which is first read when somebody waits. */
SvBlockTable *sv_block_table_new(const char *sys_block);
void sv_block_table_free(SvBlockTable *table); /* nobody is called back */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvBlockTable, sv_block_table_free)
/* SvUeventFunc; @table is an SvBlockTable. */
void sv_block_table_event(const SvUevent *event, gpointer table);
/* @block NULL: @error says why. Called once, maybe at once. */
typedef void (*SvBlockDone)(const SvBlock *block, const GError *error, gpointer user_data);
/* Waits for the disk with that serial. @timeout_ms 0: the default. */
void sv_block_table_wait(SvBlockTable *table, const char *serial, guint timeout_ms,
    SvBlockDone done, gpointer user_data);

G_END_DECLS
