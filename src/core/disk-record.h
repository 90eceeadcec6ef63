/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A disk of a container as it is recorded: written before anything is done with it, so that another
 * monitor can finish or undo what a killed one had begun. */
#pragma once

#include "base/error.h"
#include "base/json.h"

G_BEGIN_DECLS

typedef enum {
    SV_DISK_ROOTFS, /* the container's root file system */
    SV_DISK_DEVICE, /* a raw block device in linux.devices, a bind mount of a node, or plugged later */
    SV_DISK_VOLUME, /* the file system of a volume */
    SV_N_DISK_USES
} SvDiskUse;
const char *sv_disk_use_name(SvDiskUse use); /* "rootfs", "device", "volume" */

typedef struct {
    SvDiskUse use;
    char *alias; /* "ua-sv-<short id>-N": unique in its sandbox */
    char *
        shares; /* nullable: the alias of another container's, when both have one disk of the machine */
    char *serial; /* by which the guest finds it */
    char *source; /* node or image file on the host */
    char *format; /* "raw", "qcow2" */
    char *target; /* in the machine: "vda", "sdc"; NULL: not given yet */
    guint32 major, minor; /* on the host; 0:0 for an image file */
    guint64 seq; /* see SvBlockInfo */
    guint64 size; /* bytes */
    gboolean image, read_only;
    gboolean plugged; /* it is, or may be, in the machine */
    char *path; /* in the container: of the node, or where it is mounted */
    int mount_index; /* in the spec's mounts; -1: it is not one of them */
    char *fstype, *options; /* nullable: what the agent mounts */
    char *access; /* nullable: "rwm", of a device that was added later */
    gboolean adding; /* it is being added to a running container: a later monitor undoes that */
    char *guest_target; /* nullable: where, below /run/sandvirt/c/ID */
    char *guest_node; /* "/dev/vdb"; NULL: not known yet */
    guint32 guest_major, guest_minor;
    char *claim_device, *claim_disk; /* of devices/block-claim.h; NULL: not claimed */
    gboolean exclusive; /* of the claim */
    /* The host's mount of it that was taken away; NULL: there was none. */
    char *host_target, *host_device, *host_options, *host_super;
    gboolean host_taken; /* it is, or may be, away */
} SvDiskRecord;
SvDiskRecord *sv_disk_record_new(void); /* mount_index -1 */
void sv_disk_record_free(SvDiskRecord *disk);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvDiskRecord, sv_disk_record_free)
SvDiskRecord *sv_disk_record_copy(const SvDiskRecord *disk);
/* The alias that libvirt knows the disk by (transfer none). */
const char *sv_disk_record_device(const SvDiskRecord *disk);
/* "block device \"/dev/sdb\"", for messages; (transfer full) */
char *sv_disk_record_title(const SvDiskRecord *disk);

/* "disks" of a container's record, "heldDisks" of a sandbox's. */
gboolean sv_disk_records_read(JsonObject *object, const char *name, GPtrArray *disks,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_disk_records_write(JsonObject *object, const char *name, const GPtrArray *disks);
/* (transfer none, nullable) */
SvDiskRecord *sv_disk_records_find(const GPtrArray *disks, const char *alias);

G_END_DECLS
