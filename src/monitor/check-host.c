/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

/* What can be seen without libvirt: kernel, cgroups, devices, space, our own programs and files. */
#include "monitor/check.h"

#include "base/fd.h"
#include "base/file.h"
#include "core/paths.h"
#include "core/uids.h"
#include "devices/network-probe.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MIB (1024u * 1024)
#define RUN_MIN_MIB 64 /* records, console logs, mount points */
#define IMAGES_MIN_MIB 200 /* room for a second kernel and image */

static void check_kernel(SvCheck *check)
{
    struct utsname name;
    uname(&name);
    /* mount_setattr, pidfds, close_range */
    gboolean ok = strverscmp(name.release, "5.12") >= 0;
    sv_check_add(check, "kernel", ok ? SV_CHECK_PASS : SV_CHECK_FAIL,
        ok ? NULL : "use Linux 5.12 or later", "Linux %s", name.release);
}

static void check_cgroup(SvCheck *check)
{
    gboolean v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    gboolean hybrid = access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0;
    gboolean v1 = access("/sys/fs/cgroup/memory", F_OK) == 0;
    if (v2)
        sv_check_add(check, "cgroup", SV_CHECK_PASS, NULL, "version 2");
    else if (v1)
        sv_check_add(check, "cgroup", SV_CHECK_WARN,
            "boot with systemd.unified_cgroup_hierarchy=1 where the engine allows it",
            "version 1%s", hybrid ? " (hybrid)" : "");
    else
        sv_check_add(check, "cgroup", SV_CHECK_WARN,
            "mount cgroups at /sys/fs/cgroup: without them pods have no limits on the host",
            "none is mounted");
}

static void check_devices(SvCheck *check)
{
    gboolean tun = access("/dev/net/tun", R_OK | W_OK) == 0;
    sv_check_add(check, "tun", tun ? SV_CHECK_PASS : SV_CHECK_FAIL,
        tun ? NULL : "load the kernel module tun: pods have no network without it",
        tun ? "/dev/net/tun is there" : "/dev/net/tun cannot be opened");
    gboolean vhost = access("/dev/vhost-net", R_OK | W_OK) == 0;
    sv_check_add(check, "vhost-net", vhost ? SV_CHECK_PASS : SV_CHECK_WARN,
        vhost ? NULL : "load the kernel module vhost_net: the pods' network is slower without it",
        vhost ? "/dev/vhost-net is there" : "/dev/vhost-net is missing");
}

static void check_network(SvCheck *check)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) localhost = NULL;
    if (sv_network_probe_take(&error))
        sv_check_add(check, "traffic control", SV_CHECK_PASS, NULL, "frames can be redirected");
    else
        sv_check_add(check, "traffic control", SV_CHECK_FAIL,
            "load the kernel modules sch_ingress, cls_u32 and act_mirred: pods have no network "
            "without them",
            "%s", error->message);
    if (!check->config->forward_localhost)
        return;
    if (sv_network_probe_localhost(&localhost))
        sv_check_add(check, "localhost", SV_CHECK_PASS, NULL,
            "connections to a pod's localhost can be forwarded");
    else
        sv_check_add(check, "localhost", SV_CHECK_WARN,
            "load the kernel modules nf_tables, nft_tproxy and nft_socket, or set [network] "
            "forward_localhost to false: an engine's port forwarding needs it",
            "%s", localhost->message);
}

static gboolean has_word(const char *path, const char *word)
{
    g_autofree char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) && strstr(text, word) != NULL;
}

static void check_nested(SvCheck *check)
{
    if (!has_word("/proc/cpuinfo", " hypervisor ")) {
        sv_check_add(check, "nested", SV_CHECK_PASS, NULL, "this host is no virtual machine");
        return;
    }
    gboolean on = has_word("/proc/cpuinfo", " vmx ") || has_word("/proc/cpuinfo", " svm ");
    sv_check_add(check, "nested", on ? SV_CHECK_PASS : SV_CHECK_WARN,
        on ? NULL : "switch nested virtualisation on for this machine where it runs",
        "this host is a virtual machine%s",
        on ? " with nested virtualisation" : " without nested virtualisation");
}

static void check_space_of(SvCheck *check, const char *what, const char *path, guint64 min_mib)
{
    struct statvfs st;
    g_autofree char *folder = g_strdup(path);
    while (statvfs(folder, &st) < 0 && strlen(folder) > 1) {
        char *parent = g_path_get_dirname(folder);
        g_free(folder);
        folder = parent;
    }
    guint64 free_mib = (guint64)st.f_bavail * st.f_frsize / MIB;
    g_autofree char *advice =
        g_strdup_printf("make at least %" G_GUINT64_FORMAT " MiB free", min_mib);
    sv_check_add(check, what, free_mib >= min_mib ? SV_CHECK_PASS : SV_CHECK_WARN,
        free_mib >= min_mib ? NULL : advice, "%" G_GUINT64_FORMAT " MiB free for %s", free_mib,
        path);
}

