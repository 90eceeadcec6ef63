/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is to be done so that a machine has the links of a namespace. No namespace is needed for it. */
#include "core/network-private.h"

#include <linux/if.h>
#include <linux/if_arp.h>
#include <string.h>

typedef struct {
    SvNetState *state;
    SvSandboxRecord *record;
    GHashTable *foreign, *pairs, *failures;
    SvNetworkPlan plan;
} Fixture;

static SvNetDevice *add_device(Fixture *f, const char *name, int index, const char *mac)
{
    SvNetDevice *device = g_new0(SvNetDevice, 1);
    guint8 bytes[6];
    device->link = g_new0(SvNetLink, 1);
    sandvirt__v1__net_link__init(device->link);
    device->link->name = g_strdup(name);
    device->link->flags = IFF_UP;
    device->index = index;
    device->type = ARPHRD_ETHER;
    device->kind = g_strdup("veth");
    if (mac && sv_mac_parse(mac, bytes)) {
        device->link->mac.data = g_memdup2(bytes, sizeof bytes);
        device->link->mac.len = sizeof bytes;
    }
    g_ptr_array_add(f->state->devices, device);
    return device;
}

static void set_up(Fixture *f)
{
    *f = (Fixture){0};
    f->state = g_new0(SvNetState, 1);
    f->state->devices = g_ptr_array_new_with_free_func((GDestroyNotify)sv_net_device_free);
    f->record = sv_sandbox_record_new("box");
    f->foreign = g_hash_table_new(NULL, NULL);
    f->pairs = g_hash_table_new(NULL, NULL);
    f->failures = g_hash_table_new(NULL, NULL);
    SvNetDevice *lo = add_device(f, "lo", 1, NULL);
    lo->link->loopback = TRUE;
    lo->type = ARPHRD_LOOPBACK;
    g_clear_pointer(&lo->kind, g_free);
}

static void tear_down(Fixture *f)
{
    sv_network_plan_clear(&f->plan);
    sv_net_state_free(f->state);
    sv_sandbox_record_free(f->record);
    g_hash_table_unref(f->foreign);
    g_hash_table_unref(f->pairs);
    g_hash_table_unref(f->failures);
}

static void plan(Fixture *f)
{
    g_autoptr(GError) error = NULL;
    const SvNetworkHints hints = {f->foreign, f->pairs, f->failures};
    sv_network_plan_clear(&f->plan);
    gboolean ok = sv_network_plan(&f->plan, f->state, &hints, f->record, "sandvirt-box", &error);
    g_assert_no_error(error);
    g_assert_true(ok);
}

/* What was planned has been done. */
static void carry_out(Fixture *f)
{
    while (f->plan.add->len > 0) {
        SvLinkRecord *link = g_ptr_array_steal_index(f->plan.add, 0);
        link->joined = TRUE;
        g_ptr_array_add(f->record->links, link);
    }
    for (guint i = 0; i < f->plan.drop->len; i++)
        g_ptr_array_remove(f->record->links, f->plan.drop->pdata[i]);
}

static void test_first(void)
{
    Fixture f;
    set_up(&f);
    add_device(&f, "eth0", 2, "02:00:00:00:00:01");
    add_device(&f, "eth1", 3, "02:00:00:00:00:02");
    g_hash_table_add(f.foreign, GINT_TO_POINTER(3));
    plan(&f);
    g_assert_cmpuint(f.plan.devices->len, ==, 3);
    g_assert_cmpuint(f.plan.add->len, ==, 2);
    g_assert_cmpuint(f.plan.drop->len, ==, 0);
    const SvLinkRecord *eth0 = f.plan.add->pdata[0], *eth1 = f.plan.add->pdata[1];
    g_assert_cmpstr(eth0->mac, ==, "02:00:00:00:00:01");
    g_assert_cmpuint(eth0->index, ==, 2);
    g_assert_true(eth0->made_qdisc);
    g_assert_false(eth1->made_qdisc);
    g_assert_cmpstr(eth0->alias, !=, eth1->alias);
    g_assert_cmpstr(eth0->tap, !=, eth1->tap);
    g_assert_cmpuint(strlen(eth0->tap), <, IFNAMSIZ);
    g_assert_true(g_str_has_prefix(eth0->alias, "ua-"));
    tear_down(&f);
}

