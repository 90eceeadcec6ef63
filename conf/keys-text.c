/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What people read, written from the table of keys. */
#include <config.h>

#include "conf/keys.h"

#include <string.h>

/* Appends @text wrapped at @width columns, each line after @prefix. */
static void append_wrapped(GString *out, const char *prefix, const char *text, gsize width)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    gsize column = 0;
    for (guint i = 0; words[i] != NULL; i++) {
        gsize len = strlen(words[i]);
        if (column > 0 && column + 1 + len > width) {
            g_string_append_c(out, '\n');
            column = 0;
        }
        g_string_append(out, column == 0 ? prefix : " ");
        column += column == 0 ? strlen(prefix) + len : len + 1;
        g_string_append(out, words[i]);
    }
    g_string_append_c(out, '\n');
}

char *sv_keys_sample(void)
{
    guint n = 0;
    const SvKey *keys = sv_keys(&n);
    GString *out = g_string_new(
        "# Configuration of sandvirt. Every key stands here with its default.\n"
        "# Files named sandvirt.conf.d/NAME.conf are read on top of this one, in order of their "
        "names.\n");
    const char *group = "";
    for (guint i = 0; i < n; i++) {
        if (strcmp(group, keys[i].group) != 0)
            g_string_append_printf(out, "\n[%s]\n", keys[i].group);
        group = keys[i].group;
        g_autofree char *type = sv_key_describe(&keys[i]);
        g_string_append_c(out, '\n');
        append_wrapped(out, "# ", keys[i].doc, 96);
        g_autofree char *sentence = g_strdup_printf("(%s)", type);
        append_wrapped(out, "# ", sentence, 96);
        g_string_append_printf(
            out, "#%s =%s%s\n", keys[i].name, *keys[i].def == '\0' ? "" : " ", keys[i].def);
    }
    return g_string_free(out, FALSE);
}

char *sv_keys_markdown(void)
{
    guint n = 0;
    const SvKey *keys = sv_keys(&n);
    GString *out = g_string_new(
        "# Configuration\n\n"
        "<!-- Written by `gen-doc markdown` from the table in conf/keys.c. -->\n\n"
        "sandvirt reads `" SV_SYSCONFDIR "/" SV_CONFIG_FILE "`, or the file given with `--config`, "
        "and then the files\n`sandvirt.conf.d/NAME.conf` beside it in the order of their names: "
        "what comes later wins. Without any\nof them the defaults below hold. A group or key that "
        "is not listed here is an error, named with file and line.\n");
    const char *group = "";
    for (guint i = 0; i < n; i++) {
        if (strcmp(group, keys[i].group) != 0)
            g_string_append_printf(out,
                "\n## [%s]\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
                keys[i].group);
        group = keys[i].group;
        g_autofree char *type = sv_key_describe(&keys[i]);
        g_string_append_printf(out, "| `%s` | %s | %s%s%s | %s |\n", keys[i].name, type,
            *keys[i].def == '\0' ? "empty" : "`", keys[i].def, *keys[i].def == '\0' ? "" : "`",
            keys[i].doc);
    }
    return g_string_free(out, FALSE);
}
