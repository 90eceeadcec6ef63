/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* crun's words to an error that the host and the engines understand. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* @program: what it was to run (NULL or empty: nothing, or not known); @text: crun's log; @status: its exit
 * status. Always gives an error. */
GError *sv_crun_error(const char *verb, const char *program, const char *text, int status)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