static void test_follow(void)
{
    Fixture f;
    set_up(&f);
    add_device(&f, "eth0", 2, "02:00:00:00:00:01");
    add_device(&f, "eth1", 3, "02:00:00:00:00:02");
    plan(&f);
    carry_out(&f);
    plan(&f);
    g_assert_cmpuint(f.plan.add->len, ==, 0);
    g_assert_cmpuint(f.plan.drop->len, ==, 0);

    /* eth1 is gone, eth2 is new and has its MAC */
    g_ptr_array_set_size(f.state->devices, 2);
    add_device(&f, "eth2", 4, "02:00:00:00:00:02");
    plan(&f);
    g_assert_cmpuint(f.plan.add->len, ==, 1);
    g_assert_cmpuint(f.plan.drop->len, ==, 1);
    const SvLinkRecord *added = f.plan.add->pdata[0], *dropped = f.plan.drop->pdata[0];
    g_assert_cmpstr(dropped->name, ==, "eth1");
    g_assert_cmpstr(added->alias, !=, dropped->alias);
    g_assert_cmpstr(added->mac, !=, dropped->mac); /* the old card is still plugged */

    /* a take-over that was cut off is begun anew */
    carry_out(&f);
    ((SvLinkRecord *)f.record->links->pdata[0])->joined = FALSE;
    plan(&f);
    g_assert_cmpuint(f.plan.add->len, ==, 1);
    g_assert_cmpuint(f.plan.drop->len, ==, 1);
    tear_down(&f);
}

/* Taken out of the namespace and put back between two looks: the number is the same, the hints are gone. */
static void test_put_back(void)
{
    Fixture f;
    set_up(&f);
    add_device(&f, "eth0", 2, "02:00:00:00:00:01");
    plan(&f);
    carry_out(&f);
    const SvLinkRecord *link = f.record->links->pdata[0];
    SvNetDevice *tap = add_device(&f, link->tap, 9, "fe:00:00:00:00:01");
    tap->alias = g_strdup(SV_TAP_ALIAS "sandvirt-box:eth0");
    g_hash_table_insert(f.pairs, GINT_TO_POINTER(9), GINT_TO_POINTER(2));
    plan(&f);
    g_assert_cmpuint(f.plan.add->len + f.plan.drop->len, ==, 0);

    g_hash_table_remove_all(f.pairs);
    plan(&f);
    g_assert_cmpuint(f.plan.add->len, ==, 1);
    g_assert_cmpuint(f.plan.drop->len, ==, 1);
    g_assert_true(f.plan.drop->pdata[0] == link);
    g_assert_cmpuint(((SvLinkRecord *)f.plan.add->pdata[0])->index, ==, 2);
    tear_down(&f);
}

/* A link that cannot be joined is not tried for ever. */
static void test_failures(void)
{
    Fixture f;
    set_up(&f);
    add_device(&f, "eth0", 2, "02:00:00:00:00:01");
    g_hash_table_insert(f.failures, GINT_TO_POINTER(2), GUINT_TO_POINTER(SV_LINK_TRIES - 1));
    plan(&f);
    g_assert_cmpuint(f.plan.add->len, ==, 1);
    g_hash_table_insert(f.failures, GINT_TO_POINTER(2), GUINT_TO_POINTER(SV_LINK_TRIES));
    plan(&f);
    g_assert_cmpuint(f.plan.add->len, ==, 0);
    g_assert_cmpuint(f.plan.devices->len, ==, 1);
    tear_down(&f);
}

static void test_macs(void)
{
    static const char *const useless[] = {
        "00:00:00:00:00:00", "01:00:00:00:00:01", "02:00:00:00:00:01", NULL};
    Fixture f;
    set_up(&f);
    add_device(&f, "eth0", 2, "02:00:00:00:00:01");
    for (int i = 0; i < 4; i++) {
        g_autofree char *name = g_strdup_printf("net%d", i);
        add_device(&f, name, 3 + i, useless[i]);
    }
    plan(&f);
    g_assert_cmpuint(f.plan.add->len, ==, 5);
    for (guint i = 0; i < 5; i++) {
        const SvLinkRecord *link = f.plan.add->pdata[i];
        guint8 mac[6];
        g_assert_true(sv_mac_parse(link->mac, mac));
        g_assert_cmpuint(mac[0] & 1, ==, 0);
        for (guint k = 0; k < i; k++)
            g_assert_cmpstr(link->mac, !=, ((SvLinkRecord *)f.plan.add->pdata[k])->mac);
    }
    tear_down(&f);
}

