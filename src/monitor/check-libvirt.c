/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libvirt's daemon, where it runs, and what it starts. */
#include "monitor/check.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/mount.h"
#include "base/process.h"
#include "hypervisor/accel.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBVIRT_MIN 9
#define QEMU_MIN 5 /* virtiofs */
#define VHOST_USER_DIR "/usr/share/qemu/vhost-user"
#define PID_FILE_MAX 64
#define DESCRIPTION_MAX 65536

static void check_daemon_answer(SvCheck *check)
{
    g_autoptr(GError) error = NULL;
    check->host = sv_libvirt_host(check->config, &error);
    if (!check->host) {
        sv_check_add(check, "libvirt", SV_CHECK_FAIL,
            "start it: systemctl enable --now libvirtd (or virtqemud)", "%s", error->message);
        return;
    }
    const guint *v = check->host->libvirt;
    gboolean ok = v[0] >= LIBVIRT_MIN;
    sv_check_add(check, "libvirt", ok ? SV_CHECK_PASS : SV_CHECK_FAIL,
        ok ? NULL : "use libvirt 9.0 or later", "%u.%u.%u at %s", v[0], v[1], v[2],
        check->config->uri);
}

static void check_qemu(SvCheck *check)
{
    const SvHost *host = check->host;
    if (!host->emulator) {
        sv_check_add(check, "qemu", SV_CHECK_FAIL, "install it (Debian: qemu-system-x86)", "%s",
            host->why ? host->why : "libvirt names no emulator");
        return;
    }
    gboolean ok = host->qemu[0] >= QEMU_MIN;
    sv_check_add(check, "qemu", ok ? SV_CHECK_PASS : SV_CHECK_FAIL,
        ok ? NULL : "use QEMU 5.0 or later", "%u.%u.%u at %s", host->qemu[0], host->qemu[1],
        host->qemu[2], host->emulator);
    sv_check_add(check, "confinement", host->confinement ? SV_CHECK_PASS : SV_CHECK_WARN,
        host->confinement ? NULL : "use AppArmor or SELinux where the distribution offers it", "%s",
        host->confinement ? host->confinement : "libvirt confines QEMU by its user alone");
}

/* The program that libvirt would start: QEMU's descriptions of its helpers tell. */
static char *find_virtiofsd(void)
{
    g_autoptr(GDir) dir = g_dir_open(VHOST_USER_DIR, 0, NULL);
    const char *name;
    char *found = NULL;
    while (dir && !found && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(VHOST_USER_DIR, name, NULL);
        g_autoptr(JsonNode) node = sv_json_load(path, DESCRIPTION_MAX, NULL);
        const char *type = NULL, *binary = NULL;
        if (!node)
            continue;
        JsonObject *object = json_node_get_object(node);
        if (sv_json_get_string(object, "type", "", &type, NULL) &&
            sv_json_get_string(object, "binary", "", &binary, NULL) && g_strcmp0(type, "fs") == 0)
            found = g_strdup(binary);
    }
    return found;
}

static void check_virtiofsd(SvCheck *check)
{
    g_autofree char *path =
        *check->config->virtiofsd ? g_strdup(check->config->virtiofsd) : find_virtiofsd();
    if (path && access(path, X_OK) == 0 && (!check->host || check->host->has_virtiofs))
        sv_check_add(check, "virtiofsd", SV_CHECK_PASS, NULL, "%s", path);
    else
        sv_check_add(check, "virtiofsd", SV_CHECK_FAIL,
            "install it (Debian 12: qemu-system-common, later: virtiofsd), or set [hypervisor] "
            "virtiofsd",
            "%s%s%s", path ? path : "none is known to QEMU", path ? ": " : "",
            path ? g_strerror(access(path, X_OK) ? errno : ENOTSUP) : "");
}

/* ---- the daemon's process */

static pid_t daemon_pid(void)
{
    static const char *const files[] = {"/run/libvirtd.pid", "/run/virtqemud.pid",
        "/run/libvirt/libvirtd.pid", "/run/libvirt/virtqemud.pid"};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *text = NULL;
        pid_t pid;
        if (g_file_get_contents(files[i], &text, NULL, NULL) &&
            (pid = (pid_t)g_ascii_strtoll(text, NULL, 10)) > 1 && sv_process_ns_inode(pid, "mnt"))
            return pid;
    }
    return 0;
}

/* See host-notes: with a private / a domain keeps what was mounted when it started. */
static void check_mounts(SvCheck *check)
{
    pid_t pid = daemon_pid();
    if (!pid) {
        sv_check_add(check, "mounts", SV_CHECK_WARN, "see whether the daemon runs on this host",
            "libvirt's daemon has no pid file: its mounts cannot be looked at");
        return;
    }
    if (sv_process_ns_inode(pid, "mnt") != sv_process_ns_inode(0, "mnt")) {
        sv_check_add(check, "mounts", SV_CHECK_FAIL,
            "run engine, sandvirt-launcher and libvirt's daemon in one mount namespace",
            "libvirt's daemon (pid %d) is in another mount namespace", (int)pid);
        return;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) mounts = sv_mount_list(pid, &error);
    gboolean shared = FALSE;
    for (guint i = 0; mounts && i < mounts->len; i++) {
        const SvMountInfo *info = mounts->pdata[i];
        if (strcmp(info->target, "/") == 0)
            shared = info->shared;
    }
    sv_check_add(check, "mounts", shared ? SV_CHECK_PASS : SV_CHECK_FAIL,
        shared ? NULL
               : "mount --make-rshared / : else machines keep mounts busy that the host has let go",
        shared ? "/ is a shared mount" : "/ is a private mount");
}

static void check_virtlogd(SvCheck *check)
{
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) fd = sv_unix_connect("/run/libvirt/virtlogd-sock", &error);
    sv_check_add(check, "virtlogd", fd >= 0 ? SV_CHECK_PASS : SV_CHECK_FAIL,
        fd >= 0 ? NULL : "start it: systemctl enable --now virtlogd.socket", "%s",
        fd >= 0 ? "it answers" : error->message);
}

/* ---- acceleration */

void sv_check_machine(SvCheck *check)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *reason = NULL;
    const char *slow = "machines are emulated, which is slow: use a host with VT-x or AMD-V, "
                       "/dev/kvm with mode 660 and group kvm";
    check->accel = SV_ACCEL_TCG;
    if (!check->host || check->config->accel == SV_ACCEL_MODE_TCG) {
        sv_check_add(check, "kvm", SV_CHECK_WARN,
            check->host ? "set [hypervisor] accel to auto where KVM works"
                        : "first make libvirt answer",
            "%s", check->host ? "software emulation is configured" : "it cannot be tried");
        return;
    }
    if (!sv_accel_find(check->config, !check->quick, &check->accel, &reason, &error))
        sv_check_add(check, "kvm", SV_CHECK_FAIL, "see above", "%s", error->message);
    else if (check->accel == SV_ACCEL_KVM && !reason)
        sv_check_add(check, "kvm", SV_CHECK_PASS, NULL, "%s",
            check->quick ? "it is to be used" : "a guest's kernel runs with it");
    else
        sv_check_add(check, "kvm",
            check->config->accel == SV_ACCEL_MODE_KVM ? SV_CHECK_FAIL : SV_CHECK_WARN, slow, "%s",
            reason ? reason : "no guest runs with it");
}

void sv_check_libvirt(SvCheck *check)
{
    check_daemon_answer(check);
    check_virtlogd(check);
    check_mounts(check);
    if (check->host)
        check_qemu(check);
    check_virtiofsd(check);
}
