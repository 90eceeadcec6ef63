/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A machine and its devices as plain data: what hypervisor/ makes a domain of. No libvirt, no XML.
 * All strings are owned by the struct. */
#pragma once

#include "devices/block.h"
#include "devices/network.h"

G_BEGIN_DECLS

typedef enum { SV_ACCEL_TCG, SV_ACCEL_KVM } SvAccel;

/* Our metadata element (namespace SV_METADATA_NS), kept live. */
#define SV_METADATA_NS "https://sandvirt.org/xmlns/domain/1.0"
typedef struct {
    char *alias;
    char *target; /* "vda"; nullable, as the others */
    char *source; /* on the host */
    char *use; /* "rootfs", "device", "volume" */
} SvMetadataDisk;
void sv_metadata_disk_free(SvMetadataDisk *disk);
typedef struct {
    char *id;
    char *name; /* in its pod; nullable */
    char *bundle;
    char *state; /* "creating" ... "stopped" */
    char *cause; /* nullable */
    GPtrArray *disks; /* of SvMetadataDisk */
} SvMetadataContainer;
typedef struct {
    char *root; /* real path */
    char *sandbox; /* id */
    char *boot_id;
    char *lock; /* path of the sandbox's lock */
    GPtrArray *containers; /* of SvMetadataContainer */
} SvMetadata;
SvMetadata *sv_metadata_new(void); /* empty, with an owning array */
SvMetadata *sv_metadata_copy(const SvMetadata *metadata);
void sv_metadata_free(SvMetadata *metadata); /* NULL is fine, as everywhere */
SvMetadataContainer *sv_metadata_container_new(void); /* empty, with an owning array */
void sv_metadata_container_free(SvMetadataContainer *container);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvMetadata, sv_metadata_free)

typedef struct {
    char *name, *uuid;
    char *title; /* "<namespace>/<pod>", printable, one line; nullable */
    char *description; /* nullable */
    SvMetadata *metadata;

    SvAccel accel;
    guint vcpus, max_vcpus;
    guint64 memory_mib;
    guint64 max_extra_memory_mib; /* virtio-mem room, 0: none */
    char *kernel, *initrd, *cmdline; /* absolute paths QEMU's user can read */
    char *firmware; /* nullable: libvirt's default; else a ROM path (qboot) */
    gboolean skip_cpu_probe; /* qemu:del of cpu-unavailable-features */
    guint tcg_cache_mib; /* 0: QEMU's default */

    char *agent_socket; /* channel target org.sandvirt.agent.0, mode=bind */
    char *console_log; /* serial to a capped file by virtlogd */
    char *share_dir; /* virtiofs source, tag SV_SHARE_TAG; nullable */
    char *virtiofsd; /* nullable: libvirt's choice */
    guint root_ports;
    char *partition; /* resource partition; nullable */
    int uid, gid; /* DAC label of QEMU; -1: libvirt's default */
    GPtrArray *devices; /* of SvDevice: present from the start */
} SvMachine;
#define SV_SHARE_TAG "sandvirt"
#define SV_AGENT_CHANNEL "org.sandvirt.agent.0"
/* One vCPU, 8 root ports, libvirt's own user, no devices; everything else 0 or NULL. */
SvMachine *sv_machine_new(void);
void sv_machine_free(SvMachine *machine);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvMachine, sv_machine_free)

typedef enum { SV_DEVICE_BLOCK, SV_DEVICE_NETWORK } SvDeviceType;
/* Something that is hotplugged. */
typedef struct {
    SvDeviceType type;
    char *alias; /* "ua-sv-..." : libvirt keeps user aliases that start with "ua-" */
    union {
        SvBlock *block;
        SvNetwork *network;
    } u;
} SvDevice;
SvDevice *sv_device_new_block(const char *alias, SvBlock *block); /* takes block */
SvDevice *sv_device_new_network(const char *alias, SvNetwork *network); /* takes network */
SvDevice *sv_device_copy(const SvDevice *device);
void sv_device_free(SvDevice *device);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvDevice, sv_device_free)

G_END_DECLS
