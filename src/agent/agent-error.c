/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/agent-error.h"

SV_DEFINE_ERROR_QUARK(agent)
