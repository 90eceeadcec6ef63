/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one place where a libvirt error becomes a GError. */
#pragma once

#include "core/hypervisor.h"

G_BEGIN_DECLS

/* Sets @error from this thread's last libvirt error: "<formatted text>: <libvirt's text> (libvirt
 * error N)", with the code mapped to SvErr. Text of libvirt is made printable. */
void sv_hv_set_libvirt_error(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The mapping alone: @code of virErrorNumber, @domain of virErrorDomain. */
SvErr sv_hv_error_code(int code, int domain);
/* Code of this thread's last libvirt error (virErrorNumber). */
int sv_hv_last_code(void);

G_END_DECLS
