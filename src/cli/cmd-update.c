/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/json.h"
#include "base/names.h"
#include "cli/target.h"
#include <string.h>

#define RESOURCES_MAX (1024 * 1024)

typedef struct {
    const char *resources;
    const char *memory, *reservation, *swap;
    const char *period, *quota, *shares, *burst, *idle, *pids, *weight, *cpus, *mems;
    const char *ignored, *cache_schema, *bandwidth_schema;
    GPtrArray *device_add, *device_remove;
} Options;
#define FIELD(name) G_STRUCT_OFFSET(Options, name)
static const SvOption options[] = {
    {"resources", 'r', SV_OPT_STRING, FIELD(resources), "FILE",
        "linux.resources in JSON; - is stdin"},
    {"memory", 0, SV_OPT_STRING, FIELD(memory), "BYTES", "memory limit"},
    {"memory-reservation", 0, SV_OPT_STRING, FIELD(reservation), "BYTES", "memory kept free"},
    {"memory-swap", 0, SV_OPT_STRING, FIELD(swap), "BYTES", "memory and swap; -1: unlimited"},
    {"cpu-period", 0, SV_OPT_STRING, FIELD(period), "USEC", "CPU period"},
    {"cpu-quota", 0, SV_OPT_STRING, FIELD(quota), "USEC", "CPU time in a period"},
    {"cpu-share", 0, SV_OPT_STRING, FIELD(shares), "N", "CPU weight"},
    {"cpu-burst", 0, SV_OPT_STRING, FIELD(burst), "USEC", "CPU burst"},
    {"cpu-idle", 0, SV_OPT_STRING, FIELD(idle), "0|1", "run only when nothing else does"},
    {"cpuset-cpus", 0, SV_OPT_STRING, FIELD(cpus), "LIST", "CPUs to use"},
    {"cpuset-mems", 0, SV_OPT_STRING, FIELD(mems), "LIST", "memory nodes to use"},
    {"pids-limit", 0, SV_OPT_STRING, FIELD(pids), "N", "most processes"},
    {"blkio-weight", 0, SV_OPT_STRING, FIELD(weight), "N", "weight of block I/O"},
    {"device-add", 0, SV_OPT_LIST, FIELD(device_add), "HOST[:PATH[:rwm]]",
        "block device of the host to plug"},
    {"device-remove", 0, SV_OPT_LIST, FIELD(device_remove), "PATH", "block device to unplug"},
    {"kernel-memory", 0, SV_OPT_STRING, FIELD(ignored), "BYTES", NULL},
    {"kernel-memory-tcp", 0, SV_OPT_STRING, FIELD(ignored), "BYTES", NULL},
    {"cpu-rt-period", 0, SV_OPT_STRING, FIELD(ignored), "USEC", NULL},
    {"cpu-rt-runtime", 0, SV_OPT_STRING, FIELD(ignored), "USEC", NULL},
    {"l3-cache-schema", 0, SV_OPT_STRING, FIELD(cache_schema), "SCHEMA", NULL},
    {"mem-bw-schema", 0, SV_OPT_STRING, FIELD(bandwidth_schema), "SCHEMA", NULL},
    {NULL},
};

/* Options that are members of linux.resources. */
static const struct {
    const char *option;
    gsize offset;
    const char *group, *member;
    enum { TEXT, SIZE, NUMBER } kind;
    gint64 min, max; /* of a number */
} members[] = {
    {"memory", FIELD(memory), "memory", "limit", SIZE, 0, 0},
    {"memory-reservation", FIELD(reservation), "memory", "reservation", SIZE, 0, 0},
    {"memory-swap", FIELD(swap), "memory", "swap", SIZE, 0, 0},
    {"cpu-period", FIELD(period), "cpu", "period", NUMBER, 0, G_MAXINT64},
    {"cpu-quota", FIELD(quota), "cpu", "quota", NUMBER, -1, G_MAXINT64},
    {"cpu-share", FIELD(shares), "cpu", "shares", NUMBER, 0, G_MAXINT64},
    {"cpu-burst", FIELD(burst), "cpu", "burst", NUMBER, 0, G_MAXINT64},
    {"cpu-idle", FIELD(idle), "cpu", "idle", NUMBER, 0, 1},
    {"cpuset-cpus", FIELD(cpus), "cpu", "cpus", TEXT, 0, 0},
    {"cpuset-mems", FIELD(mems), "cpu", "mems", TEXT, 0, 0},
    {"pids-limit", FIELD(pids), "pids", "limit", NUMBER, -1, G_MAXINT64},
    {"blkio-weight", FIELD(weight), "blockIO", "weight", NUMBER, 0, 1000},
};

