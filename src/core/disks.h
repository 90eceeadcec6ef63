/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Disks of containers: what the spec asks for is planned, claimed, taken off the host, plugged into the
 * machine, found in the guest, and all the way back. Main loop; what may take long runs in threads. */
#pragma once

#include "core/sandbox-priv.h"
#include "devices/block-claim.h"
#include "devices/block-mount.h"
#include "devices/block-probe.h"

G_BEGIN_DECLS

/* One sandbox: (root_ports - 1) disks on PCIe ports of their own (one port is left to a network card),
 * the others on the SCSI bus, which has room for 256. */
#define SV_DISKS_MAX 128

/* ---- disk-plan.c */
/* Fills the record's disks with what the spec asks for. Looks only; anything wrong with a device that was
 * asked for by itself is an error that names it. */
gboolean sv_disks_plan(SvContainer *container, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* One more device of a running container ("/dev/sdb", "/dev/sdb:/dev/data", "/dev/sdb:/dev/data:r"): not
 * yet in the record. (transfer full) */
SvDiskRecord *sv_disks_plan_device(SvContainer *container, const char *text, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* What the whole of the record's rules allows with a device of the host. */
JsonArray *sv_disks_rules(const SvContainer *container);

/* ---- disk-claim.c */
/* Gives @disk, which is in the record, alias, serial and target: those of another container's when both may
 * have the device. To be saved before it is claimed: a claim
 * counts as long as its owner's record has the disk. */
gboolean sv_disk_name(SvContainer *container, SvDiskRecord *disk, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Claims it for this container and, unless it is still mounted here, makes sure that nobody on the host
 * uses it. */
gboolean sv_disk_claim(SvContainer *container, SvDiskRecord *disk, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Opens the device exclusively, if it still is the disk that was planned; a descriptor or -1. Any thread. */
int sv_disk_open(const SvDiskRecord *disk, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Keeps that descriptor (taken) as long as the disk is in the machine: nobody on the host can begin to use
 * it. Of a device that nobody can write it is not needed. */
void sv_disk_take_hold(SvSandbox *sandbox, const SvDiskRecord *disk, int fd);
/* Both of them; an image file has no hold: TRUE. */
gboolean sv_disk_hold(SvSandbox *sandbox, const SvDiskRecord *disk, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Claim, hold and what was bound of an image file go. */
void sv_disk_unclaim(SvSandbox *sandbox, SvDiskRecord *disk);
/* Moves a disk for which no port was left to the SCSI bus. */
gboolean sv_disk_use_scsi(SvSandbox *sandbox, SvDiskRecord *disk, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

/* ---- disk-image.c */
/* Where libvirt finds the image file; (transfer full). */
char *sv_disk_image_path(const SvSandbox *sandbox, const SvDiskRecord *disk);
gboolean sv_disk_image_bind(SvSandbox *sandbox, const SvDiskRecord *disk, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
void sv_disk_image_unbind(SvSandbox *sandbox, const SvDiskRecord *disk);

/* ---- disk-host.c */
/* Takes the host's mounts away. What turns out to be in use stays on the host and leaves the record. */
void sv_disks_take_mounts(SvContainer *container, SvDone done, gpointer user_data);
/* Puts back what is not in the machine any more. Always ends well: what goes wrong is a warning.
 * @if_missing: see sv_block_mount_restore. */
void sv_disks_restore_mounts(
    SvContainer *container, gboolean if_missing, SvDone done, gpointer user_data);
/* The same for a disk whose container has gone; nobody waits for it. */
void sv_disk_restore_held(SvSandbox *sandbox, const SvDiskRecord *disk);
gboolean sv_disks_any_mount(const SvContainer *container); /* restoring has something to do */

/* ---- disk-plug.c */
/* Attaches all of the record; the first error, when all are done with. */
void sv_disks_plug(SvContainer *container, SvDone done, gpointer user_data);
/* Waits until the guest has them; fills in the guest's names and numbers. */
void sv_disks_await(SvContainer *container, SvDone done, gpointer user_data);
/* One disk, both of the above. */
void sv_disk_plug(SvContainer *container, const char *alias, SvDone done, gpointer user_data);

/* ---- disk-unplug.c */
/* Takes the disk @alias (NULL: all) of @container out of the machine; @done when they are out, or when
 * the deadline is over: then with an error, and the machine is ended or the disk is noted as held. */
void sv_disks_unplug(SvContainer *container, const char *alias, SvDone done, gpointer user_data);
void sv_disks_removed(SvSandbox *sandbox, const char *device); /* it is out, whoever says so */
gboolean sv_disks_is_unplugged(
    const SvSandbox *sandbox, const char *device); /* it is asked to go */
void sv_disks_machine_gone(SvSandbox *sandbox); /* all are */
void sv_disks_connected(SvSandbox *sandbox); /* libvirt can be asked again */
void sv_disks_free(SvSandbox *sandbox); /* holds and unplugs under way; no callbacks */
/* After a recovery: what is in the machine is held again. */
void sv_disks_hold_again(SvSandbox *sandbox);

/* ---- disk-watch.c */
/* Disks that another machine has too, and whose hold is another monitor's: taken when that one lets go. */
void sv_disks_watch_claims(SvSandbox *sandbox);
void sv_disks_unwatch_claims(SvSandbox *sandbox);

/* ---- disks.c */
gboolean sv_disks_any_plugged(const SvContainer *container);
SvDiskRecord *sv_disks_rootfs(const SvContainer *container); /* nullable */
SvDiskRecord *sv_disks_of_mount(const SvContainer *container, guint mount_index); /* nullable */
/* A record that stands for the machine's disk @device, and its container (nullable out; NULL for a held
 * one); NULL: none. */
SvDiskRecord *sv_disks_find(SvSandbox *sandbox, const char *device, SvContainer **container);
/* Another container has the same disk of the machine. */
gboolean sv_disks_is_shared(SvSandbox *sandbox, const SvDiskRecord *disk);
/* All that are, or may be, in the machine; (transfer container) of SvDiskRecord. */
GPtrArray *sv_disks_in_machine(SvSandbox *sandbox);
/* "b:7:0" -> "b:253:16" for devices of @container; (transfer full) */
GHashTable *sv_disks_numbers(const SvContainer *container);
/* Where the guest has a file system that the agent mounts; (transfer full) */
char *sv_disk_guest_path(const SvContainer *container, const SvDiskRecord *disk);
/* Fills @message->block_mounts; what it points to is valid as long as the result. (transfer full) */
GPtrArray *sv_disks_fill_create(
    const SvContainer *container, guint timeout_ms, Sandvirt__V1__CreateRequest *message);
/* The same error with the host's name of the disk in front, when it speaks of one by its serial.
 * (transfer full) */
GError *sv_disks_explain(const SvContainer *container, const GError *error);
void sv_disks_forget(
    SvContainer *container, const SvDiskRecord *disk); /* out of the record; freed */

G_END_DECLS
