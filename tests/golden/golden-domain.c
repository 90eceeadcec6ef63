/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Machines and devices to XML, compared with the files in tests/golden/domain. SV_REGENERATE=1 writes
 * them anew (read the difference before committing it). Each domain is also checked against libvirt's
 * schema where that is installed. */
#include <config.h>

#include <libxml/parser.h>
#include <libxml/relaxng.h>
#include <string.h>

#include "hypervisor/xml.h"

#define SCHEMA "/usr/share/libvirt/schemas/domain.rng"

static SvMachine *base_machine(void)
{
    SvMachine *machine = sv_machine_new();
    machine->name = g_strdup("sandvirt-pod1");
    machine->uuid = g_strdup("6f0ad4a4-9c1c-5d3c-8d0c-6a3b52f4a001");
    machine->metadata = sv_metadata_new();
    machine->metadata->root = g_strdup("/run/sandvirt");
    machine->metadata->sandbox = g_strdup("pod1");
    machine->metadata->boot_id = g_strdup("0b1d2f3a-0000-4000-8000-000000000001");
    machine->metadata->lock = g_strdup("/run/sandvirt/pod1/lock");
    machine->memory_mib = 256;
    machine->kernel = g_strdup("/var/lib/sandvirt/images/vmlinux-1");
    machine->initrd = g_strdup("/var/lib/sandvirt/images/initramfs-1.img");
    machine->cmdline = g_strdup("panic=-1 quiet");
    machine->agent_socket = g_strdup("/run/sandvirt/.s/1/agent");
    machine->console_log = g_strdup("/run/sandvirt/.s/1/console.log");
    return machine;
}

static SvDevice *base_disk(void)
{
    SvBlock *block = g_new0(SvBlock, 1);
    block->kind = SV_BLOCK_DEVICE;
    block->source = g_strdup("/dev/loop7");
    block->format = g_strdup("raw");
    block->serial = g_strdup("0123456789abcdef0123");
    block->target = g_strdup("vda");
    block->cache = g_strdup("none");
    block->io = g_strdup("native");
    block->discard = TRUE;
    return sv_device_new_block("ua-sv-disk0", block);
}

static SvDevice *base_card(void)
{
    SvNetwork *network = g_new0(SvNetwork, 1);
    network->tap = g_strdup("svtap0");
    network->mac = g_strdup("52:54:00:00:00:01");
    network->offloads = TRUE;
    return sv_device_new_network("ua-sv-net0", network);
}

static SvMachine *tcg_machine(void)
{
    SvMachine *machine = base_machine();
    machine->title = g_strdup("default/web");
    machine->firmware = g_strdup("/usr/share/qemu/qboot.rom");
    machine->skip_cpu_probe = TRUE;
    machine->tcg_cache_mib = 32;
    machine->share_dir = g_strdup("/run/sandvirt/.s/1/share");
    return machine;
}

static SvMachine *kvm_machine(void)
{
    SvMachine *machine = base_machine();
    machine->accel = SV_ACCEL_KVM;
    machine->tcg_cache_mib = 32;
    machine->vcpus = 2;
    machine->max_vcpus = 4;
    machine->max_extra_memory_mib = 1024;
    machine->virtiofsd = g_strdup("/usr/libexec/virtiofsd");
    machine->share_dir = g_strdup("/run/sandvirt/.s/1/share");
    machine->partition = g_strdup("/machine/pods");
    machine->uid = 70001;
    machine->gid = 64055;
    machine->root_ports = 12;
    g_ptr_array_add(machine->devices, base_disk());
    g_ptr_array_add(machine->devices, base_card());
    return machine;
}

/* nothing that is given by others may break out of its place */
static SvMachine *hostile_machine(void)
{
    SvMachine *machine = base_machine();
    machine->title = g_strdup("a\nb</title>\x1b[31m&<x y='\"'>");
    machine->description = g_strdup("\xff\xfe ]]> &amp; \xc3\xa9");
    g_free(machine->metadata->root);
    machine->metadata->root = g_strdup("/run/\"'<&>\n\x01");
    SvMetadataContainer *container = sv_metadata_container_new();
    container->id = g_strdup("c1");
    container->name = g_strdup("\"n\"<\n");
    container->bundle = g_strdup("/b\t/'\"");
    container->state = g_strdup("running");
    container->cause = g_strdup("</sandvirt:sandbox>");
    SvMetadataDisk *disk = g_new0(SvMetadataDisk, 1);
    disk->alias = g_strdup("ua-sv-disk0");
    disk->target = g_strdup("vda");
    disk->use = g_strdup("rootfs");
    disk->source = g_strdup("/dev/loop0");
    g_ptr_array_add(container->disks, disk);
    g_ptr_array_add(machine->metadata->containers, container);
    return machine;
}

static char *golden_path(const char *name)
{
    return g_strdup_printf("%s/tests/golden/domain/%s.xml", SV_SOURCE_ROOT, name);
}

static void compare(const char *name, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = golden_path(name);
    g_autofree char *wanted = NULL;
    if (g_getenv("SV_REGENERATE") != NULL) {
        g_file_set_contents(path, text, -1, &error);
        g_assert_no_error(error);
        return;
    }
    g_file_get_contents(path, &wanted, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, wanted);
}

