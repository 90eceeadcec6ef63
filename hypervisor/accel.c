/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/accel.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/kvm.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "hypervisor/libvirt-priv.h"
#include "hypervisor/xml.h"

#define KVM_DEVICE "/dev/kvm"
#define KVM_GROUP "kvm"
#define MEMORY_MIB 160
#define MAX_CACHE 4096
#define MAX_LOG 65536
/* what the guest says when there is no image to go on with */
#define LAST_WORDS "Kernel panic"

/* What needs no trial: (transfer full) why KVM cannot work, NULL when it might. */
static char *look_at_device(void)
{
    g_auto(SvFd) fd = open(KVM_DEVICE, O_RDWR | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return g_strdup_printf("%s: %s", KVM_DEVICE, g_strerror(errno));
    int version = ioctl(fd, KVM_GET_API_VERSION, 0);
    if (version != KVM_API_VERSION)
        return g_strdup_printf("%s has API version %d", KVM_DEVICE, version);
    struct group entry, *group = NULL;
    char buffer[4096];
    gboolean others = (st.st_mode & 0006) == 0006;
    gboolean by_group = (st.st_mode & 0060) == 0060 &&
        getgrnam_r(KVM_GROUP, &entry, buffer, sizeof buffer, &group) == 0 && group != NULL &&
        group->gr_gid == st.st_gid;
    if (!others && !by_group)
        return g_strdup_printf("QEMU's user cannot open %s (mode %03o; it should be 660 with group "
                               "%s, which also saves libvirt a minute per start)",
            KVM_DEVICE, st.st_mode & 0777, KVM_GROUP);
    return NULL;
}

/* cache: "<boot id> <kvm|tcg> <reason>" */

static gboolean read_cache(const char *path, SvAccel *accel, char **reason)
{
    g_autofree char *text = NULL;
    gsize len = 0;
    if (!sv_file_read(path, MAX_CACHE, &text, &len, NULL))
        return FALSE;
    g_auto(GStrv) words = g_strsplit(g_strstrip(text), " ", 3);
    g_autofree char *boot_id = sv_process_boot_id();
    if (g_strv_length(words) < 2 || *boot_id == '\0' || strcmp(words[0], boot_id) != 0)
        return FALSE;
    gboolean kvm = strcmp(words[1], "kvm") == 0;
    if (!kvm && strcmp(words[1], "tcg") != 0)
        return FALSE;
    *accel = kvm ? SV_ACCEL_KVM : SV_ACCEL_TCG;
    *reason = kvm ? NULL : sv_printable(words[2], 1000);
    return TRUE;
}

static void write_cache(const char *path, SvAccel accel, const char *reason)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *boot_id = sv_process_boot_id();
    g_autofree char *text = g_strdup_printf(
        "%s %s %s\n", boot_id, accel == SV_ACCEL_KVM ? "kvm" : "tcg", reason != NULL ? reason : "");
    if (!sv_file_write_atomic(path, text, strlen(text), 0600, FALSE, &error))
        g_warning("ignoring: %s", error->message);
}

/* the trial */

static SvMachine *make_machine(const SvConfig *config, const char *folder, GError **error)
{
    g_autoptr(SvMachine) machine = sv_machine_new();
    if (!sv_config_guest_image(config, &machine->kernel, &machine->initrd, error))
        return NULL;
    g_clear_pointer(&machine->initrd, g_free);
    machine->name = g_strdup_printf("sandvirt-accel-probe-%d", (int)getpid());
    machine->uuid = g_uuid_string_random();
    machine->title = g_strdup("sandvirt: does KVM run a guest?");
    machine->accel = SV_ACCEL_KVM;
    machine->memory_mib = MEMORY_MIB;
    machine->cmdline = g_strdup("panic=-1 reboot=t quiet console=ttyS0");
    machine->firmware = g_strdup(config->firmware);
    machine->skip_cpu_probe = config->skip_cpu_probe;
    machine->root_ports = 1;
    machine->agent_socket = g_build_filename(folder, "agent", NULL);
    machine->console_log = g_build_filename(folder, "console.log", NULL);
    return g_steal_pointer(&machine);
}

/* TRUE: QEMU ended in time. Its end of the socket tells; there is no agent to write to it. */
static gboolean wait_end(const char *socket_path, guint deadline_ms)
{
    gint64 limit = g_get_monotonic_time() + (gint64)deadline_ms * 1000;
    g_auto(SvFd) fd = sv_unix_connect(socket_path, NULL);
    return fd >= 0 && sv_fd_wait(fd, POLLIN, limit) > 0;
}

