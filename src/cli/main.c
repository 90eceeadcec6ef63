/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/log.h"
#include "cli/cli.h"
#include "oci/spec.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const SvVerb *find_verb(const char *name)
{
    for (guint i = 0; sv_verbs[i]; i++)
        if (g_str_equal(sv_verbs[i]->name, name))
            return sv_verbs[i];
    return NULL;
}

static int print_usage(GError **error)
{
    g_autoptr(GString) text = g_string_new("sandvirt - run every pod in a virtual machine of its "
                                           "own\n\nsandvirt [OPTION...] COMMAND [...]\n\n");
    g_autofree char *options = sv_options_help(sv_global_options);

    for (guint i = 0; sv_verbs[i]; i++)
        g_string_append_printf(text, "  %-10s %s\n", sv_verbs[i]->name, sv_verbs[i]->help);
    g_string_append_printf(text, "\nOptions:\n%s", options);
    g_string_append(text, "\nsandvirt COMMAND --help tells more about a command.\n");
    return sv_cli_print(text->str, error) ? 0 : -1;
}

static int print_verb_help(const SvVerb *verb, GError **error)
{
    g_autofree char *options = sv_options_help(verb->options);
    g_autofree char *text = g_strdup_printf("sandvirt %s%s%s%s\n\n%s\n%s%s", verb->name,
        verb->options ? " [OPTION...]" : "", *verb->synopsis ? " " : "", verb->synopsis, verb->help,
        *options ? "\nOptions:\n" : "", options);

    return sv_cli_print(text, error) ? 0 : -1;
}

static int print_version(GError **error)
{
    return sv_cli_print("sandvirt version " PACKAGE_VERSION "\nspec: " SV_OCI_VERSION "\n", error)
        ? 0
        : -1;
}

static int call_verb(
    SvCli *cli, const SvVerb *verb, gconstpointer values, char **args, GError **error)
{
    guint n = g_strv_length(args);

    if (n < verb->min_args || n > verb->max_args) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "%s takes: %s", verb->name,
            *verb->synopsis ? verb->synopsis : "no argument");
        return -1;
    }
    if (!(verb->flags & SV_VERB_ANYBODY) && geteuid() != 0) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_PERMISSION, "%s: sandvirt needs to run as root",
            verb->name);
        return -1;
    }
    if (!(verb->flags & SV_VERB_ANYBODY) && !cli->root) {
        const SvConfig *config = sv_cli_config(cli, error);

        if (!config)
            return -1;
        cli->root = config->run_dir;
    }
    return verb->run(cli, values, args, error);
}

static int run_verb(SvCli *cli, const SvVerb *verb, char **argv, GError **error)
{
    gpointer values = g_malloc0(MAX(verb->values_size, 1));
    gboolean help = FALSE;
    g_autofree char **args = NULL;
    int status = -1;

    if (verb->flags & SV_VERB_RAW)
        args = g_memdup2(argv, (g_strv_length(argv) + 1) * sizeof(*argv));
    else
        args = sv_options_parse(
            verb->options, values, (verb->flags & SV_VERB_FIRST_ONLY) != 0, argv, &help, error);

    if (args)
        status = help ? print_verb_help(verb, error) : call_verb(cli, verb, values, args, error);
    sv_options_clear(verb->options, values);
    g_free(values);
    if (status < 0 && verb->flags & SV_VERB_EXEC_STATUS)
        status = -255;
    return status;
}

static gboolean start_log(const SvCli *cli, GError **error)
{
    SvLogFormat format = SV_LOG_TEXT;

    if (g_strcmp0(cli->log_format, "json") == 0) {
        format = SV_LOG_JSON;
    } else if (cli->log_format && !g_str_equal(cli->log_format, "text")) {
        g_set_error(
            error, SV_CLI_ERROR, SV_ERR_INVALID, "unknown log format \"%s\"", cli->log_format);
        return FALSE;
    }
    return sv_log_init(
        "sandvirt", cli->debug, cli->log && *cli->log ? cli->log : NULL, format, TRUE, error);
}

/* The exit status, or minus the one that the failure @error has. */
static int run(SvCli *cli, char **argv, GError **error)
{
    gboolean help = FALSE;
    g_autofree char **args = sv_options_parse(sv_global_options, cli, TRUE, argv, &help, error);
    const SvVerb *verb;

    if (!args || !start_log(cli, error))
        return -1;
    if (cli->config_path && !*cli->config_path) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "option --config needs a value");
        return -1;
    }
    if (cli->config_path)
        cli->config_path = cli->config_file = g_canonicalize_filename(cli->config_path, NULL);
    if (cli->version)
        return print_version(error);
    if (help || !args[0] || g_str_equal(args[0], "help"))
        return print_usage(error);
    verb = find_verb(args[0]);
    if (!verb) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "no such command: %s", args[0]);
        return -1;
    }
    return run_verb(cli, verb, args + 1, error);
}

/* A caller may have closed its standard streams: nothing else shall get these numbers. */
static void fill_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

int main(int argc, char **argv)
{
    SvCli cli = {NULL};
    GError *error = NULL;
    int status;

    fill_standard_fds();
    status = run(&cli, argv + 1, &error);
    if (status < 0) {
        sv_log_fatal_error(error ? error->message : "unknown error");
        status = -status;
    }
    g_clear_error(&error);
    sv_config_unref(cli.config);
    g_free(cli.config_file);
    return status;
}
