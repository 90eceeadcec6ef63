/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/stats.h"

#include <stdlib.h>
#include <string.h>

#include "hypervisor/libvirt-priv.h"
#include "hypervisor/xml.h"

static void stats_free(gpointer data)
{
    SvMachineStats *stats = data;
    g_free(stats->name);
    g_free(stats->title);
    sv_metadata_free(stats->metadata);
    g_free(stats);
}

static guint64 value_of(const virTypedParameter *param)
{
    switch (param->type) {
    case VIR_TYPED_PARAM_INT:
        return (guint64)MAX(param->value.i, 0);
    case VIR_TYPED_PARAM_UINT:
        return param->value.ui;
    case VIR_TYPED_PARAM_LLONG:
        return (guint64)MAX(param->value.l, 0);
    case VIR_TYPED_PARAM_ULLONG:
        return param->value.ul;
    default:
        return 0;
    }
}

/* "block.0.rd.bytes" and the like: by their ends. cpu.time is of libvirt's own cgroup, which a machine may have
 * left: the vCPUs' times are of the threads themselves. */
static void take(SvMachineStats *stats, const virTypedParameter *param)
{
    const char *name = param->field;
    guint64 value = value_of(param);
    if (strcmp(name, "state.state") == 0)
        stats->state = (int)value;
    else if (strcmp(name, "vcpu.current") == 0)
        stats->vcpus = (guint)value;
    else if (g_str_has_prefix(name, "vcpu.") && g_str_has_suffix(name, ".time"))
        stats->cpu_ns += value;
    else if (strcmp(name, "balloon.current") == 0)
        stats->memory = value * 1024;
    else if (strcmp(name, "balloon.rss") == 0)
        stats->memory_used = value * 1024;
    else if (g_str_has_suffix(name, ".rd.bytes"))
        stats->disk_read += value;
    else if (g_str_has_suffix(name, ".wr.bytes"))
        stats->disk_written += value;
}

/* NULL: not ours. */
static SvMachineStats *read_one(const virDomainStatsRecord *record)
{
    char *text = virDomainGetMetadata(record->dom, VIR_DOMAIN_METADATA_ELEMENT, SV_METADATA_NS, 0);
    SvMetadata *metadata = text ? sv_xml_read_metadata(text, strlen(text), NULL) : NULL;
    free(text);
    if (metadata == NULL)
        return NULL;
    SvMachineStats *stats = g_new0(SvMachineStats, 1);
    stats->metadata = metadata;
    stats->name = g_strdup(virDomainGetName(record->dom));
    text = virDomainGetMetadata(record->dom, VIR_DOMAIN_METADATA_TITLE, NULL, 0);
    stats->title = text ? sv_printable(text, 200) : NULL;
    free(text);
    for (int i = 0; i < record->nparams; i++)
        take(stats, &record->params[i]);
    sv_libvirt_share_count(
        (int)virDomainGetID(record->dom), &stats->file_read, &stats->file_written);
    return stats;
}

GPtrArray *sv_libvirt_stats(const SvConfig *config, GError **error)
{
    sv_libvirt_init();
    g_autoptr(AutoConnect) conn = sv_libvirt_open(config->uri, error);
    virDomainStatsRecordPtr *records = NULL;
    if (conn == NULL)
        return NULL;
    int n = virConnectGetAllDomainStats(conn,
        VIR_DOMAIN_STATS_STATE | VIR_DOMAIN_STATS_VCPU | VIR_DOMAIN_STATS_BALLOON |
            VIR_DOMAIN_STATS_BLOCK,
        &records, VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT);
    if (n < 0) {
        sv_hv_set_libvirt_error(error, "read the statistics of the machines");
        return NULL;
    }
    GPtrArray *list = g_ptr_array_new_with_free_func(stats_free);
    for (int i = 0; i < n; i++) {
        SvMachineStats *stats = read_one(records[i]);
        if (stats != NULL)
            g_ptr_array_add(list, stats);
    }
    virDomainStatsRecordListFree(records);
    return list;
}
