/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Disks out of the machine. libvirt's answer to a detach says only that it was asked; the event is the
 * end. A guest that does not let go is asked again, and its machine ended when it never does. */
#include <config.h>

#include "core/disks.h"

#include <string.h>

#define ASK_AGAIN_MS 1000
#define END_MS 5000 /* for a machine that is ended because of a disk */
/* Times the deadline, while libvirt cannot be asked, which is not the guest's fault, and while disks go. */
#define PATIENCE 4

struct SvUnplug {
    SvSandbox *sandbox;
    char *container;
    GPtrArray *aliases; /* char*, as libvirt knows them: still in the machine */
    gint64 start_us, deadline_us;
    guint timer;
    gboolean ending; /* the machine is being ended */
    SvDone done;
    gpointer user_data;
};

static gint64 allowed_us(const SvSandbox *sandbox)
{
    return sandbox->config->unplug_ms * G_GINT64_CONSTANT(1000);
}

static void unplug_free(SvUnplug *unplug)
{
    if (unplug->timer)
        g_source_remove(unplug->timer);
    g_free(unplug->container);
    g_ptr_array_unref(unplug->aliases);
    g_free(unplug);
}

static void unplug_end(SvUnplug *unplug, const GError *error)
{
    g_ptr_array_remove(unplug->sandbox->unplugs, unplug);
    sv_answer_later(unplug->done, error, unplug->user_data);
    unplug_free(unplug);
}

/* ---- gone */

static gboolean remove_alias(GPtrArray *aliases, const char *alias)
{
    guint index = 0;

    if (!g_ptr_array_find_with_equal_func(aliases, alias, g_str_equal, &index))
        return FALSE;
    g_ptr_array_remove_index(aliases, index);
    return TRUE;
}

static void forget_held(SvSandbox *sandbox, SvDiskRecord *disk)
{
    g_autoptr(GError) error = NULL;

    sv_disk_restore_held(sandbox, disk);
    g_ptr_array_remove(sandbox->record->held_disks, disk);
    if (!sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
}

/* A guest that lets go of many, one after the other, does not hang: it gets more time, but not without end. */
static void note_progress(SvUnplug *unplug)
{
    gint64 allowed = allowed_us(unplug->sandbox);

    if (!unplug->ending)
        unplug->deadline_us =
            MIN(g_get_monotonic_time() + allowed, unplug->start_us + allowed * PATIENCE);
}

gboolean sv_disks_is_unplugged(const SvSandbox *sandbox, const char *device)
{
    for (guint i = 0; i < sandbox->unplugs->len; i++) {
        const SvUnplug *unplug = sandbox->unplugs->pdata[i];

        if (g_ptr_array_find_with_equal_func(unplug->aliases, device, g_str_equal, NULL))
            return TRUE;
    }
    return FALSE;
}

void sv_disks_removed(SvSandbox *sandbox, const char *device)
{
    g_autofree char *name = g_strdup(device); /* it may be a disk's own */
    SvContainer *container = NULL;
    SvDiskRecord *disk;

    while ((disk = sv_disks_find(sandbox, name, &container))) {
        g_debug("disk %s (%s) is out of the machine", name, disk->source);
        sv_disk_unclaim(sandbox, disk);
        sv_sandbox_touch(sandbox);
        if (!container)
            forget_held(sandbox, disk);
    }
    for (guint i = sandbox->unplugs->len; i > 0; i--) {
        SvUnplug *unplug = sandbox->unplugs->pdata[i - 1];

        if (!remove_alias(unplug->aliases, name))
            continue;
        if (unplug->aliases->len)
            note_progress(unplug);
        else
            unplug_end(unplug, NULL);
    }
}

void sv_disks_machine_gone(SvSandbox *sandbox)
{
    g_autoptr(GPtrArray) disks = sv_disks_in_machine(sandbox);
    g_autoptr(GPtrArray) aliases = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < disks->len; i++)
        g_ptr_array_add(aliases, g_strdup(sv_disk_record_device(disks->pdata[i])));
    for (guint i = 0; i < aliases->len; i++)
        sv_disks_removed(sandbox, aliases->pdata[i]);
}

/* ---- asking */

typedef struct {
    SvSandbox *sandbox;
    char *alias;
} Call;

static void on_detached(SvHv *hv, const GError *error, gpointer user_data)
{
    Call *call = user_data;

    g_hash_table_remove(call->sandbox->detaching, call->alias);
    if (error && sv_error_is(error, SV_ERR_NOT_FOUND))
        sv_disks_removed(
            call->sandbox, call->alias); /* it never was there, or the event was lost */
    else if (error)
        g_info("sandbox %s: %s", call->sandbox->paths->sandbox, error->message);
    g_free(call->alias);
    g_free(call);
}

/* Not while it is asked: with many disks libvirt needs its time. */
static void detach(SvSandbox *sandbox, const char *alias)
{
    if (!g_hash_table_add(sandbox->detaching, g_strdup(alias)))
        return;
    Call *call = g_new0(Call, 1);

    call->sandbox = sandbox;
    call->alias = g_strdup(alias);
    sandbox->hv->ops->detach(sandbox->hv, call->alias, on_detached, call);
}

static void ask(SvUnplug *unplug)
{
    for (guint i = 0; unplug->sandbox->hv && i < unplug->aliases->len; i++)
        detach(unplug->sandbox, unplug->aliases->pdata[i]);
}

static gboolean is_connected(const SvSandbox *sandbox)
{
    return sandbox->hv && sandbox->hv->ops->is_connected(sandbox->hv);
}

void sv_disks_connected(SvSandbox *sandbox)
{
    for (guint i = 0; i < sandbox->unplugs->len; i++)
        ask(sandbox->unplugs->pdata[i]);
    for (guint i = 0; sandbox->record && i < sandbox->record->held_disks->len; i++)
        detach(sandbox, sv_disk_record_device(sandbox->record->held_disks->pdata[i]));
}

