/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/block.h"
#include "base/file.h"
#include "rpc/sandvirt.pb-c.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>

/* virtio-blk's VIRTIO_BLK_ID_BYTES */
#define VIRTIO_SERIAL 20
#define DEFAULT_TIMEOUT_MS 10000

gboolean sv_block_serial_matches(const char *shown, const char *serial)
{
    if (!*serial || !*shown)
        return FALSE;
    if (strcmp(shown, serial) == 0)
        return TRUE;
    return strlen(shown) == VIRTIO_SERIAL && strncmp(shown, serial, VIRTIO_SERIAL) == 0;
}

char *sv_block_parse_vpd80(const guint8 *page, gsize len)
{
    gsize n;

    if (len < 4 || page[1] != 0x80)
        return NULL;
    n = (gsize)page[2] << 8 | page[3];
    if (n > len - 4)
        return NULL;
    return g_strstrip(g_strndup((const char *)page + 4, n));
}

/* The serial of a disk (transfer full), NULL when it has none. */
static char *read_serial(const char *dir)
{
    g_autofree char *plain = g_build_filename(dir, "serial", NULL);
    g_autofree char *vpd = g_build_filename(dir, "device", "vpd_pg80", NULL);
    char *text = NULL;
    gsize len = 0;

    if (g_file_get_contents(plain, &text, NULL, NULL))
        return g_strstrip(text);
    if (g_file_get_contents(vpd, &text, &len, NULL)) {
        char *serial = sv_block_parse_vpd80((const guint8 *)text, len);

        g_free(text);
        return serial;
    }
    return NULL;
}

static guint64 read_number(const char *dir, const char *file)
{
    g_autofree char *path = g_build_filename(dir, file, NULL);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? g_ascii_strtoull(text, NULL, 10) : 0;
}

static gboolean describe(const char *dir, const char *name, SvBlock *block)
{
    g_autofree char *path = g_build_filename(dir, "dev", NULL);
    g_autofree char *text = NULL;
    char *colon = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return FALSE;
    memset(block, 0, sizeof(*block));
    block->major = (guint)g_ascii_strtoull(text, &colon, 10);
    if (*colon == ':')
        block->minor = (guint)g_ascii_strtoull(colon + 1, NULL, 10);
    block->size_bytes = read_number(dir, "size") * 512;
    block->read_only = read_number(dir, "ro") != 0;
    return g_strlcpy(block->name, name, sizeof(block->name)) < sizeof(block->name);
}

guint sv_block_find(const char *sys_block, const char *serial, SvBlock *block)
{
    GDir *stream = g_dir_open(sys_block, 0, NULL);
    const char *name;
    guint found = 0;

    while (stream && (name = g_dir_read_name(stream))) {
        g_autofree char *dir = g_build_filename(sys_block, name, NULL);
        g_autofree char *shown = read_serial(dir);

        if (shown && sv_block_serial_matches(shown, serial) && describe(dir, name, block))
            found++;
    }
    if (stream)
        g_dir_close(stream);
    return found;
}

/* ---- waiting */

typedef struct {
    SvAgent *agent;
    char *serial;
    guint listener;
    guint timer;
    SvBlockDone done;
    gpointer user_data;
} Wait;

/* @found: how many disks have the serial: one is right. */
static void wait_finish(Wait *wait, guint found, const SvBlock *block)
{
    g_autoptr(GError) error = NULL;

    if (wait->listener)
        sv_uevents_unlisten(wait->agent->uevents, wait->listener);
    if (wait->timer)
        g_source_remove(wait->timer);
    if (found > 1)
        error = g_error_new(
            SV_AGENT_ERROR, SV_ERR_EXISTS, "%u disks have the serial %s", found, wait->serial);
    else if (!found)
        error = g_error_new(SV_AGENT_ERROR, SV_ERR_TIMEOUT,
            "no disk with serial %s came up in the guest in time", wait->serial);
    wait->done(error ? NULL : block, error, wait->user_data);
    g_free(wait->serial);
    g_free(wait);
}

