/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits that belong together. What an update does not name is as it was, but the guest's runtime writes both of
 * a pair at once, and its own default for the one that it was not given. */
#pragma once

#include "base/json.h"
#include "core/record.h"
#include "sandvirt.pb-c.h"

G_BEGIN_DECLS

/* Remembers in @record what linux.resources (@resources, nullable, its types checked) says of the CPU. */
void sv_limits_note(SvRecord *record, JsonObject *resources);
/* Fills in an update's linux.resources: the quota or the period that it leaves out, the memory limit that one of swap
 * is counted from, no limit of swap where memory has none any more. */
void sv_limits_complete(const SvRecord *record, JsonObject *resources);

/* Files of the cgroup that are to be written before all others, because the kernel takes the others only then: a cgroup
 * that is idle has no weight, a burst is never above the quota. */
typedef struct {
    Sandvirt__V1__KeyValue values[2];
    Sandvirt__V1__KeyValue *list[2];
    char numbers[2][24];
    gsize n;
} SvLimitsFirst;
void sv_limits_first(JsonObject *resources, SvLimitsFirst *first);

G_END_DECLS
