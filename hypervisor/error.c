/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/error.h"

#include <libvirt/virterror.h>

#define MAX_TEXT 1000

static const struct {
    int number;
    SvErr code;
} table[] = {
    {VIR_ERR_NO_DOMAIN, SV_ERR_NOT_FOUND},
    {VIR_ERR_NO_DOMAIN_METADATA, SV_ERR_NOT_FOUND},
    {VIR_ERR_DEVICE_MISSING, SV_ERR_NOT_FOUND},
    {VIR_ERR_DOM_EXIST, SV_ERR_EXISTS},
    {VIR_ERR_INVALID_ARG, SV_ERR_INVALID},
    {VIR_ERR_INVALID_DOMAIN, SV_ERR_INVALID},
    {VIR_ERR_XML_ERROR, SV_ERR_INVALID},
    {VIR_ERR_XML_DETAIL, SV_ERR_INVALID},
    {VIR_ERR_XML_INVALID_SCHEMA, SV_ERR_INVALID},
    {VIR_ERR_OPERATION_INVALID, SV_ERR_STATE},
    {VIR_ERR_OPERATION_TIMEOUT, SV_ERR_TIMEOUT},
    {VIR_ERR_SYSTEM_ERROR, SV_ERR_IO},
    {VIR_ERR_OPERATION_DENIED, SV_ERR_PERMISSION},
    {VIR_ERR_AUTH_FAILED, SV_ERR_PERMISSION},
    {VIR_ERR_AUTH_CANCELLED, SV_ERR_PERMISSION},
    {VIR_ERR_AUTH_UNAVAILABLE, SV_ERR_PERMISSION},
    {VIR_ERR_ACCESS_DENIED, SV_ERR_PERMISSION},
    {VIR_ERR_RESOURCE_BUSY, SV_ERR_BUSY},
    {VIR_ERR_NO_SUPPORT, SV_ERR_UNSUPPORTED},
    {VIR_ERR_CONFIG_UNSUPPORTED, SV_ERR_UNSUPPORTED},
    {VIR_ERR_ARGUMENT_UNSUPPORTED, SV_ERR_UNSUPPORTED},
    {VIR_ERR_OPERATION_UNSUPPORTED, SV_ERR_UNSUPPORTED},
    {VIR_ERR_NO_CONNECT, SV_ERR_CLOSED},
    {VIR_ERR_INVALID_CONN, SV_ERR_CLOSED},
    {VIR_ERR_RPC, SV_ERR_CLOSED},
    {VIR_ERR_NO_MEMORY, SV_ERR_LIMIT},
};

SvErr sv_hv_error_code(int code, int domain)
{
    /* whatever the number: the socket to the daemon broke ("End of file while reading data") */
    if (domain == VIR_FROM_RPC)
        return SV_ERR_CLOSED;
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        if (table[i].number == code)
            return table[i].code;
    }
    return SV_ERR_FAILED;
}

int sv_hv_last_code(void)
{
    return virGetLastErrorCode();
}

void sv_hv_set_libvirt_error(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);

    virErrorPtr last = virGetLastError();
    int code = last != NULL ? last->code : VIR_ERR_INTERNAL_ERROR;
    int domain = last != NULL ? (int)last->domain : VIR_FROM_NONE;
    /* some have lines */
    g_autofree char *raw =
        g_strdup(last != NULL && last->message != NULL ? last->message : "unknown error");
    g_strdelimit(g_strchomp(raw), "\n", ' ');
    g_autofree char *text = sv_printable(raw, MAX_TEXT);
    g_set_error(error, SV_HV_ERROR, (int)sv_hv_error_code(code, domain),
        "%s: %s (libvirt error %d)", what, text, code);
}
