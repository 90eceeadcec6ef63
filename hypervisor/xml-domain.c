/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The domain in named steps: basic, memory, os, features, cpu, life cycle, devices, security, qemu. */
#include <config.h>

#include "hypervisor/xml-node.h"
#include "hypervisor/xml-priv.h"

#define QEMU_NS "http://libvirt.org/schemas/domain/qemu/1.0"
#define MAX_TITLE 256
#define MAX_DESCRIPTION 4096

static void add_printable(xmlNodePtr domain, const char *name, const char *text, gsize max)
{
    if (text == NULL || *text == '\0')
        return;
    g_autofree char *shown = sv_printable(text, max);
    sv_xml_add_text(domain, name, "%s", shown);
}

static void step_basic(xmlNodePtr domain, const SvMachine *machine)
{
    sv_xml_set(domain, "type", machine->accel == SV_ACCEL_KVM ? "kvm" : "qemu");
    sv_xml_add_text(domain, "name", "%s", machine->name);
    if (machine->uuid != NULL)
        sv_xml_add_text(domain, "uuid", "%s", machine->uuid);
    add_printable(domain, "title", machine->title, MAX_TITLE);
    add_printable(domain, "description", machine->description, MAX_DESCRIPTION);
    if (machine->metadata != NULL) {
        xmlNodePtr sandbox = sv_xml_add(sv_xml_add(domain, "metadata"), "sandbox");
        xmlSetNs(
            sandbox, xmlNewNs(sandbox, BAD_CAST SV_METADATA_NS, BAD_CAST SV_XML_METADATA_PREFIX));
        sv_xml_fill_metadata(sandbox, machine->metadata);
    }
}

static void add_mib(xmlNodePtr parent, const char *name, guint64 mib)
{
    sv_xml_set(sv_xml_add_text(parent, name, "%" G_GUINT64_FORMAT, mib), "unit", "MiB");
}

static void step_memory(xmlNodePtr domain, const SvMachine *machine)
{
    if (machine->max_extra_memory_mib > 0) {
        add_mib(domain, "maxMemory", machine->memory_mib + machine->max_extra_memory_mib);
        sv_xml_set(xmlGetLastChild(domain), "slots", "1");
    }
    add_mib(domain, "memory", machine->memory_mib + machine->max_extra_memory_mib);
    add_mib(domain, "currentMemory", machine->memory_mib);
    /* virtiofsd maps the guest's memory */
    xmlNodePtr backing = sv_xml_add(domain, "memoryBacking");
    sv_xml_set(sv_xml_add(backing, "source"), "type", "memfd");
    sv_xml_set(sv_xml_add(backing, "access"), "mode", "shared");

    xmlNodePtr vcpu =
        sv_xml_add_text(domain, "vcpu", "%u", MAX(machine->max_vcpus, machine->vcpus));
    sv_xml_set(vcpu, "placement", "static");
    sv_xml_setf(vcpu, "current", "%u", machine->vcpus);
    if (machine->partition != NULL)
        sv_xml_add_text(sv_xml_add(domain, "resource"), "partition", "%s", machine->partition);
}

static void step_os(xmlNodePtr domain, const SvMachine *machine)
{
    xmlNodePtr os = sv_xml_add(domain, "os");
    xmlNodePtr type = sv_xml_add_text(os, "type", "hvm");
    sv_xml_set(type, "arch", "x86_64");
    sv_xml_set(type, "machine", "q35");
    if (machine->firmware != NULL && *machine->firmware != '\0') {
        xmlNodePtr loader = sv_xml_add_text(os, "loader", "%s", machine->firmware);
        sv_xml_set(loader, "readonly", "yes");
        sv_xml_set(loader, "type", "rom");
    }
    sv_xml_add_text(os, "kernel", "%s", machine->kernel);
    if (machine->initrd != NULL)
        sv_xml_add_text(os, "initrd", "%s", machine->initrd);
    if (machine->cmdline != NULL)
        sv_xml_add_text(os, "cmdline", "%s", machine->cmdline);
}

static void step_features(xmlNodePtr domain, const SvMachine *machine)
{
    xmlNodePtr features = sv_xml_add(domain, "features");
    sv_xml_add(features, "acpi");
    sv_xml_add(features, "apic");
    sv_xml_set(sv_xml_add(features, "vmport"), "state", "off");
    if (machine->accel == SV_ACCEL_TCG && machine->tcg_cache_mib > 0)
        add_mib(sv_xml_add(features, "tcg"), "tb-cache", machine->tcg_cache_mib);
}

