/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SvDevice: something that is hotplugged. */
#include <config.h>

#include "devices/machine.h"

static SvDevice *device_new(SvDeviceType type, const char *alias)
{
    SvDevice *device = g_new0(SvDevice, 1);
    device->type = type;
    device->alias = g_strdup(alias);
    return device;
}

SvDevice *sv_device_new_block(const char *alias, SvBlock *block)
{
    SvDevice *device = device_new(SV_DEVICE_BLOCK, alias);
    device->u.block = block;
    return device;
}

SvDevice *sv_device_new_network(const char *alias, SvNetwork *network)
{
    SvDevice *device = device_new(SV_DEVICE_NETWORK, alias);
    device->u.network = network;
    return device;
}

SvDevice *sv_device_copy(const SvDevice *device)
{
    if (device == NULL)
        return NULL;
    if (device->type == SV_DEVICE_BLOCK)
        return sv_device_new_block(device->alias, sv_block_copy(device->u.block));
    return sv_device_new_network(device->alias, sv_network_copy(device->u.network));
}

void sv_device_free(SvDevice *device)
{
    if (device == NULL)
        return;
    if (device->type == SV_DEVICE_BLOCK)
        sv_block_free(device->u.block);
    else
        sv_network_free(device->u.network);
    g_free(device->alias);
    g_free(device);
}
