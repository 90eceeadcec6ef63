/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/block-table.h"
#include <string.h>

#define DEFAULT_TIMEOUT_MS 10000

struct SvBlockTable {
    char *sys_block;
    gboolean scanned;
    GHashTable *serials; /* name -> serial; disks that have one */
    GPtrArray *waits; /* Wait, owned */
};

typedef struct {
    SvBlockTable *table;
    char *serial;
    guint timer;
    SvBlockDone done;
    gpointer user_data;
} Wait;

static void wait_free(gpointer data)
{
    Wait *wait = data;

    if (wait->timer)
        g_source_remove(wait->timer);
    g_free(wait->serial);
    g_free(wait);
}

SvBlockTable *sv_block_table_new(const char *sys_block)
{
    SvBlockTable *table = g_new0(SvBlockTable, 1);

    table->sys_block = g_strdup(sys_block);
    table->serials = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    table->waits = g_ptr_array_new_with_free_func(wait_free);
    return table;
}

void sv_block_table_free(SvBlockTable *table)
{
    if (!table)
        return;
    g_ptr_array_unref(table->waits);
    g_hash_table_unref(table->serials);
    g_free(table->sys_block);
    g_free(table);
}

/* ---- what there is */

/* Reads its serial anew; (nullable) (transfer none). */
static const char *look_at(SvBlockTable *table, const char *name)
{
    char *serial = sv_block_serial(table->sys_block, name);

    if (serial)
        g_hash_table_insert(table->serials, g_strdup(name), serial);
    else
        g_hash_table_remove(table->serials, name);
    return serial;
}

static void scan(SvBlockTable *table)
{
    GDir *stream = g_dir_open(table->sys_block, 0, NULL);
    const char *name;

    g_hash_table_remove_all(table->serials);
    while (stream && (name = g_dir_read_name(stream)))
        look_at(table, name);
    if (stream)
        g_dir_close(stream);
    table->scanned = TRUE;
}

/* How many have the serial; *name is one of them, (transfer full). */
static guint find(SvBlockTable *table, const char *serial, char **name)
{
    GHashTableIter iter;
    gpointer key, shown;
    guint found = 0;

    *name = NULL;
    g_hash_table_iter_init(&iter, table->serials);
    while (g_hash_table_iter_next(&iter, &key, &shown)) {
        if (!sv_block_serial_matches(shown, serial))
            continue;
        found++;
        if (!*name)
            *name = g_strdup(key);
    }
    return found;
}

/* ---- waiting */

/* @found: how many disks have the serial: one is right. Takes @wait. */
static void finish(Wait *wait, guint found, const SvBlock *block)
{
    g_autoptr(GError) error = NULL;

    if (found > 1)
        error = g_error_new(
            SV_AGENT_ERROR, SV_ERR_EXISTS, "%u disks have the serial %s", found, wait->serial);
    else if (!found)
        error = g_error_new(SV_AGENT_ERROR, SV_ERR_TIMEOUT,
            "no disk with serial %s came up in the guest in time", wait->serial);
    wait->done(error ? NULL : block, error, wait->user_data);
    wait_free(wait);
}

static Wait *steal(Wait *wait)
{
    guint index = 0;

    g_return_val_if_fail(g_ptr_array_find(wait->table->waits, wait, &index), NULL);
    return g_ptr_array_steal_index(wait->table->waits, index);
}

/* What the table says is read again: the event that a disk has gone may still be on its way. */
static void try(Wait *wait)
{
    SvBlockTable *table = wait->table;
    g_autofree char *name = NULL;
    guint found = find(table, wait->serial, &name);
    const char *shown = found == 1 ? look_at(table, name) : NULL;
    SvBlock block;

    if (found > 1)
        finish(steal(wait), found, NULL);
    else if (shown && sv_block_serial_matches(shown, wait->serial) &&
        sv_block_describe(table->sys_block, name, &block))
        finish(steal(wait), 1, &block);
}

/* All, or those for @serial. Whoever is told may wait for another. */
static void try_all(SvBlockTable *table, const char *serial)
{
    g_autoptr(GPtrArray) waits = g_ptr_array_new();

    for (guint i = 0; i < table->waits->len; i++) {
        const Wait *wait = table->waits->pdata[i];

        if (!serial || sv_block_serial_matches(serial, wait->serial))
            g_ptr_array_add(waits, (gpointer)wait);
    }
    for (guint i = 0; i < waits->len; i++)
        try(waits->pdata[i]);
}

static gboolean on_timeout(gpointer user_data)
{
    Wait *wait = user_data;

    wait->timer = 0;
    finish(steal(wait), 0, NULL);
    return G_SOURCE_REMOVE;
}

void sv_block_table_event(const SvUevent *event, gpointer user_data)
{
    SvBlockTable *table = user_data;

    if (!table->scanned)
        return;
    if (!event) {
        scan(table);
        try_all(table, NULL);
        return;
    }
    g_autofree char *name = g_path_get_basename(event->devpath);
    if (g_str_equal(event->action, "remove")) {
        g_hash_table_remove(table->serials, name);
        return;
    }
    g_autofree char *serial = g_strdup(look_at(table, name));
    if (serial)
        try_all(table, serial);
}

void sv_block_table_wait(
    SvBlockTable *table, const char *serial, guint timeout_ms, SvBlockDone done, gpointer user_data)
{
    Wait *wait = g_new0(Wait, 1);

    wait->table = table;
    wait->serial = g_strdup(serial);
    wait->done = done;
    wait->user_data = user_data;
    wait->timer = g_timeout_add(timeout_ms ? timeout_ms : DEFAULT_TIMEOUT_MS, on_timeout, wait);
    g_ptr_array_add(table->waits, wait);
    /* Events come from the agent's start on: none is lost between the look and the wait. */
    if (!table->scanned)
        scan(table);
    try(wait);
}