static void step_cpu(xmlNodePtr domain, const SvMachine *machine)
{
    /* qemu64 with what images built for x86-64-v2 need: larger models start slower */
    static const char *const wanted[] = {"ssse3", "sse4.1", "sse4.2", "popcnt"};
    xmlNodePtr cpu = sv_xml_add(domain, "cpu");
    if (machine->accel == SV_ACCEL_KVM) {
        sv_xml_set(cpu, "mode", "host-passthrough");
        sv_xml_set(cpu, "check", "none");
        sv_xml_set(cpu, "migratable", "off");
    } else {
        sv_xml_set(cpu, "mode", "custom");
        sv_xml_set(cpu, "match", "exact");
        sv_xml_set(cpu, "check", "none");
        sv_xml_set(sv_xml_add_text(cpu, "model", "qemu64"), "fallback", "forbid");
        for (guint i = 0; i < G_N_ELEMENTS(wanted); i++) {
            xmlNodePtr feature = sv_xml_add(cpu, "feature");
            sv_xml_set(feature, "policy", "require");
            sv_xml_set(feature, "name", wanted[i]);
        }
    }
    if (machine->max_extra_memory_mib == 0)
        return;
    /* memory can only be added to a NUMA node */
    guint max_vcpus = MAX(machine->max_vcpus, machine->vcpus);
    xmlNodePtr cell = sv_xml_add(sv_xml_add(cpu, "numa"), "cell");
    sv_xml_set(cell, "id", "0");
    if (max_vcpus > 1)
        sv_xml_setf(cell, "cpus", "0-%u", max_vcpus - 1);
    else
        sv_xml_set(cell, "cpus", "0");
    sv_xml_setf(cell, "memory", "%" G_GUINT64_FORMAT, machine->memory_mib);
    sv_xml_set(cell, "unit", "MiB");
}

static void step_life_cycle(xmlNodePtr domain)
{
    sv_xml_set(sv_xml_add(domain, "clock"), "offset", "utc");
    sv_xml_add_text(domain, "on_poweroff", "destroy");
    sv_xml_add_text(domain, "on_reboot", "destroy");
    sv_xml_add_text(domain, "on_crash", "destroy");
}

static void step_devices(xmlNodePtr domain, const SvMachine *machine)
{
    xmlNodePtr devices = sv_xml_add(domain, "devices");
    sv_xml_add_static_devices(devices, machine);
    for (guint i = 0; i < machine->devices->len; i++)
        sv_xml_add_device(devices, machine->devices->pdata[i]);
}

/* A user of its own; the other security drivers keep their defaults. */
static void step_security(xmlNodePtr domain, const SvMachine *machine)
{
    if (machine->uid < 0)
        return;
    xmlNodePtr label = sv_xml_add(domain, "seclabel");
    sv_xml_set(label, "type", "static");
    sv_xml_set(label, "model", "dac");
    sv_xml_set(label, "relabel", "yes");
    sv_xml_add_text(
        label, "label", "+%d:+%d", machine->uid, machine->gid >= 0 ? machine->gid : machine->uid);
}

/* libvirt then does not ask QEMU some 400 questions about CPU properties at each start. */
static void step_qemu(xmlNodePtr domain, const SvMachine *machine)
{
    if (!machine->skip_cpu_probe)
        return;
    xmlNsPtr ns = xmlNewNs(domain, BAD_CAST QEMU_NS, BAD_CAST "qemu");
    xmlNodePtr capabilities = sv_xml_add(domain, "capabilities");
    xmlSetNs(capabilities, ns);
    xmlNodePtr del = sv_xml_add(capabilities, "del");
    xmlSetNs(del, ns);
    sv_xml_set(del, "capability", "cpu-unavailable-features");
}

char *sv_xml_domain(const SvMachine *machine)
{
    g_return_val_if_fail(machine != NULL && machine->name != NULL, NULL);
    xmlDocPtr doc = sv_xml_new("domain");
    xmlNodePtr domain = xmlDocGetRootElement(doc);
    step_basic(domain, machine);
    step_memory(domain, machine);
    step_os(domain, machine);
    step_features(domain, machine);
    step_cpu(domain, machine);
    step_life_cycle(domain);
    step_devices(domain, machine);
    step_security(domain, machine);
    step_qemu(domain, machine);
    return sv_xml_finish(doc);
}
