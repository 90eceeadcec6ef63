/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small steps for making libxml2 trees: XML is never printed by hand. */
#pragma once

#include <glib.h>
#include <libxml/tree.h>

G_BEGIN_DECLS

/* A new last child of @parent; (transfer none). */
xmlNodePtr sv_xml_add(xmlNodePtr parent, const char *name);
/* The same with text, which is escaped. */
xmlNodePtr sv_xml_add_text(xmlNodePtr parent, const char *name, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* Sets an attribute; a NULL @value sets nothing. */
void sv_xml_set(xmlNodePtr node, const char *name, const char *value);
void sv_xml_setf(xmlNodePtr node, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* The same for text that others wrote (paths, ids, annotations): made printable and cut. */
void sv_xml_set_foreign(xmlNodePtr node, const char *name, const char *value);
/* <address type='pci' domain='0' bus='0' slot=... function=.../> on the root complex. */
xmlNodePtr sv_xml_add_pci_address(xmlNodePtr parent, guint slot, guint function);
/* Indented text of @doc without the XML declaration; frees @doc. (transfer full) */
char *sv_xml_finish(xmlDocPtr doc) G_GNUC_WARN_UNUSED_RESULT;
/* A new document with a root element; (transfer full). */
xmlDocPtr sv_xml_new(const char *root);

G_END_DECLS