static void collect(void *user_data, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_string_append_vprintf(user_data, format, args);
    va_end(args);
}

static void check_schema(const char *text)
{
    if (!g_file_test(SCHEMA, G_FILE_TEST_EXISTS)) {
        g_test_message("no schema, not validated");
        return;
    }
    g_autoptr(GString) messages = g_string_new(NULL);
    xmlRelaxNGParserCtxtPtr parser = xmlRelaxNGNewParserCtxt(SCHEMA);
    xmlRelaxNGPtr schema = xmlRelaxNGParse(parser);
    g_assert_nonnull(schema);
    xmlRelaxNGValidCtxtPtr valid = xmlRelaxNGNewValidCtxt(schema);
    xmlRelaxNGSetValidErrors(valid, collect, collect, messages);
    xmlDocPtr doc = xmlReadMemory(text, (int)strlen(text), NULL, NULL, XML_PARSE_NONET);
    g_assert_nonnull(doc);
    int result = xmlRelaxNGValidateDoc(valid, doc);
    g_assert_cmpstr(messages->str, ==, "");
    g_assert_cmpint(result, ==, 0);
    xmlFreeDoc(doc);
    xmlRelaxNGFreeValidCtxt(valid);
    xmlRelaxNGFree(schema);
    xmlRelaxNGFreeParserCtxt(parser);
}

static void check_machine(const char *name, SvMachine *machine)
{
    g_autofree char *text = sv_xml_domain(machine);
    compare(name, text);
    check_schema(text);

    /* and back */
    g_autoptr(GError) error = NULL;
    g_autoptr(SvXmlDomain) domain = sv_xml_read_domain(text, strlen(text), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(domain->name, ==, machine->name);
    g_assert_cmpstr(domain->uuid, ==, machine->uuid);
    g_assert_cmpuint(domain->aliases->len, ==, machine->devices->len);
    g_assert_cmpstr(domain->metadata->sandbox, ==, machine->metadata->sandbox);
    g_assert_cmpuint(domain->metadata->containers->len, ==, machine->metadata->containers->len);
    sv_machine_free(machine);
}

/* Within a domain, for the schema. */
static void check_device(const char *name, SvDevice *device)
{
    g_autofree char *text = sv_xml_device(device);
    compare(name, text);
    g_autoptr(SvMachine) machine = base_machine();
    g_ptr_array_add(machine->devices, device);
    g_autofree char *domain = sv_xml_domain(machine);
    check_schema(domain);
}

static void test_tcg(void)
{
    check_machine("tcg", tcg_machine());
}

static void test_kvm(void)
{
    check_machine("kvm", kvm_machine());
}

static void test_minimal(void)
{
    check_machine("minimal", base_machine());
}

static void test_hostile(void)
{
    check_machine("hostile", hostile_machine());
}

static void test_disks(void)
{
    check_device("disk-block", base_disk());
    SvDevice *scsi = base_disk();
    SvBlock *block = scsi->u.block;
    block->kind = SV_BLOCK_FILE;
    block->bus = SV_BUS_SCSI;
    block->read_only = TRUE;
    block->shareable = TRUE;
    block->discard = FALSE;
    g_clear_pointer(&block->io, g_free);
    g_free(block->format);
    block->format = g_strdup("qcow2");
    g_free(block->source);
    block->source = g_strdup("/images/a&b.qcow2");
    g_free(block->target);
    block->target = g_strdup("sda");
    check_device("disk-scsi-file", scsi);
}

static void test_cards(void)
{
    check_device("card", base_card());
    SvDevice *card = base_card();
    card->u.network->mtu = 1400;
    card->u.network->queues = 2;
    card->u.network->vhost = TRUE;
    card->u.network->offloads = FALSE;
    check_device("card-tuned", card);
}

static void test_metadata(void)
{
    g_autoptr(SvMachine) machine = hostile_machine();
    g_autofree char *text = sv_xml_metadata(machine->metadata);
    compare("metadata", text);
    g_autoptr(GError) error = NULL;
    g_autoptr(SvMetadata) back = sv_xml_read_metadata(text, strlen(text), &error);
    g_assert_no_error(error);
    const SvMetadataContainer *container = back->containers->pdata[0];
    g_assert_cmpstr(container->cause, ==, "</sandvirt:sandbox>");
    const SvMetadataDisk *disk = container->disks->pdata[0];
    g_assert_cmpstr(disk->alias, ==, "ua-sv-disk0");
    g_assert_cmpstr(disk->target, ==, "vda");
    g_assert_cmpstr(disk->source, ==, "/dev/loop0");
    g_assert_cmpstr(back->lock, ==, "/run/sandvirt/pod1/lock");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/golden/domain/minimal", test_minimal);
    g_test_add_func("/golden/domain/tcg", test_tcg);
    g_test_add_func("/golden/domain/kvm", test_kvm);
    g_test_add_func("/golden/domain/hostile", test_hostile);
    g_test_add_func("/golden/domain/disks", test_disks);
    g_test_add_func("/golden/domain/cards", test_cards);
    g_test_add_func("/golden/domain/metadata", test_metadata);
    int result = g_test_run();
    xmlRelaxNGCleanupTypes();
    xmlCleanupParser();
    return result;
}
