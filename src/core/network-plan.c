/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What has to be done so that the machine has the links of the namespace. Changes nothing but the record's
 * counter. */
#include "core/network-private.h"

#include <stdio.h>
#include <string.h>

#define MAC_LEN 6

gboolean sv_mac_parse(const char *text, guint8 mac[6])
{
    int used = 0;
    return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2], &mac[3],
               &mac[4], &mac[5], &used) == MAC_LEN &&
        text[used] == '\0';
}

static char *mac_text(const guint8 *mac)
{
    return g_strdup_printf(
        "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

/* libvirt and the guest need one that no other card of the machine has. */
static gboolean is_usable(const SvNetworkPlan *plan, const SvSandboxRecord *record, const char *mac)
{
    const GPtrArray *lists[] = {record->links, plan->add};
    for (guint k = 0; k < G_N_ELEMENTS(lists); k++)
        for (guint i = 0; i < lists[k]->len; i++)
            if (strcmp(((SvLinkRecord *)lists[k]->pdata[i])->mac, mac) == 0)
                return FALSE;
    return TRUE;
}

static char *choose_mac(
    const SvNetworkPlan *plan, const SvSandboxRecord *record, const SvNetDevice *device)
{
    static const guint8 none[MAC_LEN] = {0};
    const ProtobufCBinaryData *own = &device->link->mac;
    g_autofree char *text = NULL;
    guint8 mac[MAC_LEN];
    if (own->len == MAC_LEN && !(own->data[0] & 1) && memcmp(own->data, none, MAC_LEN) != 0)
        text = mac_text(own->data);
    while (!text || !is_usable(plan, record, text)) {
        for (guint i = 0; i < MAC_LEN; i++)
            mac[i] = (guint8)g_random_int_range(0, 256);
        mac[0] = (guint8)((mac[0] & 0xfc) | 2); /* local, of one station */
        g_free(text);
        text = mac_text(mac);
    }
    return g_steal_pointer(&text);
}

/* The tap's name is in the host's namespace for a moment: no two are ever equal. */
static SvLinkRecord *link_new(const SvNetworkPlan *plan, SvSandboxRecord *record,
    const SvNetDevice *device, const SvNetworkHints *hints)
{
    SvLinkRecord *link = g_new0(SvLinkRecord, 1);
    guint number = record->next_link++;
    link->name = g_strdup(device->link->name);
    link->index = (guint32)device->index;
    link->tap = g_strdup_printf("sv%08x%x", g_random_int(), number & 0xfffff);
    link->alias = g_strdup_printf("ua-sv-net-%u", number);
    link->mac = choose_mac(plan, record, device);
    /* Known before it is made: whoever cleans up after a crash finds it in the record. */
    link->made_qdisc = !g_hash_table_contains(hints->foreign, GINT_TO_POINTER(device->index));
    return link;
}

/* A tap that is gone was unplugged by somebody who will have meant it. */
static gboolean is_joined(
    const SvLinkRecord *link, const SvNetState *state, const SvNetworkHints *hints)
{
    const SvNetDevice *tap = link->joined ? sv_net_device_find(state->devices, link->tap) : NULL;
    if (!tap)
        return link->joined;
    gpointer other = g_hash_table_lookup(hints->pairs, GINT_TO_POINTER(tap->index));
    return (guint32)GPOINTER_TO_INT(other) == link->index;
}

static SvLinkRecord *find_record(
    const SvSandboxRecord *record, int index, const SvNetState *state, const SvNetworkHints *hints)
{
    for (guint i = 0; i < record->links->len; i++) {
        SvLinkRecord *link = record->links->pdata[i];
        if (link->index == (guint32)index && is_joined(link, state, hints))
            return link;
    }
    return NULL;
}

static gboolean check_owner(const SvNetState *state, const char *domain, GError **error)
{
    for (guint i = 0; i < state->devices->len; i++) {
        g_autofree char *owner = sv_link_tap_owner(state->devices->pdata[i]);
        if (!owner || strcmp(owner, domain) == 0)
            continue;
        g_autofree char *shown = sv_printable(owner, 200);
        g_set_error(error, SV_CORE_ERROR, SV_ERR_BUSY,
            "the network namespace is in use by the machine \"%s\" already", shown);
        return FALSE;
    }
    return TRUE;
}

static void plan_device(SvNetworkPlan *plan, SvNetDevice *device, const SvNetState *state,
    const SvNetworkHints *hints, SvSandboxRecord *record)
{
    const char *refusal = sv_link_refusal(device, state->devices);
    if (refusal) {
        if (*refusal)
            g_ptr_array_add(plan->warnings,
                g_strdup_printf("%s (%s) is not in the machine: %s", device->link->name,
                    device->kind ? device->kind : "hardware", refusal));
        return;
    }
    gpointer failures = g_hash_table_lookup(hints->failures, GINT_TO_POINTER(device->index));
    if (GPOINTER_TO_UINT(failures) >= SV_LINK_TRIES)
        return;
    g_ptr_array_add(plan->devices, device);
    if (!device->link->loopback && !find_record(record, device->index, state, hints))
        g_ptr_array_add(plan->add, link_new(plan, record, device, hints));
}

static gboolean is_planned(const SvNetworkPlan *plan, const SvLinkRecord *link,
    const SvNetState *state, const SvNetworkHints *hints)
{
    return sv_net_device_at(plan->devices, (int)link->index) && is_joined(link, state, hints);
}

gboolean sv_network_plan(SvNetworkPlan *plan, const SvNetState *state, const SvNetworkHints *hints,
    SvSandboxRecord *record, const char *domain, GError **error)
{
    plan->devices = g_ptr_array_new();
    plan->add = g_ptr_array_new_with_free_func((GDestroyNotify)sv_link_record_free);
    plan->drop = g_ptr_array_new();
    plan->warnings = g_ptr_array_new_with_free_func(g_free);
    if (!check_owner(state, domain, error))
        return FALSE;
    for (guint i = 0; i < state->devices->len; i++)
        plan_device(plan, state->devices->pdata[i], state, hints, record);
    for (guint i = 0; i < record->links->len; i++)
        if (!is_planned(plan, record->links->pdata[i], state, hints))
            g_ptr_array_add(plan->drop, record->links->pdata[i]);
    return TRUE;
}

void sv_network_plan_clear(SvNetworkPlan *plan)
{
    g_clear_pointer(&plan->devices, g_ptr_array_unref);
    g_clear_pointer(&plan->add, g_ptr_array_unref);
    g_clear_pointer(&plan->drop, g_ptr_array_unref);
    g_clear_pointer(&plan->warnings, g_ptr_array_unref);
}
