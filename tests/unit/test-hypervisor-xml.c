/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is read back from libvirt, and the mapping of its errors. */
#include <config.h>

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <string.h>

#include "hypervisor/error.h"
#include "hypervisor/xml.h"

static void test_domain(void)
{
    static const char text[] =
        "<domain type='qemu' id='3'><name>n</name><uuid>u</uuid><metadata>"
        "<o:sandbox xmlns:o='urn:other' id='wrong'/>"
        "<x:sandbox xmlns:x='" SV_METADATA_NS "' id='pod' root='/r'>"
        "<container id='c'><disk alias='ua-1'/><disk/></container><junk/></x:sandbox></metadata>"
        "<devices><disk><alias name='ua-1'/></disk><disk/><nic><alias name=''/></nic>"
        "<memory model='dimm'/></devices></domain>";
    g_autoptr(GError) error = NULL;
    g_autoptr(SvXmlDomain) domain = sv_xml_read_domain(text, strlen(text), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(domain->name, ==, "n");
    g_assert_cmpstr(domain->uuid, ==, "u");
    g_assert_cmpuint(domain->aliases->len, ==, 1);
    g_assert_cmpstr(domain->metadata->sandbox, ==, "pod");
    g_assert_cmpstr(domain->metadata->root, ==, "/r");
    g_assert_null(domain->metadata->lock);
    const SvMetadataContainer *container = domain->metadata->containers->pdata[0];
    g_assert_cmpuint(container->disks->len, ==, 1);
}

static void test_not_ours(void)
{
    static const char text[] =
        "<domain><metadata><sandbox id='x'/><o:sandbox xmlns:o='urn:x'/></metadata></domain>";
    g_autoptr(GError) error = NULL;
    g_autoptr(SvXmlDomain) domain = sv_xml_read_domain(text, strlen(text), &error);
    g_assert_no_error(error);
    g_assert_null(domain->metadata);
    g_assert_null(domain->name);
    g_assert_cmpuint(domain->aliases->len, ==, 0);
    sv_xml_domain_free(NULL);
}

static void test_bad(void)
{
    static const char *const texts[] = {"", "x", "<domain>", "<other/>", "<domain/><domain/>",
        "<!DOCTYPE domain [<!ENTITY a 'b'>]><domain><name>&a;</name></domain>",
        "<domain>\x01</domain>", "<domain>\xff</domain>"};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(sv_xml_read_domain(texts[i], strlen(texts[i]), &error));
        g_assert_error(error, SV_HV_ERROR, SV_ERR_INVALID);
    }
    g_autoptr(GError) error = NULL;
    g_autofree char *big = g_strnfill(SV_XML_MAX + 1, ' ');
    g_assert_null(sv_xml_read_metadata(big, SV_XML_MAX + 1, &error));
    g_assert_error(error, SV_HV_ERROR, SV_ERR_LIMIT);
}

static void test_limits(void)
{
    g_autoptr(GString) text = g_string_new("<sandbox>");
    for (guint i = 0; i < SV_XML_MAX_ITEMS + 10; i++)
        g_string_append(text, "<container id='c'><disk alias='d'/></container>");
    g_string_append(text, "</sandbox>");
    g_autoptr(GError) error = NULL;
    g_autoptr(SvMetadata) metadata = sv_xml_read_metadata(text->str, text->len, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(metadata->containers->len, <=, SV_XML_MAX_ITEMS);
}

static void test_memory(void)
{
    static const char text[] =
        "<domain><devices><memory model='virtio-mem'><target><size unit='KiB'>1048576</size>"
        "<node>0</node><block unit='KiB'>2048</block><requested unit='KiB'>0</requested>"
        "<current unit='KiB'>0</current></target><alias name='virtiomem0'/></memory></devices>"
        "</domain>";
    g_autoptr(GError) error = NULL;
    g_autofree char *device = sv_xml_read_memory(text, strlen(text), 128 << 20, &error);
    g_assert_no_error(error);
    g_assert_nonnull(strstr(device, "<requested unit=\"KiB\">131072</requested>"));
    g_assert_null(strstr(device, "<current"));
    g_assert_nonnull(strstr(device, "virtiomem0"));
    g_assert_null(sv_xml_read_memory("<domain/>", 9, 1, &error));
    g_assert_error(error, SV_HV_ERROR, SV_ERR_UNSUPPORTED);
}

static void test_errors(void)
{
    g_assert_cmpint(sv_hv_error_code(VIR_ERR_NO_DOMAIN, VIR_FROM_QEMU), ==, SV_ERR_NOT_FOUND);
    g_assert_cmpint(sv_hv_error_code(VIR_ERR_OPERATION_INVALID, VIR_FROM_QEMU), ==, SV_ERR_STATE);
    g_assert_cmpint(sv_hv_error_code(VIR_ERR_SYSTEM_ERROR, VIR_FROM_RPC), ==, SV_ERR_CLOSED);
    g_assert_cmpint(sv_hv_error_code(VIR_ERR_SYSTEM_ERROR, VIR_FROM_QEMU), ==, SV_ERR_IO);
    g_assert_cmpint(sv_hv_error_code(9999, 0), ==, SV_ERR_FAILED);
    g_autoptr(GError) error = NULL;
    virResetLastError();
    sv_hv_set_libvirt_error(&error, "do %s", "it");
    g_assert_error(error, SV_HV_ERROR, SV_ERR_FAILED);
    g_assert_cmpstr(error->message, ==, "do it: unknown error (libvirt error 1)");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    virInitialize();
    g_test_add_func("/hypervisor/xml/domain", test_domain);
    g_test_add_func("/hypervisor/xml/not-ours", test_not_ours);
    g_test_add_func("/hypervisor/xml/bad", test_bad);
    g_test_add_func("/hypervisor/xml/limits", test_limits);
    g_test_add_func("/hypervisor/xml/memory", test_memory);
    g_test_add_func("/hypervisor/errors", test_errors);
    return g_test_run();
}
