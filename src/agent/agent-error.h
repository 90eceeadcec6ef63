/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

#define SV_AGENT_ERROR (sv_agent_error_quark())
GQuark sv_agent_error_quark(void);

G_END_DECLS
