/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/boot.h"
#include "agent/cgroup.h"
#include "base/fd.h"
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const char *source, *target, *type;
    gulong flags;
    const char *data;
} Mount;

static gboolean do_mount(const Mount *m, GError **error)
{
    mkdir(m->target, 0755);
    /* The kernel may have mounted /dev itself. */
    if (mount(m->source, m->target, m->type, m->flags, m->data) < 0 && errno != EBUSY) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "mount %s", m->target);
        return FALSE;
    }
    return TRUE;
}

/* pivot_root(2) refuses the initramfs itself as the old root. */
static gboolean mount_root(GError **error)
{
    mkdir("/nr", 0755);
    if (mount("/", "/nr", NULL, MS_BIND, NULL) < 0 || chdir("/nr") < 0 ||
        mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "make the root a mount");
        return FALSE;
    }
    return TRUE;
}

gboolean sv_boot_mount_first(GError **error)
{
    static const Mount mounts[] = {
        {"proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
        {"sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
        {"devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755"},
        {"tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"},
    };

    if (!mount_root(error))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(mounts); i++)
        if (!do_mount(&mounts[i], error))
            return FALSE;
    return TRUE;
}

void sv_boot_console(void)
{
    int fd = open("/dev/console", O_RDWR | O_NOCTTY);

    if (fd < 0)
        fd = open("/dev/null", O_RDWR);
    if (fd < 0)
        return;
    for (int i = 0; i < 3; i++)
        if (fd != i)
            dup2(fd, i);
    if (fd > 2)
        close(fd);
}

gboolean sv_boot_has_word(const char *word)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) words = NULL;

    if (!g_file_get_contents("/proc/cmdline", &text, NULL, NULL))
        return FALSE;
    words = g_strsplit_set(text, " \n", -1);
    return g_strv_contains((const char *const *)words, word);
}

gboolean sv_boot_wants_debug(void)
{
    return sv_boot_has_word("sandvirt.log=debug");
}

static void loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return;
    request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
    if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        g_warning("ignoring: loopback interface: %s", g_strerror(errno));
    close(fd);
}

static void set_up_cgroups(void)
{
    const char *agent = SV_AGENT_CGROUP "/agent";
    const char *containers = SV_AGENT_CGROUP "/sandvirt";
    g_autoptr(GError) error = NULL;

    mkdir(agent, 0755);
    mkdir(containers, 0755);
    if (!sv_cgroup_write(agent, "cgroup.procs", "1", &error))
        g_warning("ignoring: %s", error->message);
    sv_cgroup_delegate(SV_AGENT_CGROUP);
    sv_cgroup_delegate(containers);
}

/* As hosts with systemd have them: rlimits of engines are made for that. threads-max follows the memory at
 * boot, which may grow; a pids limit is what bounds a container. */
static void raise_sysctls(void)
{
    static const char *const sysctls[][2] = {{"/proc/sys/fs/nr_open", "1073741816"},
        {"/proc/sys/fs/file-max", "9223372036854775807"}, {"/proc/sys/kernel/pid_max", "4194304"},
        {"/proc/sys/kernel/threads-max", "4194303"}};

    for (gsize i = 0; i < G_N_ELEMENTS(sysctls); i++) {
        g_auto(SvFd) fd = open(sysctls[i][0], O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, sysctls[i][1], strlen(sysctls[i][1])) < 0)
            g_info("ignoring: %s: %s", sysctls[i][0], g_strerror(errno));
    }
}

static void raise_limits(void)
{
    struct rlimit files = {1048576, 1048576};
    struct rlimit many = {RLIM_INFINITY, RLIM_INFINITY};

    setrlimit(RLIMIT_NOFILE, &files);
    setrlimit(RLIMIT_NPROC, &many);
    setrlimit(RLIMIT_MEMLOCK, &many);
    setrlimit(RLIMIT_CORE, &many);
    setrlimit(RLIMIT_SIGPENDING, &many);
}

void sv_boot_rest(void)
{
    static const Mount mounts[] = {
        {"cgroup2", SV_AGENT_CGROUP, "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, "nsdelegate"},
        {"devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "mode=0620,ptmxmode=0666,gid=5"},
        {"tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"},
        {"mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
        {"tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"},
    };
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
        {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"},
        {"/proc/self/fd/2", "/dev/stderr"},
        /* not before: what the kernel asks for while it starts is not there, each time a process that says so */
        {"/init", "/sbin/modprobe"}};
    static const char *const folders[] = {
        SV_AGENT_SHARE, SV_AGENT_SHM, SV_AGENT_CONTAINERS, SV_AGENT_CRUN_ROOT};

    for (gsize i = 0; i < G_N_ELEMENTS(mounts); i++) {
        g_autoptr(GError) error = NULL;

        if (!do_mount(&mounts[i], &error))
            g_warning("ignoring: %s", error->message);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(links); i++)
        if (symlink(links[i][0], links[i][1]) < 0 && errno != EEXIST)
            g_warning("ignoring: %s: %s", links[i][1], g_strerror(errno));
    for (gsize i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autoptr(GError) error = NULL;

        if (!sv_file_mkdirs(folders[i], 0755, &error))
            g_warning("ignoring: %s", error->message);
    }
    set_up_cgroups();
    loopback_up();
    raise_sysctls();
    raise_limits();
    reboot(RB_DISABLE_CAD);
}
