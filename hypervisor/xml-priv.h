/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the xml-*.c files share. */
#pragma once

#include <libxml/tree.h>

#include "hypervisor/xml.h"

G_BEGIN_DECLS

/* Slots on the root complex. Everything static lies there, so that all root ports stay free for
 * what is plugged. 0x00 and 0x1f are the chipset's. */
enum {
    SV_SLOT_PORTS = 0x02, /* eight ports in each slot, so up to 0x04 */
    SV_SLOT_SERIAL = 0x05,
    SV_SLOT_SCSI = 0x06,
    SV_SLOT_RNG = 0x07,
    SV_SLOT_SHARE = 0x08,
    SV_SLOT_MEMORY = 0x09,
};

void sv_xml_add_device(xmlNodePtr devices, const SvDevice *device);
/* Everything below <devices> but @machine->devices. */
void sv_xml_add_static_devices(xmlNodePtr devices, const SvMachine *machine);
/* Fills the element <sandbox>. */
void sv_xml_fill_metadata(xmlNodePtr sandbox, const SvMetadata *metadata);

G_END_DECLS
