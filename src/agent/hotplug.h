/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPUs and memory that come later are put to use: the kernel leaves that to user space. */
#pragma once

#include "agent/service.h"

G_BEGIN_DECLS

void sv_hotplug_watch(SvAgent *agent); /* before the module of plugged memory is loaded */
void sv_hotplug_online(SvCall *call); /* method Online */

G_END_DECLS
