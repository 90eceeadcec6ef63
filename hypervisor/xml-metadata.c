/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Our element below <metadata>: what `check`, `gc` and an administrator learn about a domain. */
#include <config.h>

#include "hypervisor/xml-node.h"
#include "hypervisor/xml-priv.h"

static void add_container(xmlNodePtr sandbox, const SvMetadataContainer *container)
{
    xmlNodePtr node = sv_xml_add(sandbox, "container");
    sv_xml_set_foreign(node, "id", container->id);
    sv_xml_set_foreign(node, "name", container->name);
    sv_xml_set_foreign(node, "state", container->state);
    sv_xml_set_foreign(node, "bundle", container->bundle);
    sv_xml_set_foreign(node, "cause", container->cause);
    for (guint i = 0; container->disks != NULL && i < container->disks->len; i++) {
        const SvMetadataDisk *disk = container->disks->pdata[i];
        xmlNodePtr item = sv_xml_add(node, "disk");
        sv_xml_set_foreign(item, "alias", disk->alias);
        sv_xml_set_foreign(item, "target", disk->target);
        sv_xml_set_foreign(item, "use", disk->use);
        sv_xml_set_foreign(item, "source", disk->source);
    }
}

void sv_xml_fill_metadata(xmlNodePtr sandbox, const SvMetadata *metadata)
{
    sv_xml_set_foreign(sandbox, "id", metadata->sandbox);
    sv_xml_set_foreign(sandbox, "root", metadata->root);
    sv_xml_set_foreign(sandbox, "boot-id", metadata->boot_id);
    sv_xml_set_foreign(sandbox, "lock", metadata->lock);
    for (guint i = 0; metadata->containers != NULL && i < metadata->containers->len; i++)
        add_container(sandbox, metadata->containers->pdata[i]);
}

char *sv_xml_metadata(const SvMetadata *metadata)
{
    g_return_val_if_fail(metadata != NULL, NULL);
    xmlDocPtr doc = sv_xml_new("sandbox");
    sv_xml_fill_metadata(xmlDocGetRootElement(doc), metadata);
    return sv_xml_finish(doc);
}
