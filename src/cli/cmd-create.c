/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/create.h"

static int cmd_create(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    g_auto(SvCreated) created = SV_CREATED_INIT;

    return sv_create(cli, values, args[0], FALSE, &created, error) ? 0 : -1;
}

typedef struct {
    SvCreateOptions create;
} Options;
static const SvOption options[] = {SV_CREATE_OPTION_ROWS(Options, create), {NULL}};

const SvVerb sv_verb_create = {"create", "CONTAINER",
    "Create a container; its command waits for start", options, sizeof(Options), 1, 1, 0,
    cmd_create};
