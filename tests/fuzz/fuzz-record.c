/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records: what is taken is written, taken again, and written the same. */
#include "fuzz.h"

#include "core/record.h"
#include <string.h>

static void check_container(const char *text, gsize size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvRecord) record = sv_record_parse(text, size, &error);

    g_assert_true((record == NULL) == (error != NULL));
    if (!record)
        return;
    g_autofree char *out = sv_record_text(record);
    g_autofree char *state = sv_record_oci_state(record, "creating", 0);
    g_autoptr(SvRecord) again = sv_record_parse(out, strlen(out), &error);
    g_assert_no_error(error);
    g_assert_true(again->shim_pid == 0 || again->shim_pid > 1);
    g_autofree char *out_again = sv_record_text(again);
    /* Annotations are in no order. */
    g_assert_cmpuint(strlen(out), ==, strlen(out_again));
}

static void check_sandbox(const char *text, gsize size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvSandboxRecord) record = sv_sandbox_record_parse(text, size, &error);

    g_assert_true((record == NULL) == (error != NULL));
    if (!record)
        return;
    g_autofree char *out = sv_sandbox_record_text(record);
    g_autoptr(SvSandboxRecord) again = sv_sandbox_record_parse(out, strlen(out), &error);
    g_assert_no_error(error);
    g_autofree char *out_again = sv_sandbox_record_text(again);
    g_assert_cmpstr(out, ==, out_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = data ? (const char *)data : "";

    check_container(text, size);
    check_sandbox(text, size);
    return 0;
}
