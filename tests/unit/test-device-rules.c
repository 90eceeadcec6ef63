/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/device-rules.h"

#include <string.h>

#define R SV_ACCESS_READ
#define W SV_ACCESS_WRITE
#define M SV_ACCESS_MKNOD

static const struct {
    const char *rules;
    guint access; /* to b 7:3 */
    gboolean all;
} cases[] = {
    {"[]", 0, FALSE},
    {"[{'allow':false,'access':'rwm'}]", 0, FALSE},
    {"[{'allow':true,'access':'rwm'}]", R | W | M, TRUE},
    {"[{'allow':true}]", R | W | M, TRUE},
    {"[{'allow':true,'type':'a','access':'rw'}]", R | W, TRUE},
    {"[{'allow':true,'type':'b','major':-1,'minor':-1,'access':'w'}]", W, TRUE},
    {"[{'allow':true,'type':'c','access':'rwm'}]", 0, FALSE},
    {"[{'allow':false,'access':'rwm'},{'allow':true,'type':'b','major':7,'minor':3,'access':'rm'}]",
        R | M, FALSE},
    {"[{'allow':true,'type':'b','major':7,'access':'rw'},"
     "{'allow':false,'type':'b','major':7,'minor':3,'access':'w'}]",
        R, FALSE},
    {"[{'allow':true,'type':'b','major':7,'minor':4,'access':'rwm'}]", 0, FALSE},
    {"[{'allow':true,'access':'rwm'},{'allow':false,'type':'b','access':'w'}]", R | M, FALSE},
};

static void test_rules(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdelimit(g_strdup(cases[i].rules), "'", '"');
        g_autoptr(JsonNode) node = sv_json_parse(text, -1, TRUE, "rules", NULL);
        JsonArray *rules = json_node_get_array(node);
        g_assert_cmpuint(sv_device_rules_access(rules, 7, 3), ==, cases[i].access);
        g_assert_cmpint(sv_device_rules_allow_all(rules), ==, cases[i].all);
    }
    g_assert_cmpuint(sv_device_rules_access(NULL, 7, 3), ==, 0);
    g_assert_false(sv_device_rules_allow_all(NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/device-rules/rules", test_rules);
    return g_test_run();
}