static void test_mac_parse(void)
{
    guint8 mac[6];
    g_assert_true(sv_mac_parse("02:fF:00:10:a0:01", mac));
    g_assert_cmpmem(mac, 6, "\x02\xff\0\x10\xa0\1", 6);
    g_assert_false(sv_mac_parse("02:ff:00:10:a0", mac));
    g_assert_false(sv_mac_parse("02:ff:00:10:a0:01:02", mac));
    g_assert_false(sv_mac_parse("", mac));
}

static void test_refused(void)
{
    Fixture f;
    set_up(&f);
    add_device(&f, "eth0", 2, "02:00:00:00:00:01");
    SvNetDevice *tunnel = add_device(&f, "wg0", 3, NULL);
    tunnel->type = ARPHRD_NONE;
    SvNetDevice *fallback = add_device(&f, "sit0", 4, NULL);
    fallback->type = ARPHRD_SIT;
    fallback->link->flags = 0;
    SvNetDevice *own = add_device(&f, "sv1", 5, "fe:00:00:00:00:01");
    own->alias = g_strdup(SV_TAP_ALIAS "sandvirt-box:eth0");
    plan(&f);
    g_assert_cmpuint(f.plan.devices->len, ==, 2);
    g_assert_cmpuint(f.plan.warnings->len, ==, 1);
    g_assert_nonnull(strstr(f.plan.warnings->pdata[0], "wg0"));
    tear_down(&f);
}

static void test_busy(void)
{
    g_autoptr(GError) error = NULL;
    Fixture f;
    set_up(&f);
    SvNetDevice *other = add_device(&f, "sv1", 5, "fe:00:00:00:00:01");
    other->alias = g_strdup(SV_TAP_ALIAS "sandvirt-other:eth0");
    const SvNetworkHints hints = {f.foreign, f.pairs, f.failures};
    g_assert_false(sv_network_plan(&f.plan, f.state, &hints, f.record, "sandvirt-box", &error));
    g_assert_true(sv_error_is(error, SV_ERR_BUSY));
    g_assert_nonnull(strstr(error->message, "sandvirt-other"));
    tear_down(&f);
}

/* The record keeps it all. */
static void test_record(void)
{
    Fixture f;
    g_autoptr(GError) error = NULL;
    set_up(&f);
    f.record->root = g_strdup("/run/x");
    add_device(&f, "eth0", 2, "02:00:00:00:00:01");
    plan(&f);
    carry_out(&f);
    f.record->netns_id = 123456;
    g_autofree char *text = sv_sandbox_record_text(f.record);
    g_autoptr(SvSandboxRecord) read = sv_sandbox_record_parse(text, strlen(text), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(read->netns_id, ==, 123456);
    g_assert_cmpuint(read->next_link, ==, f.record->next_link);
    g_assert_cmpuint(read->links->len, ==, 1);
    const SvLinkRecord *a = f.record->links->pdata[0], *b = read->links->pdata[0];
    g_assert_cmpstr(a->tap, ==, b->tap);
    g_assert_cmpstr(a->mac, ==, b->mac);
    g_assert_cmpuint(a->index, ==, b->index);
    g_assert_cmpint(a->joined, ==, b->joined);
    g_assert_cmpint(a->made_qdisc, ==, b->made_qdisc);
    tear_down(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network-plan/first", test_first);
    g_test_add_func("/network-plan/follow", test_follow);
    g_test_add_func("/network-plan/put-back", test_put_back);
    g_test_add_func("/network-plan/failures", test_failures);
    g_test_add_func("/network-plan/macs", test_macs);
    g_test_add_func("/network-plan/mac-parse", test_mac_parse);
    g_test_add_func("/network-plan/refused", test_refused);
    g_test_add_func("/network-plan/busy", test_busy);
    g_test_add_func("/network-plan/record", test_record);
    return g_test_run();
}
