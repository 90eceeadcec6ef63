/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* XML that libvirt gives back, with what others may have written into it. */
#include "fuzz.h"

#include "hypervisor/xml.h"

static void check_metadata(const SvMetadata *metadata)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = sv_xml_metadata(metadata);
    g_autoptr(SvMetadata) again = sv_xml_read_metadata(text, strlen(text), &error);
    /* what grew when it was made printable may be too long now */
    g_assert_true(again != NULL || g_error_matches(error, error->domain, SV_ERR_LIMIT));
    if (again != NULL)
        g_assert_cmpuint(again->containers->len, ==, metadata->containers->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = data != NULL ? (const char *)data : "";
    g_autoptr(GError) error = NULL;
    g_autoptr(SvXmlDomain) domain = sv_xml_read_domain(text, size, &error);
    g_assert_true((domain == NULL) == (error != NULL));
    g_clear_error(&error);
    g_autoptr(SvMetadata) metadata = sv_xml_read_metadata(text, size, &error);
    g_assert_true((metadata == NULL) == (error != NULL));
    g_clear_error(&error);
    g_autofree char *memory = sv_xml_read_memory(text, size, 1 << 30, &error);
    g_assert_true((memory == NULL) == (error != NULL));

    if (domain != NULL && domain->metadata != NULL)
        check_metadata(domain->metadata);
    if (metadata != NULL)
        check_metadata(metadata);
    return 0;
}