/* FALSE: could not be tried. @reason stays NULL when KVM works. */
static gboolean try_kvm(const SvConfig *config, const char *folder, char **reason, GError **error)
{
    g_autoptr(SvMachine) machine = make_machine(config, folder, error);
    if (machine == NULL)
        return FALSE;
    g_autoptr(AutoConnect) conn = sv_libvirt_open(config->uri, error);
    if (conn == NULL)
        return FALSE;
    g_autofree char *xml = sv_xml_domain(machine);
    g_autoptr(AutoDomain) dom =
        virDomainCreateXML(conn, xml, VIR_DOMAIN_START_AUTODESTROY | VIR_DOMAIN_START_VALIDATE);
    if (dom == NULL) {
        g_autoptr(GError) local = NULL;
        sv_hv_set_libvirt_error(&local, "libvirt starts no machine with KVM");
        if (sv_error_is(local, SV_ERR_CLOSED)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return FALSE;
        }
        *reason = g_strdup(local->message);
        return TRUE;
    }
    gboolean ended = wait_end(machine->agent_socket, config->accel_probe_ms);
    virDomainDestroy(dom);
    g_autofree char *log = sv_file_tail(machine->console_log, MAX_LOG);
    if (ended && strstr(log, LAST_WORDS) != NULL)
        return TRUE;
    if (ended)
        *reason = g_strdup_printf("a machine with KVM ended without a word: %s", log);
    else
        *reason = g_strdup_printf("%s opens, but no guest kernel came up with it within %u ms",
            KVM_DEVICE, config->accel_probe_ms);
    return TRUE;
}

/* Only one process at a time tries; the others wait for its answer. */
static int lock_probe(const char *path, GError **error)
{
    g_auto(SvFd) fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int result = -1;
    while (fd >= 0 && (result = flock(fd, LOCK_EX)) < 0 && errno == EINTR)
        ;
    if (result < 0) {
        sv_error_set_errno(error, SV_HV_ERROR, errno, "lock %s", path);
        return -1;
    }
    return sv_fd_steal(&fd);
}

static gboolean try_and_remember(const SvConfig *config, gboolean fresh, const char *cache,
    SvAccel *accel, char **reason, GError **error)
{
    g_autofree char *lock_path = g_strconcat(cache, ".lock", NULL);
    g_autofree char *folder = g_strconcat(cache, ".probe", NULL);
    if (!sv_file_mkdirs(config->run_dir, 0700, error))
        return FALSE;
    g_auto(SvFd) lock = lock_probe(lock_path, error);
    if (lock < 0)
        return FALSE;
    if (!fresh && read_cache(cache, accel, reason))
        return TRUE;

    if (!sv_file_remove_tree(folder, error) || !sv_file_mkdirs(folder, 0700, error))
        return FALSE;
    gboolean ok = try_kvm(config, folder, reason, error);
    if (!sv_file_remove_tree(folder, NULL))
        g_debug("ignoring: %s stays", folder);
    if (!ok) {
        g_prefix_error(error, "try KVM: ");
        return FALSE;
    }
    *accel = *reason == NULL ? SV_ACCEL_KVM : SV_ACCEL_TCG;
    if (*reason != NULL)
        g_warning("machines are emulated, which is slow: %s", *reason);
    write_cache(cache, *accel, *reason);
    return TRUE;
}

gboolean sv_accel_find(
    const SvConfig *config, gboolean fresh, SvAccel *accel, char **reason, GError **error)
{
    *reason = NULL;
    if (config->accel != SV_ACCEL_MODE_AUTO && !(fresh && config->accel == SV_ACCEL_MODE_KVM)) {
        *accel = config->accel == SV_ACCEL_MODE_KVM ? SV_ACCEL_KVM : SV_ACCEL_TCG;
        return TRUE;
    }
    *accel = SV_ACCEL_TCG;
    g_autofree char *cache = g_build_filename(config->run_dir, ".accel", NULL);
    *reason = look_at_device();
    if (*reason != NULL)
        return TRUE;
    if (!fresh && read_cache(cache, accel, reason))
        return TRUE;
    sv_libvirt_init();
    return try_and_remember(config, fresh, cache, accel, reason, error);
}

/* asynchronous */

typedef struct {
    const SvConfig *config;
    SvWorker *worker; /* of this question alone */
    SvAccel accel;
    char *reason;
    SvAccelDone done;
    gpointer user_data;
} Question;

static gboolean question_run(SvJob *job, gpointer data, GError **error)
{
    Question *question = data;
    return sv_accel_find(question->config, FALSE, &question->accel, &question->reason, error);
}

static void question_done(gpointer data, const GError *error)
{
    Question *question = data;
    SvWorker *worker = g_steal_pointer(&question->worker);
    question->done(error == NULL ? question->accel : SV_ACCEL_TCG,
        error == NULL ? question->reason : NULL, error, question->user_data);
    sv_worker_free(worker);
}

static void question_free(gpointer data)
{
    Question *question = data;
    sv_config_unref(question->config);
    g_free(question->reason);
    g_free(question);
}

void sv_accel_resolve(const SvConfig *config, SvAccelDone done, gpointer user_data)
{
    sv_libvirt_init();
    Question *question = g_new0(Question, 1);
    question->config = sv_config_ref(config);
    question->worker = sv_worker_new();
    question->done = done;
    question->user_data = user_data;
    /* twice: another process may be trying already */
    guint deadline_ms = config->connect_ms + config->call_ms + 2 * config->accel_probe_ms;
    SvJobSpec spec = {.what = "find the acceleration",
        .lane = SV_LANE_QUERY,
        .deadline_ms = deadline_ms,
        .func = question_run,
        .done = question_done,
        .free = question_free};
    sv_job_start(sv_job_new(question->worker, &spec, question));
}
