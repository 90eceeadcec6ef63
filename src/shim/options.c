/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/options.h"
#include "base/names.h"
#include "shim/streams.h"
#include <string.h>

typedef enum { OPT_STRING, OPT_NUMBER, OPT_FLAG } OptType;
typedef struct {
    const char *name;
    OptType type;
    gsize offset;
} Opt;

#define FIELD(name) G_STRUCT_OFFSET(SvShimOptions, name)
static const Opt opts[] = {
    {"container", OPT_STRING, FIELD(container)},
    {"monitor", OPT_STRING, FIELD(monitor)},
    {"launcher", OPT_STRING, FIELD(launcher)},
    {"root", OPT_STRING, FIELD(root)},
    {"sandbox", OPT_STRING, FIELD(sandbox)},
    {"config", OPT_STRING, FIELD(config)},
    {"monitor-path", OPT_STRING, FIELD(monitor_path)},
    {"console-socket", OPT_STRING, FIELD(console_socket)},
    {"handle", OPT_NUMBER, FIELD(handle)},
    {"rows", OPT_NUMBER, FIELD(rows)},
    {"cols", OPT_NUMBER, FIELD(cols)},
    {"descriptors", OPT_NUMBER, FIELD(descriptors)},
    {"debug", OPT_FLAG, FIELD(debug)},
    {"terminal", OPT_FLAG, FIELD(terminal)},
    {"no-stdin", OPT_FLAG, FIELD(no_stdin)},
};

static const Opt *find(const char *name, gsize len)
{
    for (guint i = 0; i < G_N_ELEMENTS(opts); i++)
        if (strlen(opts[i].name) == len && strncmp(opts[i].name, name, len) == 0)
            return &opts[i];
    return NULL;
}

static gboolean parse_one(SvShimOptions *options, const char *arg, GError **error)
{
    const char *value = strchr(arg, '=');
    const Opt *opt = NULL;
    gint64 number;

    if (g_str_has_prefix(arg, "--"))
        opt = find(arg + 2, value ? (gsize)(value - arg - 2) : strlen(arg + 2));
    if (!opt || (opt->type == OPT_FLAG) != (value == NULL)) {
        g_set_error(error, SV_SHIM_ERROR, SV_ERR_INVALID, "bad argument '%s'", arg);
        return FALSE;
    }
    switch (opt->type) {
    case OPT_FLAG:
        G_STRUCT_MEMBER(gboolean, options, opt->offset) = TRUE;
        break;
    case OPT_STRING:
        G_STRUCT_MEMBER(const char *, options, opt->offset) = value + 1;
        break;
    case OPT_NUMBER:
        if (!sv_parse_int64(value + 1, 0, G_MAXUINT32, &number, error))
            return FALSE;
        G_STRUCT_MEMBER(guint32, options, opt->offset) = (guint32)number;
        break;
    }
    return TRUE;
}

gboolean sv_shim_options_parse(SvShimOptions *options, int argc, char **argv, GError **error)
{
    memset(options, 0, sizeof(*options));
    options->launcher = options->root = options->sandbox = options->config = "";
    options->monitor_path = options->console_socket = "";
    for (int i = 1; i < argc; i++)
        if (!parse_one(options, argv[i], error))
            return FALSE;
    if (!options->container || !options->monitor || options->descriptors > SV_DESCRIPTORS_MAX) {
        g_set_error(error, SV_SHIM_ERROR, SV_ERR_INVALID,
            "sandvirt-shim is started by sandvirt, not by hand");
        return FALSE;
    }
    return TRUE;
}
