/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gen-man sandvirt.8|sandvirt.conf.5 TEXT-FILE: a manual page on stdout. The text file has the sections that
 * no table knows: "=== PAGE" begins those of a page, "== TITLE" a section, lines with a tab first are shown
 * as they are, an empty line begins a paragraph, "@verbs@", "@options@" and "@keys@" stand for the tables,
 * "@br@" for the end of a line. */
#include <config.h>

#include "cli/cli.h"
#include "conf/keys.h"
#include <stdio.h>
#include <string.h>

/* Roff takes backslashes, and points and quotes at the start of a line, for its own. */
static void put(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\\')
            fputs("\\e", stdout);
        else if (*c == '-')
            fputs("\\-", stdout);
        else if (*c != '`')
            putchar(*c);
    }
}

static void put_line(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    put(text);
    putchar('\n');
}

static void put_options(const SvOption *options)
{
    for (; options && options->name; options++) {
        if (!options->help)
            continue;
        fputs(".TP\n.B ", stdout);
        if (options->letter)
            printf("\\-%c, ", options->letter);
        put("--");
        put(options->name);
        if (options->arg)
            printf(" \\fI%s\\fR", options->arg);
        putchar('\n');
        put_line(options->help);
    }
}

static void put_verbs(void)
{
    for (guint i = 0; sv_verbs[i]; i++) {
        const SvVerb *verb = sv_verbs[i];

        printf(".SS %s %s\n", verb->name, verb->synopsis);
        fputs(verb->help, stdout);
        fputs(".\n", stdout);
        put_options(verb->options);
    }
}

static void put_keys(void)
{
    guint n = 0;
    const SvKey *keys = sv_keys(&n);

    for (guint i = 0; i < n; i++) {
        g_autofree char *kind = sv_key_describe(&keys[i]);

        if (i == 0 || !g_str_equal(keys[i].group, keys[i - 1].group))
            printf(".SS [%s]\n", keys[i].group);
        printf(".TP\n.B %s = %s\n", keys[i].name, keys[i].def);
        put_line(keys[i].doc);
        fputs("(", stdout);
        put(kind);
        fputs(")\n", stdout);
    }
}

static void put_text(char **lines)
{
    gboolean shown = FALSE;

    for (; *lines && !g_str_has_prefix(*lines, "=== "); lines++) {
        const char *line = *lines;

        if ((*line == '\t') != shown) {
            shown = !shown;
            puts(shown ? ".PP\n.nf" : ".fi");
        }
        if (g_str_has_prefix(line, "== "))
            printf(".SH %s\n", line + 3);
        else if (g_str_equal(line, "@verbs@"))
            put_verbs();
        else if (g_str_equal(line, "@options@"))
            put_options(sv_global_options);
        else if (g_str_equal(line, "@keys@"))
            put_keys();
        else if (g_str_equal(line, "@br@"))
            puts(".br");
        else if (*line)
            put_line(line);
        else
            puts(".PP");
    }
}

int main(int argc, char **argv)
{
    g_autofree char *text = NULL, *mark = NULL;
    g_auto(GStrv) lines = NULL;
    const char *section = argc == 3 ? strrchr(argv[1], '.') : NULL;

    if (!section || !g_file_get_contents(argv[2], &text, NULL, NULL)) {
        fputs("usage: gen-man PAGE TEXT\n", stderr);
        return 2;
    }
    mark = g_strdup_printf("=== %s", argv[1]);
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (!g_str_equal(*line, mark))
            continue;
        printf(".\\\" SPDX-License-Identifier: LGPL-2.1-or-later\n.TH %.*s %s \"\" \"sandvirt "
               "%s\" \"sandvirt\"\n",
            (int)(section - argv[1]), argv[1], section + 1, PACKAGE_VERSION);
        put_text(line + 1);
        return 0;
    }
    return 1;
}
