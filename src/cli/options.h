/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options as runc's parser takes them: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, flags also as
 * --flag=true|false, and "--" ends them. Bytes are taken as they are, whatever the locale. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

#define SV_CLI_ERROR (sv_cli_error_quark())
GQuark sv_cli_error_quark(void);

typedef enum {
    SV_OPT_FLAG, /* gboolean */
    SV_OPT_STRING, /* const char *, borrowed from the arguments; the last one counts */
    SV_OPT_LIST, /* GPtrArray * of const char *, made at the first one */
    SV_OPT_INT, /* gint64 */
} SvOptionType;

typedef struct {
    const char *name;
    char letter; /* 0: none */
    SvOptionType type;
    gsize offset; /* in the struct of values */
    const char *arg; /* what help calls the value; NULL: a flag */
    const char *help; /* NULL: taken and not used */
} SvOption;

/* Parses @argv (NULL-terminated) into @values, a zeroed struct. @first_only: what follows the first
 * argument that is no option is not looked at. Returns (transfer container) the arguments that are no
 * options, NULL-terminated and borrowed; NULL + SV_ERR_INVALID. "--help" and "-h" set *@help. */
char **sv_options_parse(const SvOption *options, gpointer values, gboolean first_only, char **argv,
    gboolean *help, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Frees lists. */
void sv_options_clear(const SvOption *options, gpointer values);
/* One line for each option (transfer full). */
char *sv_options_help(const SvOption *options) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
