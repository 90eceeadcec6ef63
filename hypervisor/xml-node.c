/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/xml-node.h"

#include <string.h>

#include "base/error.h"

#define MAX_FOREIGN 4096

xmlDocPtr sv_xml_new(const char *root)
{
    xmlDocPtr doc = xmlNewDoc(BAD_CAST "1.0");
    xmlDocSetRootElement(doc, xmlNewDocNode(doc, NULL, BAD_CAST root, NULL));
    return doc;
}

xmlNodePtr sv_xml_add(xmlNodePtr parent, const char *name)
{
    xmlNodePtr node = xmlNewChild(parent, NULL, BAD_CAST name, NULL);
    /* not its parent's prefix, which xmlNewChild hands down */
    node->ns = NULL;
    return node;
}

xmlNodePtr sv_xml_add_text(xmlNodePtr parent, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    xmlNodePtr node = sv_xml_add(parent, name);
    xmlNodeAddContent(node, BAD_CAST text);
    return node;
}

void sv_xml_set(xmlNodePtr node, const char *name, const char *value)
{
    if (value != NULL)
        xmlNewProp(node, BAD_CAST name, BAD_CAST value);
}

void sv_xml_setf(xmlNodePtr node, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    sv_xml_set(node, name, text);
}

void sv_xml_set_foreign(xmlNodePtr node, const char *name, const char *value)
{
    if (value == NULL)
        return;
    g_autofree char *text = sv_printable(value, MAX_FOREIGN);
    sv_xml_set(node, name, text);
}

xmlNodePtr sv_xml_add_pci_address(xmlNodePtr parent, guint slot, guint function)
{
    xmlNodePtr address = sv_xml_add(parent, "address");
    sv_xml_set(address, "type", "pci");
    sv_xml_set(address, "domain", "0x0000");
    sv_xml_set(address, "bus", "0x00");
    sv_xml_setf(address, "slot", "0x%02x", slot);
    sv_xml_setf(address, "function", "0x%x", function);
    return address;
}

char *sv_xml_finish(xmlDocPtr doc)
{
    xmlBufferPtr buffer = xmlBufferCreate();
    xmlNodeDump(buffer, doc, xmlDocGetRootElement(doc), 0, 1);
    char *text = g_strconcat((const char *)xmlBufferContent(buffer), "\n", NULL);
    xmlBufferFree(buffer);
    xmlFreeDoc(doc);
    return text;
}
