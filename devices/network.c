/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/network.h"

SvNetwork *sv_network_copy(const SvNetwork *network)
{
    if (network == NULL)
        return NULL;
    SvNetwork *copy = g_new0(SvNetwork, 1);
    *copy = *network;
    copy->tap = g_strdup(network->tap);
    copy->mac = g_strdup(network->mac);
    return copy;
}

void sv_network_free(SvNetwork *network)
{
    if (network == NULL)
        return;
    g_free(network->tap);
    g_free(network->mac);
    g_free(network);
}
