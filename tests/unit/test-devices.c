/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include <string.h>

#include "devices/machine.h"

static void test_serial(void)
{
    g_autofree char *a = sv_block_serial("pod", "ctr", 0);
    g_autofree char *again = sv_block_serial("pod", "ctr", 0);
    g_autofree char *b = sv_block_serial("pod", "ctr", 1);
    g_autofree char *c = sv_block_serial("podc", "tr", 0);
    g_assert_cmpuint(strlen(a), ==, 20);
    g_assert_cmpuint(strspn(a, "0123456789abcdef"), ==, 20);
    g_assert_cmpstr(a, ==, again);
    g_assert_cmpstr(a, !=, b);
    g_assert_cmpstr(a, !=, c);
}

static void test_copy(void)
{
    SvBlock *block = g_new0(SvBlock, 1);
    block->kind = SV_BLOCK_FILE;
    block->source = g_strdup("/x");
    block->serial = g_strdup("s");
    block->bus = SV_BUS_SCSI;
    block->discard = TRUE;
    g_autoptr(SvDevice) disk = sv_device_new_block("ua-sv-d", block);
    g_autoptr(SvDevice) disk_copy = sv_device_copy(disk);
    g_assert_cmpstr(disk_copy->alias, ==, "ua-sv-d");
    g_assert_true(disk_copy->u.block != block);
    g_assert_cmpstr(disk_copy->u.block->source, ==, "/x");
    g_assert_null(disk_copy->u.block->format);
    g_assert_true(disk_copy->u.block->discard);
    g_assert_cmpint(disk_copy->u.block->bus, ==, SV_BUS_SCSI);

    SvNetwork *network = g_new0(SvNetwork, 1);
    network->tap = g_strdup("tap0");
    network->mtu = 1400;
    g_autoptr(SvDevice) card = sv_device_new_network("ua-sv-n", network);
    g_autoptr(SvDevice) card_copy = sv_device_copy(card);
    g_assert_cmpstr(card_copy->u.network->tap, ==, "tap0");
    g_assert_cmpuint(card_copy->u.network->mtu, ==, 1400);

    g_assert_null(sv_device_copy(NULL));
    sv_device_free(NULL);
    sv_device_free(sv_device_new_block(NULL, NULL));
    sv_machine_free(NULL);
    sv_metadata_free(NULL);
    sv_metadata_container_free(NULL);
}

static void test_metadata(void)
{
    g_autoptr(SvMetadata) metadata = sv_metadata_new();
    SvMetadataContainer *container = sv_metadata_container_new();
    metadata->root = g_strdup("/run/x");
    container->id = g_strdup("c");
    SvMetadataDisk *disk = g_new0(SvMetadataDisk, 1);
    disk->alias = g_strdup("ua-sv-1");
    g_ptr_array_add(container->disks, disk);
    g_ptr_array_add(metadata->containers, container);
    g_autoptr(SvMetadata) copy = sv_metadata_copy(metadata);
    g_assert_cmpstr(copy->root, ==, "/run/x");
    g_assert_cmpuint(copy->containers->len, ==, 1);
    const SvMetadataContainer *c = copy->containers->pdata[0];
    g_assert_cmpstr(c->id, ==, "c");
    g_assert_cmpstr(((SvMetadataDisk *)c->disks->pdata[0])->alias, ==, "ua-sv-1");
    g_assert_null(sv_metadata_copy(NULL));
}

static void test_machine(void)
{
    g_autoptr(SvMachine) machine = sv_machine_new();
    g_assert_cmpint(machine->uid, ==, -1);
    g_assert_cmpuint(machine->root_ports, ==, 8);
    g_ptr_array_add(machine->devices, sv_device_new_network("ua-sv-n", NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/devices/serial", test_serial);
    g_test_add_func("/devices/copy", test_copy);
    g_test_add_func("/devices/metadata", test_metadata);
    g_test_add_func("/devices/machine", test_machine);
    return g_test_run();
}