static void on_event(const SvUevent *event, gpointer user_data)
{
    Wait *wait = user_data;
    SvBlock block;
    guint found = sv_block_find("/sys/block", wait->serial, &block);

    if (found)
        wait_finish(wait, found, &block);
}

static gboolean on_timeout(gpointer user_data)
{
    Wait *wait = user_data;

    wait->timer = 0;
    wait_finish(wait, 0, NULL);
    return G_SOURCE_REMOVE;
}

void sv_block_wait(
    SvAgent *agent, const char *serial, guint timeout_ms, SvBlockDone done, gpointer user_data)
{
    Wait *wait = g_new0(Wait, 1);
    SvBlock block;
    guint found;

    wait->agent = agent;
    wait->serial = g_strdup(serial);
    wait->done = done;
    wait->user_data = user_data;
    /* Listening began with the agent: no event is lost between the look and the wait. */
    found = sv_block_find("/sys/block", serial, &block);
    if (found) {
        wait_finish(wait, found, &block);
        return;
    }
    wait->listener = sv_uevents_listen(agent->uevents, "block", on_event, wait);
    wait->timer = g_timeout_add(timeout_ms ? timeout_ms : DEFAULT_TIMEOUT_MS, on_timeout, wait);
}

static void on_found(const SvBlock *block, const GError *error, gpointer user_data)
{
    Sandvirt__V1__WaitBlockResponse response = SANDVIRT__V1__WAIT_BLOCK_RESPONSE__INIT;
    SvCall *call = user_data;
    g_autofree char *node = NULL;

    if (!block) {
        sv_call_fail(call, error);
        return;
    }
    response.node = node = g_strdup_printf("/dev/%s", block->name);
    response.major = block->major;
    response.minor = block->minor;
    response.size_bytes = block->size_bytes;
    response.read_only = block->read_only;
    sv_call_reply(call, &response.base);
}

void sv_block_wait_call(SvCall *call)
{
    Sandvirt__V1__WaitBlockRequest *request = (Sandvirt__V1__WaitBlockRequest *)call->message;

    sv_block_wait(call->agent, request->serial, request->timeout_ms, on_found, call);
}

/* ---- options */

gulong sv_block_mount_flags(const char *options, gboolean read_only, char **data)
{
    static const struct {
        const char *name;
        gulong set, clear;
    } known[] = {
        {"defaults", 0, 0},
        {"ro", MS_RDONLY, 0},
        {"rw", 0, MS_RDONLY},
        {"nosuid", MS_NOSUID, 0},
        {"suid", 0, MS_NOSUID},
        {"nodev", MS_NODEV, 0},
        {"dev", 0, MS_NODEV},
        {"noexec", MS_NOEXEC, 0},
        {"exec", 0, MS_NOEXEC},
        {"sync", MS_SYNCHRONOUS, 0},
        {"async", 0, MS_SYNCHRONOUS},
        {"dirsync", MS_DIRSYNC, 0},
        {"noatime", MS_NOATIME, 0},
        {"atime", 0, MS_NOATIME},
        {"nodiratime", MS_NODIRATIME, 0},
        {"diratime", 0, MS_NODIRATIME},
        {"relatime", MS_RELATIME, 0},
        {"norelatime", 0, MS_RELATIME},
        {"strictatime", MS_STRICTATIME, 0},
        {"lazytime", MS_LAZYTIME, 0},
    };
    g_auto(GStrv) words = g_strsplit(options ? options : "", ",", -1);
    GString *rest = g_string_new(NULL);
    gulong flags = 0;

    for (char **word = words; *word; word++) {
        gsize i = 0;

        while (i < G_N_ELEMENTS(known) && strcmp(known[i].name, *word) != 0)
            i++;
        if (i < G_N_ELEMENTS(known))
            flags = (flags & ~known[i].clear) | known[i].set;
        else if (**word)
            g_string_append_printf(rest, "%s%s", rest->len ? "," : "", *word);
    }
    if (read_only)
        flags |= MS_RDONLY;
    *data = g_string_free(rest, FALSE);
    return flags;
}
