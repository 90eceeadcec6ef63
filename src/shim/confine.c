/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/confine.h"
#include "base/confine.h"
#include <linux/capability.h>
#include <sys/syscall.h>

/* A container's root may be closed to everybody but a user of the container. */
#define KEPT SV_CAP(CAP_DAC_READ_SEARCH)
#define FOR_THE_ROOT (KEPT | SV_CAP(CAP_SYS_ADMIN) | SV_CAP(CAP_DAC_OVERRIDE))

static const int never[] = {
#ifdef SYS_fork
    SYS_fork, SYS_vfork, SYS_iopl, SYS_ioperm,
#endif
    SYS_execve, SYS_execveat, SYS_clone, SYS_clone3, SYS_ptrace, SYS_process_vm_readv,
    SYS_process_vm_writev, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load,
    SYS_bpf, SYS_perf_event_open, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_unshare, SYS_setns,
    SYS_open_by_handle_at, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl,
    SYS_userfaultfd, SYS_chroot, SYS_mknodat, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex,
    SYS_syslog, SYS_fanotify_init, SYS_io_uring_setup, SYS_sethostname};

static const int mounts[] = {SYS_mount, SYS_umount2, SYS_pivot_root, SYS_open_tree, SYS_move_mount,
    SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr};

gboolean sv_shim_confine(GError **error)
{
    return sv_confine_capabilities(FOR_THE_ROOT, TRUE, error) &&
        sv_confine_syscalls(never, G_N_ELEMENTS(never), error);
}

gboolean sv_shim_confine_mounts(GError **error)
{
    return sv_confine_capabilities(KEPT, FALSE, error) &&
        sv_confine_syscalls(mounts, G_N_ELEMENTS(mounts), error);
}
