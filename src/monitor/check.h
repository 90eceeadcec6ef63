/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sandvirt check: is this host fit, and what to do if not. */
#pragma once

#include "conf/config.h"
#include "hypervisor/host.h"
#include <json-glib/json-glib.h>

G_BEGIN_DECLS

typedef enum { SV_CHECK_PASS, SV_CHECK_WARN, SV_CHECK_FAIL } SvCheckResult;

typedef struct {
    const SvConfig *config;
    const char *root; /* of the containers */
    gboolean quick; /* no machine is started */
    gboolean color;
    /* filled on the way */
    JsonArray *list; /* when JSON is wanted, else NULL: lines are printed as they come */
    guint counts[3];
    SvHost *host; /* nullable */
    SvAccel accel;
} SvCheck;

/* One line. @advice: what to do; NULL when it passes. */
void sv_check_add(SvCheck *check, const char *name, SvCheckResult result, const char *advice,
    const char *format, ...) G_GNUC_PRINTF(5, 6);

/* check-host.c, check-libvirt.c, check-boot.c, check-engines.c */
void sv_check_host(SvCheck *check);
void sv_check_libvirt(SvCheck *check);
void sv_check_machine(SvCheck *check);
void sv_check_boot(SvCheck *check);
void sv_check_engines(SvCheck *check);

/* Returns the exit status: 0 fit (there may be warnings), 1 something fails. */
int sv_check(const SvConfig *config, const char *root, gboolean json, gboolean quick);

G_END_DECLS
