/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parser of XML that libvirt gives us. libvirt is trusted, what stands in a domain of ours
 * (titles, metadata that an administrator edited) is not: sizes and counts are bounded. */
#include <config.h>

#include "core/hypervisor.h"
#include "hypervisor/xml-node.h"
#include "hypervisor/xml-priv.h"

#include <libxml/parser.h>
#include <string.h>

typedef xmlDoc AutoDoc;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AutoDoc, xmlFreeDoc)

#define MAX_VALUE 4096

void sv_xml_domain_free(SvXmlDomain *domain)
{
    if (domain == NULL)
        return;
    g_free(domain->name);
    g_free(domain->uuid);
    g_clear_pointer(&domain->aliases, g_ptr_array_unref);
    g_clear_pointer(&domain->serials, g_ptr_array_unref);
    sv_metadata_free(domain->metadata);
    g_free(domain);
}

static void ignore_message(void *unused, const char *format, ...)
{
}

static xmlDocPtr parse(const char *text, gsize len, const char *root, GError **error)
{
    if (len > SV_XML_MAX) {
        g_set_error(error, SV_HV_ERROR, SV_ERR_LIMIT, "XML of %zu bytes is too long", len);
        return NULL;
    }
    xmlParserCtxtPtr parser = xmlNewParserCtxt();
    parser->sax->error = ignore_message;
    parser->sax->warning = ignore_message;
    xmlDocPtr doc = xmlCtxtReadMemory(parser, text, (int)len, NULL, NULL,
        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOCDATA);
    xmlFreeParserCtxt(parser);
    if (doc == NULL) {
        g_set_error_literal(error, SV_HV_ERROR, SV_ERR_INVALID, "XML cannot be parsed");
        return NULL;
    }
    xmlNodePtr top = xmlDocGetRootElement(doc);
    if (doc->intSubset != NULL || top == NULL || strcmp((const char *)top->name, root) != 0) {
        g_set_error(error, SV_HV_ERROR, SV_ERR_INVALID, "XML is no <%s>", root);
        xmlFreeDoc(doc);
        return NULL;
    }
    return doc;
}

static gboolean is_element(xmlNodePtr node, const char *name)
{
    return node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0;
}

static xmlNodePtr find_child(xmlNodePtr parent, const char *name)
{
    for (xmlNodePtr node = parent->children; node != NULL; node = node->next) {
        if (is_element(node, name))
            return node;
    }
    return NULL;
}

/* (transfer full), NULL when missing, empty or too long */
static char *take_value(xmlChar *value)
{
    char *copy = NULL;
    if (value != NULL && *value != '\0' && strlen((char *)value) <= MAX_VALUE)
        copy = g_strdup((char *)value);
    xmlFree(value);
    return copy;
}

static char *get_attribute(xmlNodePtr node, const char *name)
{
    return take_value(xmlGetNoNsProp(node, BAD_CAST name));
}

static char *get_child_text(xmlNodePtr parent, const char *name)
{
    xmlNodePtr child = find_child(parent, name);
    return child != NULL ? take_value(xmlNodeGetContent(child)) : NULL;
}

static SvMetadataContainer *read_container(xmlNodePtr node, guint *items)
{
    SvMetadataContainer *container = sv_metadata_container_new();
    container->id = get_attribute(node, "id");
    container->name = get_attribute(node, "name");
    container->state = get_attribute(node, "state");
    container->bundle = get_attribute(node, "bundle");
    container->cause = get_attribute(node, "cause");
    for (xmlNodePtr child = node->children; child != NULL; child = child->next) {
        char *alias = is_element(child, "disk") ? get_attribute(child, "alias") : NULL;
        if (alias != NULL && (*items)++ < SV_XML_MAX_ITEMS) {
            SvMetadataDisk *disk = g_new0(SvMetadataDisk, 1);
            disk->alias = g_steal_pointer(&alias);
            disk->target = get_attribute(child, "target");
            disk->use = get_attribute(child, "use");
            disk->source = get_attribute(child, "source");
            g_ptr_array_add(container->disks, disk);
        }
        g_free(alias);
    }
    return container;
}

static SvMetadata *read_sandbox(xmlNodePtr sandbox)
{
    SvMetadata *metadata = sv_metadata_new();
    guint items = 0;
    metadata->sandbox = get_attribute(sandbox, "id");
    metadata->root = get_attribute(sandbox, "root");
    metadata->boot_id = get_attribute(sandbox, "boot-id");
    metadata->lock = get_attribute(sandbox, "lock");
    for (xmlNodePtr node = sandbox->children; node != NULL; node = node->next) {
        if (is_element(node, "container") && items++ < SV_XML_MAX_ITEMS)
            g_ptr_array_add(metadata->containers, read_container(node, &items));
    }
    return metadata;
}

