/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/options.h"
#include "base/names.h"
#include <string.h>

SV_DEFINE_ERROR_QUARK(cli)

static const SvOption *find_name(const SvOption *options, const char *name, gsize len)
{
    for (const SvOption *o = options; o && o->name; o++)
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    return NULL;
}

static const SvOption *find_letter(const SvOption *options, char letter)
{
    for (const SvOption *o = options; o && o->name; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

static gboolean set_flag(const SvOption *option, gpointer values, const char *value, GError **error)
{
    gboolean *flag = G_STRUCT_MEMBER_P(values, option->offset);

    if (!value || g_str_equal(value, "true") || g_str_equal(value, "1")) {
        *flag = TRUE;
    } else if (g_str_equal(value, "false") || g_str_equal(value, "0")) {
        *flag = FALSE;
    } else {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "invalid value \"%s\" for flag --%s",
            value, option->name);
        return FALSE;
    }
    return TRUE;
}

static gboolean set_value(const SvOption *option, gpointer values, char *value, GError **error)
{
    gpointer field = G_STRUCT_MEMBER_P(values, option->offset);

    switch (option->type) {
    case SV_OPT_FLAG:
        return set_flag(option, values, value, error);
    case SV_OPT_STRING:
        *(const char **)field = value;
        return TRUE;
    case SV_OPT_LIST:
        if (!*(GPtrArray **)field)
            *(GPtrArray **)field = g_ptr_array_new();
        g_ptr_array_add(*(GPtrArray **)field, value);
        return TRUE;
    case SV_OPT_INT:
        if (sv_parse_int64(value, G_MININT64, G_MAXINT64, field, NULL))
            return TRUE;
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "invalid value \"%s\" for --%s", value,
            option->name);
        return FALSE;
    }
    return FALSE;
}

/* One option that begins at *@argv; advances it past a value that is an argument of its own. */
static gboolean parse_option(const SvOption *options, gpointer values, char ***argv, GError **error)
{
    char *arg = **argv;
    const char *name = arg + (arg[1] == '-' ? 2 : 1);
    char *equals = strchr(arg, '=');
    gsize len = equals ? (gsize)(equals - name) : strlen(name);
    /* runc takes long names with one dash too */
    const SvOption *option = arg[1] == '-' || len > 1 ? find_name(options, name, len) : NULL;
    char *value = option && equals ? equals + 1 : NULL;

    if (!option && arg[1] != '-') {
        option = find_letter(options, arg[1]);
        if (option && arg[2] != '\0')
            value = arg[2] == '=' ? arg + 3 : arg + 2;
        if (option && option->type == SV_OPT_FLAG && arg[2] != '\0' && arg[2] != '=')
            option = NULL;
    }
    if (!option) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "unknown option %s", arg);
        return FALSE;
    }
    if (option->type != SV_OPT_FLAG && !value) {
        value = *++*argv;
        if (!value) {
            g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "option %s needs a value", arg);
            return FALSE;
        }
    }
    return set_value(option, values, value, error);
}

char **sv_options_parse(const SvOption *options, gpointer values, gboolean first_only, char **argv,
    gboolean *help, GError **error)
{
    g_autoptr(GPtrArray) rest = g_ptr_array_new();
    gboolean only_arguments = FALSE;

    for (; *argv; argv++) {
        char *arg = *argv;

        if (only_arguments || arg[0] != '-' || arg[1] == '\0') {
            g_ptr_array_add(rest, arg);
            only_arguments |= first_only;
        } else if (g_str_equal(arg, "--")) {
            only_arguments = TRUE;
        } else if (g_str_equal(arg, "--help") || g_str_equal(arg, "-h")) {
            *help = TRUE;
        } else if (!parse_option(options, values, &argv, error)) {
            return NULL;
        }
    }
    g_ptr_array_add(rest, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&rest), FALSE);
}

void sv_options_clear(const SvOption *options, gpointer values)
{
    for (const SvOption *o = options; o && o->name; o++) {
        if (o->type == SV_OPT_LIST)
            g_clear_pointer((GPtrArray **)G_STRUCT_MEMBER_P(values, o->offset), g_ptr_array_unref);
    }
}

char *sv_options_help(const SvOption *options)
{
    GString *text = g_string_new(NULL);

    for (const SvOption *o = options; o && o->name; o++) {
        g_autofree char *left = NULL;

        if (!o->help)
            continue;
        left = g_strdup_printf("--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        if (o->letter)
            g_string_append_printf(text, "  -%c, %-26s %s\n", o->letter, left, o->help);
        else
            g_string_append_printf(text, "      %-26s %s\n", left, o->help);
    }
    return g_string_free(text, FALSE);
}
