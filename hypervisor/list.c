/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/list.h"

#include <libvirt/virterror.h>
#include <string.h>

#include "hypervisor/libvirt-priv.h"
#include "hypervisor/xml.h"

void sv_found_free(SvFound *found)
{
    if (found == NULL)
        return;
    g_free(found->name);
    g_free(found->uuid);
    sv_metadata_free(found->metadata);
    g_free(found);
}

void sv_inventory_free(SvInventory *inventory)
{
    if (inventory == NULL)
        return;
    g_clear_pointer(&inventory->domains, g_ptr_array_unref);
    g_free(inventory);
}

static virConnectPtr open_connection(const SvConfig *config, GError **error)
{
    sv_libvirt_init();
    return sv_libvirt_open(config->uri, error);
}

static void split_version(unsigned long version, guint parts[3])
{
    parts[0] = (guint)(version / 1000000);
    parts[1] = (guint)(version / 1000 % 1000);
    parts[2] = (guint)(version % 1000);
}

/* NULL: not ours, or gone meanwhile. */
static SvMetadata *metadata_of(virDomainPtr dom)
{
    char *text = virDomainGetMetadata(dom, VIR_DOMAIN_METADATA_ELEMENT, SV_METADATA_NS, 0);
    if (text == NULL)
        return NULL;
    g_autoptr(GError) error = NULL;
    SvMetadata *metadata = sv_xml_read_metadata(text, strlen(text), &error);
    free(text);
    if (metadata == NULL)
        g_warning("ignoring domain %s: %s", virDomainGetName(dom), error->message);
    return metadata;
}

static SvFound *look_at(virDomainPtr dom)
{
    char uuid[VIR_UUID_STRING_BUFLEN] = "";
    SvMetadata *metadata = metadata_of(dom);
    if (metadata == NULL || virDomainGetUUIDString(dom, uuid) < 0) {
        sv_metadata_free(metadata);
        return NULL;
    }
    SvFound *found = g_new0(SvFound, 1);
    found->metadata = metadata;
    found->name = g_strdup(virDomainGetName(dom));
    found->uuid = g_strdup(uuid);
    found->id = (int)virDomainGetID(dom);
    return found;
}

SvInventory *sv_libvirt_inventory(const SvConfig *config, GError **error)
{
    g_autoptr(AutoConnect) conn = open_connection(config, error);
    virDomainPtr *domains = NULL;
    unsigned long version = 0;
    if (conn == NULL)
        return NULL;
    int n = virConnectListAllDomains(conn, &domains, 0);
    if (n < 0) {
        sv_hv_set_libvirt_error(error, "list the domains");
        return NULL;
    }
    SvInventory *inventory = g_new0(SvInventory, 1);
    inventory->domains = g_ptr_array_new_with_free_func((GDestroyNotify)sv_found_free);
    for (int i = 0; i < n; i++) {
        SvFound *found = look_at(domains[i]);
        if (found != NULL)
            g_ptr_array_add(inventory->domains, found);
        virDomainFree(domains[i]);
    }
    free(domains);
    if (virConnectGetLibVersion(conn, &version) == 0)
        split_version(version, inventory->libvirt);
    if (virConnectGetVersion(conn, &version) == 0)
        split_version(version, inventory->qemu);
    return inventory;
}

gboolean sv_libvirt_end_domain(
    const SvConfig *config, const char *uuid, const char *root, GError **error)
{
    g_autoptr(AutoConnect) conn = open_connection(config, error);
    if (conn == NULL)
        return FALSE;
    g_autoptr(AutoDomain) dom = virDomainLookupByUUIDString(conn, uuid);
    if (dom == NULL && sv_hv_last_code() == VIR_ERR_NO_DOMAIN)
        return TRUE;
    if (dom == NULL) {
        sv_hv_set_libvirt_error(error, "look up the domain");
        return FALSE;
    }
    g_autoptr(SvMetadata) metadata = metadata_of(dom);
    if (metadata == NULL || g_strcmp0(metadata->root, root) != 0)
        return TRUE;
    if (virDomainIsActive(dom) == 0 || virDomainDestroy(dom) == 0) {
        sv_domain_undefine(dom);
        return TRUE;
    }
    if (sv_hv_last_code() == VIR_ERR_NO_DOMAIN)
        return TRUE;
    sv_hv_set_libvirt_error(error, "destroy domain %s", virDomainGetName(dom));
    if (!sv_domain_is_stillborn(dom))
        return FALSE;
    g_clear_error(error);
    sv_domain_tell_stillborn(virDomainGetName(dom));
    return TRUE;
}
