/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors: one GError domain per layer, codes that callers branch on. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The codes are shared by every domain of sandvirt (SV_BASE_ERROR, SV_CONF_ERROR, SV_OCI_ERROR,
 * SV_RPC_ERROR, SV_HV_ERROR, SV_CORE_ERROR, SV_AGENT_ERROR): a caller branches on the code, and
 * the domain says which layer spoke. They travel in rpc Status messages: never renumber. */
typedef enum {
    SV_ERR_FAILED = 0, /* no more precise code */
    SV_ERR_NOT_FOUND = 1, /* "does not exist" */
    SV_ERR_EXISTS = 2, /* id or thing is already there */
    SV_ERR_INVALID = 3, /* bad input: request, config.json, configuration, frame */
    SV_ERR_NOT_RUNNING = 4, /* container not running / stopped */
    SV_ERR_STATE = 5, /* forbidden in this state; the message carries the state's name */
    SV_ERR_TIMEOUT = 6, /* a deadline passed */
    SV_ERR_IO = 7, /* system call failed; message has strerror */
    SV_ERR_PERMISSION = 8, /* EPERM, EACCES, or refused by policy */
    SV_ERR_BUSY = 9, /* device or lock in use */
    SV_ERR_UNSUPPORTED = 10,
    SV_ERR_CLOSED = 11, /* peer or connection is gone */
    SV_ERR_LIMIT = 12, /* a size, count or range limit */
    SV_ERR_CANCELLED = 13, /* the caller went away; rolled back */
    SV_ERR_EXEC_NOT_FOUND = 14, /* command not in the image: exit status 127 */
    SV_ERR_EXEC_DENIED = 15, /* command not executable: exit status 126 */
    SV_ERR_LAST
} SvErr;

/* Defines sv_<layer>_error_quark(), whose text is "sv-<layer>-error-quark". (G_DEFINE_QUARK takes the
 * text as a bare argument, into which clang-format puts spaces.) */
#define SV_DEFINE_ERROR_QUARK(layer)                                                               \
    GQuark sv_##layer##_error_quark(void)                                                          \
    {                                                                                              \
        return g_quark_from_static_string("sv-" #layer "-error-quark");                            \
    }

#define SV_BASE_ERROR (sv_base_error_quark())
GQuark sv_base_error_quark(void);

/* Sets @error in @domain from an errno value: "<formatted text>: <strerror>". The code is mapped
 * (ENOENT NOT_FOUND, EEXIST EXISTS, EPERM/EACCES/EROFS PERMISSION, EBUSY BUSY, ETIMEDOUT TIMEOUT,
 * EPIPE/ECONNRESET/ENOTCONN/ECONNREFUSED CLOSED, EINVAL INVALID, ENOSYS/EOPNOTSUPP UNSUPPORTED,
 * else IO). sv_error_code_from_errno is that map alone. */
SvErr sv_error_code_from_errno(int errsv);
void sv_error_set_errno(GError **error, GQuark domain, int errsv, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* TRUE when @error is non-NULL and carries @code, whatever its domain is. A domain of sandvirt is one
 * that SV_DEFINE_ERROR_QUARK has made: its text starts with "sv". */
gboolean sv_error_is(const GError *error, SvErr code);

/* Returns (transfer full): @text on one line with every byte that is not printable ASCII or valid
 * printable UTF-8 written as \xNN, at most @max_bytes long (ends in "..." when cut). For text from
 * guests, annotations, paths before it goes to a log, title, metadata or terminal. NULL gives "". */
char *sv_printable(const char *text, gsize max_bytes) G_GNUC_WARN_UNUSED_RESULT;
/* The same for @len bytes that may hold NULs. */
char *sv_printable_len(const char *text, gsize len, gsize max_bytes) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
