/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/sizing.h"

static const SvConfig config = {
    .vcpus = 1, .max_vcpus = 4, .memory_mib = 256, .max_memory_mib = 4096, .overhead_mib = 64};

static void test_cpu(void)
{
    g_assert_cmpint(sv_cpu_milli(170000, 100000), ==, 1700);
    g_assert_cmpint(sv_cpu_milli(50000, 100000), ==, 500);
    g_assert_cmpint(sv_cpu_milli(1, 1000000), ==, 1);
    g_assert_cmpint(sv_cpu_milli(-1, 100000), ==, 0);
    g_assert_cmpint(sv_cpu_milli(0, 0), ==, 0);
    g_assert_cmpint(sv_cpu_milli(150000, 0), ==, 1500);
    g_assert_cmpint(sv_cpu_milli(G_MAXINT64, 1), ==, 0);
}

static void check(const SvDemand *pod, const SvDemand *demands, guint n, guint vcpus, guint64 mib)
{
    SvSize size = sv_size_for(&config, pod, demands, n);
    g_assert_cmpuint(size.vcpus, ==, vcpus);
    g_assert_cmpuint(size.memory_mib, ==, mib);
}

static void test_size(void)
{
    const gint64 mib = 1 << 20;
    check(NULL, NULL, 0, 1, 256);
    check(NULL, (SvDemand[]){{1700, 0}}, 1, 2, 256);
    check(NULL, (SvDemand[]){{500, 0}, {600, 0}}, 2, 2, 256); /* summed, then rounded */
    check(NULL, (SvDemand[]){{2500, 0}, {0, 0}}, 2, 3, 256);
    check(NULL, (SvDemand[]){{9000, 0}}, 1, 4, 256);
    check(NULL, (SvDemand[]){{0, 64 * mib}}, 1, 1, 256);
    check(NULL, (SvDemand[]){{0, 512 * mib}}, 1, 1, 576);
    check(NULL, (SvDemand[]){{0, 512 * mib + 1}}, 1, 1, 578);
    check(NULL, (SvDemand[]){{0, 300 * mib}, {0, 300 * mib}}, 2, 1, 664);
    check(NULL, (SvDemand[]){{0, G_GINT64_CONSTANT(1) << 45}}, 1, 1, 4096);
    check(&(SvDemand){1500, 1024 * mib}, (SvDemand[]){{4000, 64 * mib}}, 1, 2, 1088);
    check(&(SvDemand){0, 1024 * mib}, (SvDemand[]){{1200, 64 * mib}}, 1, 2, 1088);
}

static void test_resources(void)
{
    g_autoptr(JsonNode) node = sv_json_parse(
        "{\"cpu\":{\"quota\":250000,\"period\":100000},\"memory\":{\"limit\":1048576}}", -1, FALSE,
        "test", NULL);
    SvDemand demand = sv_demand_of_resources(json_node_get_object(node));
    g_assert_cmpint(demand.cpu_milli, ==, 2500);
    g_assert_cmpint(demand.memory_bytes, ==, 1 << 20);

    g_autoptr(JsonNode) odd = sv_json_parse(
        "{\"cpu\":{\"quota\":\"x\"},\"memory\":{\"limit\":-1}}", -1, FALSE, "test", NULL);
    demand = sv_demand_of_resources(json_node_get_object(odd));
    g_assert_cmpint(demand.cpu_milli, ==, 0);
    g_assert_cmpint(demand.memory_bytes, ==, 0);
    demand = sv_demand_of_resources(NULL);
    g_assert_cmpint(demand.cpu_milli, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sizing/cpu", test_cpu);
    g_test_add_func("/sizing/size", test_size);
    g_test_add_func("/sizing/resources", test_resources);
    return g_test_run();
}
