/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/xml-node.h"
#include "hypervisor/xml-priv.h"

#include <string.h>

static const char *on_off(gboolean on)
{
    return on ? "on" : "off";
}

/* "sda" is 0, "sdz" 25, "sdaa" 26 */
static guint target_index(const char *target)
{
    guint index = 0;
    for (const char *p = target + 2; *p >= 'a' && *p <= 'z'; p++)
        index = index * 26 + (guint)(*p - 'a') + 1;
    return index - 1;
}

/* Each disk is a SCSI target of its own. libvirt's choice of address would ask for another controller,
 * and so for a free PCIe port, after some disks. */
static void add_drive_address(xmlNodePtr disk, const char *target)
{
    xmlNodePtr address = sv_xml_add(disk, "address");
    sv_xml_set(address, "type", "drive");
    sv_xml_set(address, "controller", "0");
    sv_xml_set(address, "bus", "0");
    sv_xml_setf(address, "target", "%u", target_index(target) & 0xff);
    sv_xml_set(address, "unit", "0");
}

static void fill_block(xmlNodePtr disk, const SvBlock *block)
{
    gboolean file = block->kind == SV_BLOCK_FILE;
    sv_xml_set(disk, "type", file ? "file" : "block");
    sv_xml_set(disk, "device", "disk");

    xmlNodePtr driver = sv_xml_add(disk, "driver");
    sv_xml_set(driver, "name", "qemu");
    sv_xml_set(driver, "type", block->format != NULL ? block->format : "raw");
    sv_xml_set(driver, "cache", block->cache);
    sv_xml_set(driver, "io", block->io);
    if (block->discard)
        sv_xml_set(driver, "discard", "unmap");
    /* Else QEMU stops the machine, and all its containers, when the host has no room for one's writes. */
    sv_xml_set(driver, "error_policy", "report");
    sv_xml_set(driver, "rerror_policy", "report");

    sv_xml_set(sv_xml_add(disk, "source"), file ? "file" : "dev", block->source);
    /* ends the chain: libvirt would follow a tenant's image to any file of the host */
    sv_xml_add(disk, "backingStore");
    xmlNodePtr target = sv_xml_add(disk, "target");
    sv_xml_set(target, "dev", block->target);
    sv_xml_set(target, "bus", block->bus == SV_BUS_SCSI ? "scsi" : "virtio");
    if (block->read_only)
        sv_xml_add(disk, "readonly");
    if (block->shareable)
        sv_xml_add(disk, "shareable");
    if (block->serial != NULL)
        sv_xml_add_text(disk, "serial", "%s", block->serial);
    if (block->bus == SV_BUS_SCSI && block->target != NULL && strlen(block->target) > 2)
        add_drive_address(disk, block->target);
}

static void add_offloads(xmlNodePtr driver, gboolean on)
{
    static const char *const host[] = {"csum", "gso", "tso4", "tso6", "ecn", "ufo"};
    static const char *const guest[] = {"csum", "tso4", "tso6", "ecn", "ufo"};
    if (on)
        return; /* QEMU's default */
    xmlNodePtr node = sv_xml_add(driver, "host");
    for (guint i = 0; i < G_N_ELEMENTS(host); i++)
        sv_xml_set(node, host[i], on_off(on));
    node = sv_xml_add(driver, "guest");
    for (guint i = 0; i < G_N_ELEMENTS(guest); i++)
        sv_xml_set(node, guest[i], on_off(on));
}

static void fill_network(xmlNodePtr interface, const SvNetwork *network)
{
    sv_xml_set(interface, "type", "ethernet");
    if (network->mac != NULL)
        sv_xml_set(sv_xml_add(interface, "mac"), "address", network->mac);
    sv_xml_set(sv_xml_add(interface, "target"), "dev", network->tap);
    sv_xml_set(sv_xml_add(interface, "model"), "type", "virtio");
    xmlNodePtr driver = sv_xml_add(interface, "driver");
    sv_xml_set(driver, "name", network->vhost ? "vhost" : "qemu");
    if (network->queues > 1)
        sv_xml_setf(driver, "queues", "%u", network->queues);
    add_offloads(driver, network->offloads);
    if (network->mtu > 0)
        sv_xml_setf(sv_xml_add(interface, "mtu"), "size", "%u", network->mtu);
    /* nothing boots from the network */
    sv_xml_set(sv_xml_add(interface, "rom"), "enabled", "no");
}

static void fill_device(xmlNodePtr node, const SvDevice *device)
{
    if (device->type == SV_DEVICE_BLOCK)
        fill_block(node, device->u.block);
    else
        fill_network(node, device->u.network);
    if (device->alias != NULL)
        sv_xml_set(sv_xml_add(node, "alias"), "name", device->alias);
}

static const char *element_of(const SvDevice *device)
{
    return device->type == SV_DEVICE_BLOCK ? "disk" : "interface";
}

void sv_xml_add_device(xmlNodePtr devices, const SvDevice *device)
{
    fill_device(sv_xml_add(devices, element_of(device)), device);
}

char *sv_xml_device(const SvDevice *device)
{
    g_return_val_if_fail(device != NULL, NULL);
    xmlDocPtr doc = sv_xml_new(element_of(device));
    fill_device(xmlDocGetRootElement(doc), device);
    return sv_xml_finish(doc);
}

