/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The typed configuration: built-in defaults < sandvirt.conf < sandvirt.conf.d/NAME.conf (sorted).
 * Loaded once, immutable, passed as an argument. One table (conf/keys.c) drives parser,
 * documentation and test. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

#define SV_CONF_ERROR (sv_conf_error_quark())
GQuark sv_conf_error_quark(void);

typedef enum { SV_ACCEL_MODE_AUTO, SV_ACCEL_MODE_KVM, SV_ACCEL_MODE_TCG } SvAccelMode;
typedef enum {
    SV_LOG_LEVEL_ERROR,
    SV_LOG_LEVEL_WARNING,
    SV_LOG_LEVEL_INFO,
    SV_LOG_LEVEL_DEBUG
} SvLogLevel;

typedef struct {
    /* [hypervisor] */
    char *uri; /* qemu:///system */
    SvAccelMode accel; /* auto */
    gboolean skip_cpu_probe; /* true: 0.45 s less per start, taints the domain */
    char *firmware; /* qboot path or "" for libvirt's default */
    char *virtiofsd; /* "" : libvirt's choice */
    guint tcg_cache_mib; /* 32 */
    guint root_ports; /* 8 */
    guint uid_first, uid_last; /* range of QEMU's uids; 0: libvirt's own user */
    /* [machine] */
    guint memory_mib, max_memory_mib, overhead_mib; /* 256, the host's memory, 64 */
    guint vcpus, max_vcpus; /* 1, number of host CPUs */
    char *kernel, *image; /* "" : the project's own in image_dir */
    char *kernel_args; /* appended */
    char *image_dir; /* /var/lib/sandvirt/images */
    /* [paths] */
    char *run_dir; /* /run/sandvirt */
    char *launcher_socket; /* "" : RUN_DIR/.sock/launcher */
    /* [timeouts] milliseconds */
    guint connect_ms, call_ms, accel_probe_ms; /* libvirt: open, one call, does KVM run a guest */
    guint boot_ms, agent_ms, device_ms, unplug_ms, stop_ms, shutdown_ms, hook_ms, create_ms;
    guint grace_ms; /* TERM to KILL at virsh shutdown */
    /* [storage] */
    gboolean block_rootfs; /* true */
    gboolean block_volumes; /* false */
    char **block_volume_paths; /* empty: the same for these alone */
    gboolean shareable; /* false */
    char *disk_cache, *disk_io; /* "none", "native" */
    gboolean discard; /* true */
    char **image_folders; /* empty: image files off */
    gboolean end_machine_on_busy; /* true: machine is ended when a block-backed source stays busy */
    /* [network] */
    gboolean host_network_substitute; /* false */
    gboolean follow_changes; /* true */
    gboolean forward_localhost; /* true */
    /* [log] */
    SvLogLevel log_level;
    guint console_kib; /* cap hint */
    gboolean console_shell; /* false */

    char *path; /* file that was asked for; NULL: the usual one, there or not */
} SvConfig;

#define SV_CONFIG_FILE "sandvirt/sandvirt.conf" /* below SV_SYSCONFDIR */
/* @path: (nullable) file given with --config (must exist); NULL: SV_SYSCONFDIR/SV_CONFIG_FILE when it
 * is there, else the built-in defaults. The drop-ins of the file ("<file>.d", NAME.conf in order)
 * come on top. Errors name file, line and key. Zero for max_memory_mib and max_vcpus is replaced by
 * what the host has. (transfer full) */
const SvConfig *sv_config_load(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
const SvConfig *sv_config_ref(const SvConfig *config);
void sv_config_unref(const SvConfig *config); /* NULL is fine */

/* Kernel and image to use: the configured ones, else IMAGE_DIR/vmlinux and IMAGE_DIR/initramfs.img.
 * Both are symbolic links to files named by their content; the resolved names come out, so that a
 * machine keeps what it was started with when the image is replaced. Checks that both are regular
 * files that QEMU's user can reach and read. Out (transfer full). */
gboolean sv_config_guest_image(const SvConfig *config, char **kernel, char **image, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
