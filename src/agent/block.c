/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/block.h"
#include "agent/block-table.h"
#include "base/file.h"
#include "rpc/sandvirt.pb-c.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>

/* virtio-blk's VIRTIO_BLK_ID_BYTES */
#define VIRTIO_SERIAL 20

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

char *sv_block_serial(const char *sys_block, const char *name)
{
    g_autofree char *dir = g_build_filename(sys_block, name, NULL);
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

gboolean sv_block_describe(const char *sys_block, const char *name, SvBlock *block)
{
    g_autofree char *dir = g_build_filename(sys_block, name, NULL);
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

/* ---- waiting */

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
    response.guest_ns = (g_get_monotonic_time() - call->began_us) * 1000;
    sv_call_reply(call, &response.base);
}

void sv_block_wait_call(SvCall *call)
{
    Sandvirt__V1__WaitBlockRequest *request = (Sandvirt__V1__WaitBlockRequest *)call->message;

    sv_block_table_wait(call->agent->blocks, request->serial, request->timeout_ms, on_found, call);
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