static gboolean parse(guint i, const char *text, gint64 *value)
{
    if (members[i].kind == SIZE)
        return sv_parse_size(text, value);
    return sv_parse_int64(text, members[i].min, members[i].max, value, NULL);
}

static gboolean apply_options(JsonObject *resources, const Options *opts, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(members); i++) {
        const char *text = G_STRUCT_MEMBER(const char *, opts, members[i].offset);
        gint64 number = 0;
        JsonObject *group;

        if (!text)
            continue;
        if (members[i].kind != TEXT && !parse(i, text, &number)) {
            g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "invalid value \"%s\" for --%s", text,
                members[i].option);
            return FALSE;
        }
        if (!json_object_has_member(resources, members[i].group))
            json_object_set_object_member(resources, members[i].group, json_object_new());
        group = json_object_get_object_member(resources, members[i].group);
        if (members[i].kind == TEXT)
            json_object_set_string_member(group, members[i].member, text);
        else
            json_object_set_int_member(group, members[i].member, number);
    }
    return TRUE;
}

/* linux.resources from the file or from the options. (transfer full) */
static char *make_resources(const Options *opts, GError **error)
{
    g_autoptr(JsonNode) node = NULL;
    g_autofree char *text = NULL;
    gsize len = 0;

    if (opts->resources) {
        if (!sv_cli_read_file(opts->resources, RESOURCES_MAX, &text, &len, error))
            return NULL;
        node = sv_json_parse(text, (gssize)len, FALSE, "resources", error);
    } else {
        node = json_node_init_object(json_node_alloc(), NULL);
        json_node_take_object(node, json_object_new());
        if (!apply_options(json_node_get_object(node), opts, error))
            return NULL;
    }
    return node ? sv_json_text(node, FALSE) : NULL;
}

/* As runc does where there is no resctrl, in its words. A machine has none. */
static gboolean check_schemas(const Options *opts, GError **error)
{
    if (opts->cache_schema && *opts->cache_schema)
        g_set_error(error, SV_CLI_ERROR, SV_ERR_UNSUPPORTED,
            "Intel RDT/CAT: l3 cache schema is not enabled (--l3-cache-schema)");
    else if (opts->bandwidth_schema && *opts->bandwidth_schema)
        g_set_error(error, SV_CLI_ERROR, SV_ERR_UNSUPPORTED,
            "Intel RDT/MBA: memory bandwidth schema is not enabled (--mem-bw-schema)");
    else
        return TRUE;
    return FALSE;
}

static void warn_of_ignored(const Options *opts)
{
    if (opts->weight && !opts->resources)
        g_warning("update: the machine's disks have no scheduler for it: --blkio-weight is "
                  "ignored");
}

static void set_list(const GPtrArray *list, size_t *n, char ***out)
{
    *n = list ? list->len : 0;
    *out = list ? (char **)list->pdata : NULL;
}

static int cmd_update(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_auto(SvTarget) target = SV_TARGET_INIT;
    Sandvirt__V1__UpdateContainerRequest request = SANDVIRT__V1__UPDATE_CONTAINER_REQUEST__INIT;
    g_autofree char *resources = NULL;

    if (!sv_target_load(&target, cli, args[0], "update", error) || !check_schemas(opts, error))
        return -1;
    warn_of_ignored(opts);
    resources = make_resources(opts, error);
    if (!resources || !sv_target_connect(&target, cli, error))
        return -1;
    request.container_id = args[0];
    request.resources.data = (guint8 *)resources;
    request.resources.len = strlen(resources);
    set_list(opts->device_add, &request.n_device_add, &request.device_add);
    set_list(opts->device_remove, &request.n_device_remove, &request.device_remove);
    return sv_target_call(&target, "Update", &request.base, sv_target_stop_ms(&target), error) ? 0
                                                                                               : -1;
}

const SvVerb sv_verb_update = {"update", "CONTAINER", "Change limits, plug and unplug disks",
    options, sizeof(Options), 1, 1, 0, cmd_update};
