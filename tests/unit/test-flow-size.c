/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How big the machine is made, how it grows, and what an update does to it. */
#include "flow-fixture.h"

#include <string.h>

#define MIB (G_GUINT64_CONSTANT(1) << 20)
#define CONF                                                                                       \
    "[machine]\nvcpus=1\nmax_vcpus=8\nmemory_mib=256\nmax_memory_mib=4097\noverhead_mib=64\n"

static char *limits(guint quota, guint mib)
{
    return g_strdup_printf("\"linux\":{\"resources\":{\"cpu\":{\"quota\":%u,\"period\":100000},"
                           "\"memory\":{\"limit\":%" G_GUINT64_FORMAT "}}}",
        quota, mib * MIB);
}

static void assert_size(FlowFixture *flow, guint vcpus, guint64 extra_mib)
{
    g_assert_cmpuint(sv_fake_vcpus(flow->hv), ==, vcpus);
    g_assert_cmpuint(sv_fake_extra_memory(flow->hv), ==, extra_mib * MIB);
}

static void update(FlowContainer *container, const char *resources, FlowAnswer *answer)
{
    Sandvirt__V1__UpdateContainerRequest request = SANDVIRT__V1__UPDATE_CONTAINER_REQUEST__INIT;
    request.container_id = container->id;
    request.resources.data = (guint8 *)resources;
    request.resources.len = strlen(resources);
    sv_container_update(container->flow->sandbox, &request, flow_answered, answer);
}

static void test_create(void)
{
    FlowFixture *flow = flow_new(CONF);
    g_autofree char *first = limits(170000, 512), *second = limits(60000, 100);
    FlowContainer *a = flow_create(flow, "a", first);
    g_assert_cmpuint(flow->sandbox->record->boot_memory_mib, ==, 576);
    g_assert_cmpuint(flow->sandbox->record->max_memory_mib, ==, 4096);
    g_assert_cmpuint(flow->sandbox->record->max_vcpus, ==, 8);
    assert_size(flow, 2, 0);
    FlowContainer *b = flow_create(flow, "b", second); /* 2.3 CPUs, 612 MiB and overhead */
    assert_size(flow, 3, 100);
    g_assert_cmpuint(flow->sandbox->record->memory_mib, ==, 676);
    /* what is gone asks for nothing; the machine stays as it is */
    flow_delete(b, FALSE);
    FlowContainer *c = flow_create(flow, "c", second);
    assert_size(flow, 3, 100);
    g_assert_cmpuint(sv_fake_count(flow->hv, "set_vcpus"), ==, 1);
    flow_delete(c, FALSE);
    flow_delete(a, FALSE);
    flow_assert_clean(flow);
    flow_free(flow);
}

static void test_refused(void)
{
    FlowFixture *flow = flow_new(CONF);
    g_autofree char *limit = limits(300000, 1024);
    FlowContainer *a = flow_create(flow, "a", NULL);
    sv_fake_fail_call(flow->hv, "set_vcpus", SV_ERR_FAILED);
    FlowContainer *b = flow_create(flow, "b", limit); /* limits are no promises */
    g_assert_cmpuint(flow->sandbox->record->vcpus, ==, 1);
    assert_size(flow, 1, 1088 - 256);
    sv_fake_fail_call(flow->hv, "set_vcpus", SV_ERR_LAST);
    flow_delete(b, FALSE);
    flow_delete(a, FALSE);
    flow_free(flow);
}

static void test_update(void)
{
    FlowFixture *flow = flow_new(CONF);
    FlowContainer *a = flow_create(flow, "a", NULL);
    g_auto(FlowAnswer) good = {FALSE, NULL}, bad = {FALSE, NULL}, odd = {FALSE, NULL};
    assert_size(flow, 1, 0);
    update(a, "{\"cpu\":{\"quota\":250000},\"memory\":{\"limit\":536870912}}", &good);
    flow_assert_ok(&good);
    assert_size(flow, 3, 576 - 256);
    update(a, "{\"memory\":{\"limit\":\"much\"}}", &bad);
    flow_assert_failed(&bad, SV_ERR_INVALID, "linux.resources.memory.limit");
    update(a, "{\"cpu\":{\"quota\":700000,\"cpus\":\"x\"}}", &odd);
    flow_assert_failed(&odd, SV_ERR_INVALID, "no list of CPUs");
    assert_size(flow, 3, 576 - 256);
    SvRecord *record = flow_record(flow, "a");
    g_assert_cmpint(record->demand_cpu, ==, 2500);
    sv_record_free(record);
    flow_delete(a, FALSE);
    flow_free(flow);
}

