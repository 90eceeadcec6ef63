/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Domain XML: plain structs to text by pure functions, and the parser of what libvirt tells us. */
#pragma once

#include "devices/machine.h"

G_BEGIN_DECLS

/* The domain of @machine, (transfer full). */
char *sv_xml_domain(const SvMachine *machine) G_GNUC_WARN_UNUSED_RESULT;
/* A device as attach takes it, (transfer full). */
char *sv_xml_device(const SvDevice *device) G_GNUC_WARN_UNUSED_RESULT;
/* Our metadata element as virDomainSetMetadata takes it (no namespace), (transfer full). */
#define SV_XML_METADATA_PREFIX "sandvirt"
char *sv_xml_metadata(const SvMetadata *metadata) G_GNUC_WARN_UNUSED_RESULT;

/* What we read back. */
typedef struct {
    char *name, *uuid;
    GPtrArray *aliases; /* of char*: every device's alias */
    SvMetadata *metadata; /* NULL: not a domain of ours */
    GPtrArray *serials; /* char*: of its disks */
} SvXmlDomain;
void sv_xml_domain_free(SvXmlDomain *domain);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvXmlDomain, sv_xml_domain_free)

#define SV_XML_MAX (1024 * 1024) /* longest text that is looked at */
#define SV_XML_MAX_ITEMS 4096 /* aliases, containers, disks */
/* Parses the XML of a domain. Never follows entities or the network. (transfer full) */
SvXmlDomain *sv_xml_read_domain(const char *text, gsize len, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* The same for the metadata element alone. (transfer full) */
SvMetadata *sv_xml_read_metadata(const char *text, gsize len, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* The live XML's virtio-mem device with another requested size, as virDomainUpdateDeviceFlags takes
 * it. SV_ERR_UNSUPPORTED: the domain has none. (transfer full) */
char *sv_xml_read_memory(const char *text, gsize len, guint64 requested_bytes, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