/* The guest has it until its machine ends; the claim stays. */
static void note_held(SvUnplug *unplug)
{
    SvSandbox *sandbox = unplug->sandbox;
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < unplug->aliases->len; i++) {
        SvContainer *container = NULL;
        SvDiskRecord *disk = sv_disks_find(sandbox, unplug->aliases->pdata[i], &container);

        if (!disk || !container)
            continue;
        g_autofree char *title = sv_disk_record_title(disk);
        g_warning("container %s: %s is still held by the guest, freed when the machine ends",
            unplug->container, title);
        g_ptr_array_add(sandbox->record->held_disks, sv_disk_record_copy(disk));
        sv_disks_forget(container, disk);
    }
    if (!sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
}

static GError *busy_error(const SvUnplug *unplug)
{
    const SvDiskRecord *disk = sv_disks_find(unplug->sandbox, unplug->aliases->pdata[0], NULL);

    g_autofree char *title =
        disk ? sv_disk_record_title(disk) : g_strdup(unplug->aliases->pdata[0]);

    return g_error_new(SV_CORE_ERROR, SV_ERR_BUSY, "the guest does not let go of %s", title);
}

static gboolean ends_machine(const SvUnplug *unplug)
{
    return unplug->sandbox->config->end_machine_on_busy && !unplug->ending &&
        is_connected(unplug->sandbox);
}

static void give_up(SvUnplug *unplug)
{
    SvSandbox *sandbox = unplug->sandbox;
    g_autoptr(GError) error = busy_error(unplug);

    if (ends_machine(unplug)) {
        g_warning("container %s: %s: its machine is ended", unplug->container, error->message);
        unplug->ending = TRUE;
        unplug->deadline_us = g_get_monotonic_time() + END_MS * G_GINT64_CONSTANT(1000);
        sv_machine_kill(sandbox, SV_CAUSE_DISK_HELD);
        return;
    }
    note_held(unplug);
    unplug_end(unplug, error);
}

static gboolean on_timer(gpointer user_data)
{
    SvUnplug *unplug = user_data;
    gint64 now = g_get_monotonic_time();
    gint64 allowed = allowed_us(unplug->sandbox);

    if (now < unplug->deadline_us ||
        (!is_connected(unplug->sandbox) && !unplug->ending &&
            now < unplug->start_us + allowed * PATIENCE)) {
        if (!unplug->ending)
            ask(unplug);
        return G_SOURCE_CONTINUE;
    }
    gboolean over = !ends_machine(unplug);
    if (over)
        unplug->timer = 0;
    give_up(unplug);
    return over ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

static gboolean machine_is_gone(const SvSandbox *sandbox)
{
    /* while it is found out what became of it, it may live */
    return sandbox->domain_gone || sandbox->machine == SV_MACHINE_ENDED ||
        (sandbox->machine == SV_MACHINE_NONE && !sandbox->recovering);
}

void sv_disks_unplug(SvContainer *container, const char *alias, SvDone done, gpointer user_data)
{
    SvSandbox *sandbox = container->sandbox;
    SvUnplug *unplug = g_new0(SvUnplug, 1);
    guint again = MIN(ASK_AGAIN_MS, MAX(sandbox->config->unplug_ms / 3, 10));

    unplug->sandbox = sandbox;
    unplug->container = g_strdup(container->record->id);
    unplug->aliases = g_ptr_array_new_with_free_func(g_free);
    unplug->done = done;
    unplug->user_data = user_data;
    unplug->start_us = g_get_monotonic_time();
    unplug->deadline_us = unplug->start_us + allowed_us(sandbox);
    for (guint i = 0; i < container->record->disks->len; i++) {
        SvDiskRecord *disk = container->record->disks->pdata[i];

        if (!disk->plugged || (alias && !g_str_equal(disk->alias, alias)))
            continue;
        if (sv_disks_is_shared(sandbox, disk))
            sv_disk_unclaim(sandbox, disk);
        else
            g_ptr_array_add(unplug->aliases, g_strdup(sv_disk_record_device(disk)));
    }
    g_ptr_array_add(sandbox->unplugs, unplug);
    if (!unplug->aliases->len) {
        unplug_end(unplug, NULL);
    } else if (machine_is_gone(sandbox)) {
        sv_disks_machine_gone(sandbox); /* ends this one too */
    } else {
        unplug->timer = g_timeout_add(again, on_timer, unplug);
        ask(unplug);
    }
}

void sv_disks_free(SvSandbox *sandbox)
{
    sv_disks_unwatch_claims(sandbox);
    for (guint i = 0; i < sandbox->unplugs->len; i++)
        unplug_free(sandbox->unplugs->pdata[i]);
    g_ptr_array_unref(sandbox->unplugs);
    g_hash_table_unref(sandbox->detaching);
    g_hash_table_unref(sandbox->disk_holds);
}

void sv_disks_hold_again(SvSandbox *sandbox)
{
    g_autoptr(GPtrArray) disks = sv_disks_in_machine(sandbox);

    for (guint i = 0; i < disks->len; i++) {
        const SvDiskRecord *disk = disks->pdata[i];
        g_autoptr(GError) error = NULL;

        /* one that several read is kept by another monitor, mostly */
        if (!g_hash_table_contains(sandbox->disk_holds, sv_disk_record_device(disk)) &&
            !sv_disk_hold(sandbox, disk, &error))
            g_log(G_LOG_DOMAIN, disk->exclusive ? G_LOG_LEVEL_WARNING : G_LOG_LEVEL_INFO,
                "sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
    }
    sv_disks_watch_claims(sandbox);
}