static void check_memory(SvCheck *check)
{
    g_autofree char *text = NULL;
    guint64 kib = 0, want = check->config->memory_mib + check->config->overhead_mib;
    g_file_get_contents("/proc/meminfo", &text, NULL, NULL);
    const char *line = text ? strstr(text, "MemAvailable:") : NULL;
    if (line)
        kib = g_ascii_strtoull(line + strlen("MemAvailable:"), NULL, 10);
    gboolean ok = kib / 1024 >= want;
    sv_check_add(check, "memory", ok ? SV_CHECK_PASS : SV_CHECK_WARN,
        ok ? NULL : "set [machine] memory_mib lower, or give the host more",
        "%" G_GUINT64_FORMAT " MiB available, a pod takes %" G_GUINT64_FORMAT " MiB and more",
        kib / 1024, want);
}

static char *image_advice(const SvConfig *config, const GError *error)
{
    if (sv_error_is(error, SV_ERR_PERMISSION))
        return g_strdup("let everybody read the files and pass the folders");
    if (*config->kernel || *config->image)
        return g_strdup("put [machine] kernel and image of the configuration right");
    if (access(SV_LIBEXECDIR "/build-guest-image", X_OK) == 0)
        return g_strconcat("build it: " SV_LIBEXECDIR "/build-guest-image --agent " SV_LIBEXECDIR
                           "/sandvirt-agent --output ",
            config->image_dir, NULL);
    return g_strconcat("build it: " SV_SOURCE_ROOT "/conf/guest/build --agent " SV_BUILD_ROOT
                       "/src/agent/sandvirt-agent --output ",
        config->image_dir, NULL);
}

static void check_image(SvCheck *check)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *kernel = NULL, *image = NULL;
    if (sv_config_guest_image(check->config, &kernel, &image, &error)) {
        sv_check_add(check, "guest image", SV_CHECK_PASS, NULL, "%s and %s", kernel, image);
        return;
    }
    g_autofree char *advice = image_advice(check->config, error);
    sv_check_add(check, "guest image", SV_CHECK_FAIL, advice, "%s", error->message);
}

static void check_firmware(SvCheck *check)
{
    const char *path = check->config->firmware;
    if (!*path)
        sv_check_add(check, "firmware", SV_CHECK_PASS, NULL, "libvirt's default");
    else if (access(path, R_OK) == 0)
        sv_check_add(check, "firmware", SV_CHECK_PASS, NULL, "%s", path);
    else
        sv_check_add(check, "firmware", SV_CHECK_FAIL,
            "install it (Debian: qemu-system-data), or set [hypervisor] firmware empty", "%s: %s",
            path, g_strerror(errno));
}

static void check_launcher(SvCheck *check)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvPaths) paths = sv_paths_new(check->config, check->root, "check", FALSE, &error);
    g_auto(SvFd) fd = paths ? sv_unix_connect(paths->launcher_socket, &error) : -1;
    if (fd >= 0) {
        sv_check_add(check, "launcher", SV_CHECK_PASS, NULL, "%s", paths->launcher_socket);
        return;
    }
    const char *how = access("/run/systemd/system", F_OK) == 0
        ? "systemctl enable --now sandvirt-launcher.socket"
        : "once per boot, in the background";
    g_autofree char *advice = g_strdup_printf(
        "start sandvirt-launcher (%s): without it an engine's conmon adopts the monitors", how);
    sv_check_add(check, "launcher", SV_CHECK_WARN, advice, "%s", error->message);
}

static void check_users(SvCheck *check)
{
    const SvConfig *config = check->config;
    g_autoptr(GError) error = NULL;
    if (config->uid_first == 0)
        sv_check_add(check, "separation", SV_CHECK_WARN,
            "set [hypervisor] uid_first and uid_last to the range of sandvirt's sysusers file",
            "all machines share one user and could reach each other after an escape");
    else if (sv_uids_check(config, &error))
        sv_check_add(check, "separation", SV_CHECK_PASS, NULL,
            "each machine has a user of its own: %u to %u", config->uid_first, config->uid_last);
    else
        sv_check_add(check, "separation", SV_CHECK_FAIL,
            "run systemd-sysusers sandvirt.conf, or create these users by hand", "%s",
            error->message);
}

void sv_check_host(SvCheck *check)
{
    check_kernel(check);
    check_cgroup(check);
    check_devices(check);
    check_network(check);
    check_nested(check);
    check_memory(check);
    check_space_of(check, "space run", check->config->run_dir, RUN_MIN_MIB);
    check_space_of(check, "space images", check->config->image_dir, IMAGES_MIN_MIB);
    check_image(check);
    check_firmware(check);
    check_launcher(check);
    check_users(check);
}
