/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests in network namespaces of their own. */
#pragma once

#include "base/command.h"
#include "base/fd.h"
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#define IP "/sbin/ip"

/* A new namespace for this thread. FALSE: not allowed here, the test is skipped. */
static inline gboolean enter_new(void)
{
    if (g_file_test(IP, G_FILE_TEST_IS_EXECUTABLE) && unshare(CLONE_NEWNET) == 0)
        return TRUE;
    g_test_skip("needs root and ip");
    return FALSE;
}

static inline int keep_current(void)
{
    int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    return fd;
}

static inline void enter(int fd)
{
    g_assert_cmpint(setns(fd, CLONE_NEWNET), ==, 0);
}

/* Lines for ip(8), in the thread's namespace. */
static inline void ip_family(const char *family, const char *commands)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvCommand) cmd = sv_command_new(IP);
    g_autofree char *text = NULL;
    int status = -1;

    sv_command_add_args(cmd, family, "-batch", "-", NULL);
    if (!sv_command_run(
            cmd, commands, strlen(commands), 10000, 65536, NULL, &text, &status, &error))
        g_error("%s", error->message);
    if (status != 0)
        g_error("ip: %s", text);
}

static inline void ip(const char *commands)
{
    ip_family("-s", commands);
}