/* The quota's period and the period's quota are those that were set before; the size follows. */
static void test_update_half(void)
{
    FlowFixture *flow = flow_new(CONF);
    FlowContainer *a = flow_create(flow, "a",
        "\"linux\":{\"resources\":{\"cpu\":{\"quota\":30000,\"period\":50000},"
        "\"memory\":{\"limit\":67108864}}}");
    static const struct {
        const char *update, *in_guest;
        gint64 demand;
    } rows[] = {
        {"{\"cpu\":{\"quota\":60000}}", "{\"cpu\":{\"quota\":60000,\"period\":50000}}", 1200},
        {"{\"cpu\":{\"period\":20000}}", "{\"cpu\":{\"quota\":60000,\"period\":20000}}", 3000},
        {"{\"cpu\":{\"shares\":512}}", "{\"cpu\":{\"shares\":512}}", 3000},
        {"{\"cpu\":{\"quota\":null,\"shares\":512}}", "{\"cpu\":{\"shares\":512}}", 3000},
        {"{\"cpu\":{\"quota\":0}}", "{}", 3000},
        {"{\"cpu\":{\"quota\":0,\"period\":20000}}", "{\"cpu\":{\"quota\":60000,\"period\":20000}}",
            3000},
        {"{\"cpu\":{\"period\":0}}", "{\"cpu\":{\"quota\":60000,\"period\":100000}}", 600},
        {"{\"cpu\":{\"quota\":-1}}", "{\"cpu\":{\"quota\":-1,\"period\":100000}}", 0},
        {"{\"cpu\":{\"quota\":0,\"period\":0,\"shares\":0},\"memory\":{\"limit\":0,"
         "\"reservation\":0,\"swap\":0}}",
            "{\"cpu\":{\"shares\":0}}", 0},
        {"{\"memory\":{\"swap\":134217728}}",
            "{\"memory\":{\"limit\":67108864,\"swap\":134217728}}", 0},
        {"{\"memory\":{\"limit\":-1}}", "{\"memory\":{\"limit\":-1,\"swap\":-1}}", 0},
        {"{\"memory\":{\"swap\":134217728}}", "{\"memory\":{\"swap\":134217728}}", 0},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(FlowAnswer) answer = {FALSE, NULL};
        g_test_message("%s", rows[i].update);
        update(a, rows[i].update, &answer);
        flow_assert_ok(&answer);
        g_assert_cmpstr(flow->agent->resources, ==, rows[i].in_guest);
        SvRecord *record = flow_record(flow, "a");
        g_assert_cmpint(record->demand_cpu, ==, rows[i].demand);
        sv_record_free(record);
    }
    flow_delete(a, FALSE);
    flow_free(flow);
}

/* What the kernel must have before the rest; of what is refused nothing is remembered. */
static void test_update_order(void)
{
    FlowFixture *flow = flow_new(CONF);
    FlowContainer *a = flow_create(flow, "a", NULL);
    g_auto(FlowAnswer) idle = {FALSE, NULL}, busy = {FALSE, NULL}, bad = {FALSE, NULL};
    update(a, "{\"cpu\":{\"idle\":1,\"shares\":512}}", &idle);
    flow_assert_ok(&idle);
    g_assert_cmpstr(flow->agent->first, ==, "");
    update(a, "{\"cpu\":{\"idle\":0,\"shares\":512,\"burst\":7,\"quota\":9}}", &busy);
    flow_assert_ok(&busy);
    g_assert_cmpstr(flow->agent->first, ==, "cpu.idle=0 cpu.max.burst=7 ");
    flow_agent_fail(flow->agent, "Update", SV_ERR_FAILED);
    update(a, "{\"cpu\":{\"quota\":50000,\"period\":20000}}", &bad);
    flow_assert_failed(&bad, SV_ERR_FAILED, "");
    SvRecord *record = flow_record(flow, "a");
    g_assert_cmpint(record->cpu_quota, ==, 9);
    g_assert_cmpint(record->cpu_period, ==, 100000);
    sv_record_free(record);
    flow_delete(a, FALSE);
    flow_free(flow);
}

int main(int argc, char **argv)
{
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    g_test_add_func("/flow/size/create", test_create);
    g_test_add_func("/flow/size/refused", test_refused);
    g_test_add_func("/flow/size/update", test_update);
    g_test_add_func("/flow/size/update-half", test_update_half);
    g_test_add_func("/flow/size/update-order", test_update_order);
    return g_test_run();
}
