/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options of a block device's mount: as /proc prints them, for the host's kernel again, for the guest's. */
#include <config.h>

#include "devices/block-mount.h"

#include <string.h>
#include <sys/mount.h>

static const struct {
    const char *name;
    gulong flag;
} flag_names[] = {
    {"ro", MS_RDONLY},
    {"nosuid", MS_NOSUID},
    {"nodev", MS_NODEV},
    {"noexec", MS_NOEXEC},
    {"noatime", MS_NOATIME},
    {"nodiratime", MS_NODIRATIME},
    {"relatime", MS_RELATIME},
    {"nosymfollow", 256}, /* MS_NOSYMFOLLOW: not in older headers */
    {"sync", MS_SYNCHRONOUS},
    {"dirsync", MS_DIRSYNC},
    {"mand", MS_MANDLOCK},
    {"lazytime", MS_LAZYTIME},
};

/* Printed by the kernel, no option of the file system: the opposite of a flag, or a security module's. */
static const char *const not_data[] = {"rw", "seclabel", "strictatime", NULL};

/* What Linux 6.1 takes for sure and what matters to the one who mounted it; quotas are the host's. A
 * "=" stands for any value. */
static const char *const ext_options[] = {"acl", "noacl", "user_xattr", "nouser_xattr", "discard",
    "nodiscard", "barrier", "nobarrier", "barrier=", "errors=", "data=", "commit=", "noload",
    "norecovery", "delalloc", "nodelalloc", "auto_da_alloc", "noauto_da_alloc", "dioread_lock",
    "dioread_nolock", "journal_checksum", "journal_async_commit",
    "stripe=", "inode_readahead_blks=", "max_batch_time=", "min_batch_time=", "grpid", "nogrpid",
    "bsddf", "minixdf", "resuid=", "resgid=", NULL};
static const char *const xfs_options[] = {"discard", "nodiscard", "inode32", "inode64", "wsync",
    "swalloc", "noalign", "largeio", "nolargeio",
    "allocsize=", "logbufs=", "logbsize=", "sunit=", "swidth=", "filestreams", "ikeep", "noikeep",
    "norecovery", NULL};

static gulong flag_of(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(flag_names); i++)
        if (strcmp(flag_names[i].name, name) == 0)
            return flag_names[i].flag;
    return 0;
}

static void append(GString *text, const char *word)
{
    if (text->len > 0)
        g_string_append_c(text, ',');
    g_string_append(text, word);
}

gulong sv_block_mount_flags(const SvBlockMount *found, char **data)
{
    g_autofree char *all = g_strdup_printf("%s,%s", found->options != NULL ? found->options : "",
        found->super_options != NULL ? found->super_options : "");
    g_auto(GStrv) words = g_strsplit(all, ",", -1);
    GString *rest = g_string_new(NULL);
    gulong flags = 0;
    for (char **word = words; *word != NULL; word++) {
        gulong flag = flag_of(*word);
        flags |= flag;
        if (flag == 0 && **word != '\0' && !g_strv_contains(not_data, *word))
            append(rest, *word);
    }
    /* the kernel's default is relatime: it prints nothing for strictatime */
    if ((flags & (MS_RELATIME | MS_NOATIME)) == 0)
        flags |= MS_STRICTATIME;
    *data = g_string_free(rest, FALSE);
    return flags;
}

static gboolean has_word(const char *options, const char *word)
{
    g_auto(GStrv) words = g_strsplit(options != NULL ? options : "", ",", -1);
    return g_strv_contains((const char *const *)words, word);
}

gboolean sv_block_mount_is_read_only(const SvBlockMount *found)
{
    return has_word(found->options, "ro") || has_word(found->super_options, "ro");
}

static gboolean is_listed(const char *word, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (g_str_has_suffix(*list, "=") ? g_str_has_prefix(word, *list) : strcmp(word, *list) == 0)
            return TRUE;
    }
    return FALSE;
}

static gboolean goes_to_guest(const char *word, gboolean xfs)
{
    /* a flag that the agent knows by its name */
    if (strcmp(word, "ro") != 0 && strcmp(word, "nosymfollow") != 0 && strcmp(word, "mand") != 0 &&
        flag_of(word) != 0)
        return TRUE;
    return is_listed(word, xfs ? xfs_options : ext_options);
}

char *sv_block_guest_options(
    const char *fstype, const char *options, const char *super_options, gboolean read_only)
{
    g_autofree char *all = g_strdup_printf(
        "%s,%s", options != NULL ? options : "", super_options != NULL ? super_options : "");
    g_auto(GStrv) words = g_strsplit(all, ",", -1);
    gboolean xfs = g_strcmp0(fstype, "xfs") == 0;
    GString *text = g_string_new(NULL);
    for (char **word = words; *word != NULL; word++)
        if (goes_to_guest(*word, xfs))
            append(text, *word);
    if (options != NULL && !has_word(options, "relatime") && !has_word(options, "noatime"))
        append(text, "strictatime");
    /* two copies of one image in one machine */
    if (xfs)
        append(text, "nouuid");
    /* A log cannot be replayed on a disk that cannot be written; what was unmounted well needs none. */
    if (read_only && (xfs || g_strcmp0(fstype, "ext4") == 0 || g_strcmp0(fstype, "ext3") == 0) &&
        !has_word(text->str, "norecovery") && !has_word(text->str, "noload"))
        append(text, xfs ? "norecovery" : "noload");
    return g_string_free(text, FALSE);
}
