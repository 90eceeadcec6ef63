/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/agent-error.h"

/* not G_DEFINE_QUARK: clang-format would put spaces into its first argument, which is the name */
GQuark sv_agent_error_quark(void)
{
    return g_quark_from_static_string("sv-agent-error-quark");
}
