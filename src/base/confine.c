/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/confine.h"
#include "base/error.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITIES 64
#define X32_BIT 0x40000000u
#define MAX_DENIED 200 /* jumps are bytes */

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "which AUDIT_ARCH is this?"
#endif

static gboolean fail(GError **error, const char *what)
{
    sv_error_set_errno(error, SV_BASE_ERROR, errno, "%s", what);
    return FALSE;
}

/* The bounding set can only be lowered while CAP_SETPCAP is there. */
static gboolean lower_bounds(guint64 keep, GError **error)
{
    for (int i = 0; i < CAPABILITIES; i++) {
        if (keep & SV_CAP(i))
            continue;
        if (prctl(PR_CAPBSET_READ, i, 0, 0, 0) < 0)
            break; /* the kernel knows no more */
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno != EPERM)
            return fail(error, "lower the bounding set");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail(error, "set no_new_privs");
    return TRUE;
}

gboolean sv_confine_capabilities(guint64 keep, gboolean forever, GError **error)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (forever && !lower_bounds(keep, error))
        return FALSE;
    if (syscall(SYS_capget, &header, data) < 0)
        return fail(error, "read the capabilities");
    for (guint i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        data[i].permitted &= (guint32)(keep >> (32 * i));
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    if (syscall(SYS_capset, &header, data) < 0)
        return fail(error, "drop capabilities");
    return TRUE;
}

gboolean sv_confine_syscalls(const int *denied, guint n, GError **error)
{
    struct sock_filter code[MAX_DENIED + 8];
    guint len = 0;

    g_return_val_if_fail(n <= MAX_DENIED, FALSE);
#ifdef __SANITIZE_ADDRESS__
    return TRUE; /* the leak checker clones and traces when the program ends */
#endif
    code[len++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, (guint32)offsetof(struct seccomp_data, arch));
    code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[len++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, (guint32)offsetof(struct seccomp_data, nr));
    code[len++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, (guint8)(n + 1), 0);
    for (guint i = 0; i < n; i++)
        code[len++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (guint32)denied[i], (guint8)(n - i), 0);
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {(unsigned short)len, code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return fail(error, "filter system calls");
    return TRUE;
}
