/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* process.json of exec, and the resources of update: both come from the engine's caller. */
#include "fuzz.h"

#include "core/guestspec.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = data ? (const char *)data : "";
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) resources_error = NULL;
    g_autoptr(JsonNode) process = sv_process_parse(text, size, &error);
    g_autoptr(JsonNode) any = NULL;

    g_assert_true((process == NULL) == (error != NULL));
    if (process) {
        g_autofree char *guest = sv_guest_process(process, &error);

        g_assert_no_error(error);
        g_autoptr(JsonNode) again = sv_process_parse(guest, strlen(guest), &error);
        g_assert_no_error(error);
    }
    any = sv_json_parse(text, size, TRUE, "resources", NULL);
    if (any) {
        g_autofree char *guest = sv_guest_resources(any, 2, NULL, NULL, &resources_error);

        g_assert_true((guest == NULL) == (resources_error != NULL));
    }
    return 0;
}
