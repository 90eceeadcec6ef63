/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fd.h"
#include "cli/cli.h"
#include "oci/spec.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *bundle;
    gboolean rootless;
} Options;
static const SvOption options[] = {
    {"bundle", 'b', SV_OPT_STRING, G_STRUCT_OFFSET(Options, bundle), "DIR",
        "where to write it (the current folder)"},
    {"rootless", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, rootless), NULL, NULL},
    {NULL},
};

static int cmd_spec(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_autofree char *path =
        g_build_filename(opts->bundle ? opts->bundle : ".", "config.json", NULL);
    g_autoptr(JsonNode) node = sv_spec_default();
    g_autofree char *json = sv_json_text(node, TRUE);
    g_autofree char *text = g_strconcat(json, "\n", NULL);
    g_auto(SvFd) fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0 && errno == EEXIST)
        g_set_error(error, SV_CLI_ERROR, SV_ERR_EXISTS, "%s exists: remove it first", path);
    else if (fd < 0)
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "write %s", path);
    else if (sv_fd_write_all(fd, text, strlen(text), error))
        return 0;
    else
        unlink(path);
    return -1;
}

const SvVerb sv_verb_spec = {"spec", "", "Write a config.json to begin with", options,
    sizeof(Options), 0, 0, SV_VERB_ANYBODY, cmd_spec};