static xmlNodePtr add_controller(
    xmlNodePtr devices, const char *type, guint index, const char *model)
{
    xmlNodePtr controller = sv_xml_add(devices, "controller");
    sv_xml_set(controller, "type", type);
    sv_xml_setf(controller, "index", "%u", index);
    sv_xml_set(controller, "model", model);
    return controller;
}

static void add_controllers(xmlNodePtr devices, const SvMachine *machine)
{
    /* The root complex must come first, or libvirt puts the ports elsewhere. */
    add_controller(devices, "pci", 0, "pcie-root");
    for (guint i = 0; i < machine->root_ports; i++) {
        xmlNodePtr port = add_controller(devices, "pci", i + 1, "pcie-root-port");
        xmlNodePtr address = sv_xml_add_pci_address(port, SV_SLOT_PORTS + i / 8, i % 8);
        if (i % 8 == 0)
            sv_xml_set(address, "multifunction", "on");
    }
    sv_xml_add_pci_address(add_controller(devices, "virtio-serial", 0, NULL), SV_SLOT_SERIAL, 0);
    sv_xml_add_pci_address(add_controller(devices, "scsi", 0, "virtio-scsi"), SV_SLOT_SCSI, 0);
    add_controller(devices, "usb", 0, "none");
}

static void add_channel(xmlNodePtr devices, const SvMachine *machine)
{
    xmlNodePtr channel = sv_xml_add(devices, "channel");
    sv_xml_set(channel, "type", "unix");
    xmlNodePtr source = sv_xml_add(channel, "source");
    sv_xml_set(source, "mode", "bind");
    sv_xml_set(source, "path", machine->agent_socket);
    xmlNodePtr target = sv_xml_add(channel, "target");
    sv_xml_set(target, "type", "virtio");
    sv_xml_set(target, "name", SV_AGENT_CHANNEL);
}

/* A pty, so that `virsh console` works, with a log that virtlogd caps. */
static void add_console(xmlNodePtr devices, const SvMachine *machine)
{
    xmlNodePtr serial = sv_xml_add(devices, "serial");
    sv_xml_set(serial, "type", "pty");
    if (machine->console_log != NULL) {
        xmlNodePtr log = sv_xml_add(serial, "log");
        sv_xml_set(log, "file", machine->console_log);
        sv_xml_set(log, "append", "off");
    }
    xmlNodePtr target = sv_xml_add(serial, "target");
    sv_xml_set(target, "type", "isa-serial");
    sv_xml_set(target, "port", "0");
}

static void add_share(xmlNodePtr devices, const SvMachine *machine)
{
    if (machine->share_dir == NULL)
        return;
    xmlNodePtr fs = sv_xml_add(devices, "filesystem");
    sv_xml_set(fs, "type", "mount");
    sv_xml_set(fs, "accessmode", "passthrough");
    sv_xml_set(sv_xml_add(fs, "driver"), "type", "virtiofs");
    /* No <cache>: mode none breaks mmap(MAP_SHARED), always hides mounts made later. */
    xmlNodePtr binary = sv_xml_add(fs, "binary");
    if (machine->virtiofsd != NULL && *machine->virtiofsd != '\0')
        sv_xml_set(binary, "path", machine->virtiofsd);
    sv_xml_set(binary, "xattr", "on");
    sv_xml_set(sv_xml_add(fs, "source"), "dir", machine->share_dir);
    sv_xml_set(sv_xml_add(fs, "target"), "dir", SV_SHARE_TAG);
    sv_xml_add_pci_address(fs, SV_SLOT_SHARE, 0);
}

static void add_rng(xmlNodePtr devices)
{
    xmlNodePtr rng = sv_xml_add(devices, "rng");
    sv_xml_set(rng, "model", "virtio");
    sv_xml_set(sv_xml_add_text(rng, "backend", "/dev/urandom"), "model", "random");
    sv_xml_add_pci_address(rng, SV_SLOT_RNG, 0);
}

/* Room for memory that is given to the running machine. */
static void add_memory(xmlNodePtr devices, const SvMachine *machine)
{
    if (machine->max_extra_memory_mib == 0)
        return;
    xmlNodePtr memory = sv_xml_add(devices, "memory");
    sv_xml_set(memory, "model", "virtio-mem");
    xmlNodePtr target = sv_xml_add(memory, "target");
    sv_xml_set(sv_xml_add_text(target, "size", "%" G_GUINT64_FORMAT, machine->max_extra_memory_mib),
        "unit", "MiB");
    sv_xml_add_text(target, "node", "0");
    sv_xml_set(sv_xml_add_text(target, "block", "2"), "unit", "MiB");
    sv_xml_set(sv_xml_add_text(target, "requested", "0"), "unit", "MiB");
    sv_xml_add_pci_address(memory, SV_SLOT_MEMORY, 0);
}

void sv_xml_add_static_devices(xmlNodePtr devices, const SvMachine *machine)
{
    add_controllers(devices, machine);
    if (machine->agent_socket != NULL)
        add_channel(devices, machine);
    add_console(devices, machine);
    add_share(devices, machine);
    add_rng(devices);
    add_memory(devices, machine);
    sv_xml_set(sv_xml_add(devices, "memballoon"), "model", "none");
    sv_xml_set(sv_xml_add(devices, "panic"), "model", "isa");
}
