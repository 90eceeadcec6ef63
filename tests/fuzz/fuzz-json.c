/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever the parser takes, it prints, takes again, and prints the same. */
#include "fuzz.h"

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node =
        sv_json_parse(data != NULL ? (const char *)data : "", (gssize)size, TRUE, "fuzz", &error);
    g_autoptr(JsonNode) again = NULL;
    g_autofree char *text = NULL;
    g_autofree char *text_again = NULL;

    g_assert_true((node == NULL) == (error != NULL));
    if (node == NULL)
        return 0;
    text = sv_json_text(node, TRUE);
    again = sv_json_parse(text, -1, TRUE, "again", &error);
    g_assert_no_error(error);
    text_again = sv_json_text(again, TRUE);
    g_assert_cmpstr(text, ==, text_again);
    return 0;
}