SvMetadata *sv_xml_read_metadata(const char *text, gsize len, GError **error)
{
    g_autoptr(AutoDoc) doc = parse(text, len, "sandbox", error);
    return doc != NULL ? read_sandbox(xmlDocGetRootElement(doc)) : NULL;
}

static SvMetadata *find_metadata(xmlNodePtr domain)
{
    xmlNodePtr metadata = find_child(domain, "metadata");
    for (xmlNodePtr node = metadata != NULL ? metadata->children : NULL; node != NULL;
         node = node->next) {
        if (is_element(node, "sandbox") && node->ns != NULL && node->ns->href != NULL &&
            strcmp((const char *)node->ns->href, SV_METADATA_NS) == 0)
            return read_sandbox(node);
    }
    return NULL;
}

static void read_devices(xmlNodePtr top, SvXmlDomain *domain)
{
    xmlNodePtr devices = find_child(top, "devices");
    for (xmlNodePtr device = devices != NULL ? devices->children : NULL; device != NULL;
         device = device->next) {
        if (device->type != XML_ELEMENT_NODE || domain->aliases->len >= SV_XML_MAX_ITEMS)
            continue;
        xmlNodePtr alias = find_child(device, "alias");
        char *name = alias != NULL ? get_attribute(alias, "name") : NULL;
        char *serial = is_element(device, "disk") ? get_child_text(device, "serial") : NULL;
        if (name != NULL)
            g_ptr_array_add(domain->aliases, name);
        if (serial != NULL)
            g_ptr_array_add(domain->serials, serial);
    }
}

SvXmlDomain *sv_xml_read_domain(const char *text, gsize len, GError **error)
{
    g_autoptr(AutoDoc) doc = parse(text, len, "domain", error);
    if (doc == NULL)
        return NULL;
    xmlNodePtr top = xmlDocGetRootElement(doc);
    SvXmlDomain *domain = g_new0(SvXmlDomain, 1);
    domain->name = get_child_text(top, "name");
    domain->uuid = get_child_text(top, "uuid");
    domain->aliases = g_ptr_array_new_with_free_func(g_free);
    domain->serials = g_ptr_array_new_with_free_func(g_free);
    domain->metadata = find_metadata(top);
    read_devices(top, domain);
    return domain;
}

static xmlNodePtr find_virtio_mem(xmlNodePtr domain)
{
    xmlNodePtr devices = find_child(domain, "devices");
    for (xmlNodePtr node = devices != NULL ? devices->children : NULL; node != NULL;
         node = node->next) {
        g_autofree char *model = is_element(node, "memory") ? get_attribute(node, "model") : NULL;
        if (g_strcmp0(model, "virtio-mem") == 0)
            return node;
    }
    return NULL;
}

char *sv_xml_read_memory(const char *text, gsize len, guint64 requested_bytes, GError **error)
{
    g_autoptr(AutoDoc) doc = parse(text, len, "domain", error);
    if (doc == NULL)
        return NULL;
    xmlNodePtr memory = find_virtio_mem(xmlDocGetRootElement(doc));
    xmlNodePtr target = memory != NULL ? find_child(memory, "target") : NULL;
    xmlNodePtr requested = target != NULL ? find_child(target, "requested") : NULL;
    if (requested == NULL) {
        g_set_error_literal(error, SV_HV_ERROR, SV_ERR_UNSUPPORTED,
            "the machine was started without room for more memory");
        return NULL;
    }
    g_autofree char *kib = g_strdup_printf("%" G_GUINT64_FORMAT, requested_bytes / 1024);
    xmlNodeSetContent(requested, BAD_CAST kib);
    xmlSetProp(requested, BAD_CAST "unit", BAD_CAST "KiB");
    xmlNodePtr current = find_child(target, "current");
    if (current != NULL) {
        xmlUnlinkNode(current);
        xmlFreeNode(current);
    }
    xmlDocPtr result = xmlNewDoc(BAD_CAST "1.0");
    /* a copy: the strings of a parsed node belong to its document */
    xmlDocSetRootElement(result, xmlDocCopyNode(memory, result, 1));
    return sv_xml_finish(result);
}
