/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who a process is: pid, start time, boot id. No signal is ever sent to a pid <= 1. */
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

/* Returns (transfer full): /proc/sys/kernel/random/boot_id without newline; "" when unreadable. */
char *sv_process_boot_id(void) G_GNUC_WARN_UNUSED_RESULT;
/* Field 22 of /proc/PID/stat, clock ticks after boot. FALSE when there is none (or pid <= 0). */
gboolean sv_process_start_time(pid_t pid, guint64 *ticks);
/* TRUE when @pid > 1 lives, is no zombie, has that start time, and @boot_id is this boot's
 * (@boot_id NULL: not checked). */
gboolean sv_process_is(pid_t pid, guint64 start_ticks, const char *boot_id);
/* TRUE when @pid lives and SIGSTOP or the like has stopped it. */
gboolean sv_process_is_stopped(pid_t pid);
/* pidfd of that very process: opened, then the start time is checked. -1 when it is gone. */
int sv_process_open(pid_t pid, guint64 start_ticks);
/* pidfd_send_signal. TRUE on success; ESRCH counts as FALSE with errno. */
gboolean sv_process_signal(int pidfd, int signo);
/* The pid behind @pidfd in our pid namespace; 0 when @pidfd is -1, its process gone. */
pid_t sv_process_pid(int pidfd);
/* Content of /proc/PID/cmdline with NULs as spaces, at most 64 KiB (transfer full), NULL if gone. */
char *sv_process_cmdline(pid_t pid);
/* Inode number of /proc/PID/ns/NAME (pid 0: self); 0 when unreadable. */
guint64 sv_process_ns_inode(pid_t pid, const char *name);

G_END_DECLS
