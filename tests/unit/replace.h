/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every node of a JSON text, one after the other, replaced by values of every type: whatever reads such
 * a text must answer with an error or a result, never with a crash or a critical warning. */
#pragma once

#include "base/json.h"
#include <string.h>

static inline JsonNode *replace_copy(JsonNode *node, guint *left, const char *with)
{
    JsonNode *copy = NULL;

    /* G_MAXUINT: done. */
    if (*left != G_MAXUINT && (*left)-- == 0)
        return sv_json_parse(with, -1, TRUE, "replacement", NULL);
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        JsonObject *object = json_object_new();
        JsonObjectIter iter;
        const char *name = NULL;
        JsonNode *member = NULL;

        json_object_iter_init_ordered(&iter, json_node_get_object(node));
        while (json_object_iter_next_ordered(&iter, &name, &member))
            json_object_set_member(object, name, replace_copy(member, left, with));
        copy = json_node_new(JSON_NODE_OBJECT);
        json_node_take_object(copy, object);
    } else if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *from = json_node_get_array(node);
        JsonArray *array = json_array_new();

        for (guint i = 0; i < json_array_get_length(from); i++)
            json_array_add_element(
                array, replace_copy(json_array_get_element(from, i), left, with));
        copy = json_node_new(JSON_NODE_ARRAY);
        json_node_take_array(copy, array);
    } else {
        copy = json_node_copy(node);
    }
    return copy;
}

/* Calls @func with each variant; returns their number. */
static inline guint replace_every_node(JsonNode *node, void (*func)(const char *text, gsize len))
{
    static const char *const values[] = {"null", "true", "0", "-1", "1.5", "9223372036854775807",
        "1e300", "\"\"", "\"x\"", "\"/\"", "[]", "[null]", "[[]]", "[{}]", "[\"x\"]", "{}",
        "{\"x\":{}}"};
    guint n = 0;

    for (guint index = 0;; index++)
        for (gsize v = 0; v < G_N_ELEMENTS(values); v++) {
            guint left = index;
            g_autoptr(JsonNode) variant = replace_copy(node, &left, values[v]);
            g_autofree char *text = sv_json_text(variant, FALSE);

            /* Fewer nodes than that. */
            if (left != G_MAXUINT)
                return n;
            func(text, strlen(text));
            n++;
        }
}
