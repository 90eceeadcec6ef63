/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/json.h"

#include <math.h>
#include <string.h>

typedef struct {
    GString *out;
    gboolean pretty;
    guint depth;
} Printer;

static void print_node(Printer *pr, JsonNode *node);

static void new_line(Printer *pr)
{
    if (!pr->pretty)
        return;
    g_string_append_c(pr->out, '\n');
    for (guint i = 0; i < pr->depth; i++)
        g_string_append(pr->out, "  ");
}

static void print_string(Printer *pr, const char *text)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";

    if (text == NULL) {
        g_string_append(pr->out, "null");
        return;
    }
    g_string_append_c(pr->out, '"');
    for (const char *p = text; *p != '\0'; p++) {
        const char *found = strchr(from, *p);

        if (found != NULL) {
            g_string_append_c(pr->out, '\\');
            g_string_append_c(pr->out, to[found - from]);
        } else if ((guchar)*p < 0x20 || *p == 0x7f) {
            g_string_append_printf(pr->out, "\\u%04x", (guchar)*p);
        } else {
            g_string_append_c(pr->out, *p);
        }
    }
    g_string_append_c(pr->out, '"');
}

static void print_double(Printer *pr, double d)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    if (!isfinite(d)) { /* the parser makes none; JSON has none */
        g_string_append(pr->out, "null");
        return;
    }
    if (d >= 0x1p63 && d <= 0x1p64) { /* an unsigned integer, see json.h */
        guint64 n = d < 0x1p64 ? (guint64)d : G_MAXUINT64;

        g_string_append_printf(pr->out, "%" G_GUINT64_FORMAT, n);
        return;
    }
    g_ascii_formatd(text, sizeof(text), "%.15g", d);
    if (g_ascii_strtod(text, NULL) != d)
        g_ascii_formatd(text, sizeof(text), "%.17g", d);
    g_string_append(pr->out, text);
    if (strpbrk(text, ".e") == NULL)
        g_string_append(pr->out, ".0");
}

static void print_value(Printer *pr, JsonNode *node)
{
    switch (json_node_get_value_type(node)) {
    case G_TYPE_INT64:
        g_string_append_printf(pr->out, "%" G_GINT64_FORMAT, json_node_get_int(node));
        break;
    case G_TYPE_DOUBLE:
        print_double(pr, json_node_get_double(node));
        break;
    case G_TYPE_BOOLEAN:
        g_string_append(pr->out, json_node_get_boolean(node) ? "true" : "false");
        break;
    case G_TYPE_STRING:
        print_string(pr, json_node_get_string(node));
        break;
    default:
        g_string_append(pr->out, "null");
        break;
    }
}

static void print_array(Printer *pr, JsonArray *array)
{
    guint n = json_array_get_length(array);

    g_string_append_c(pr->out, '[');
    pr->depth++;
    for (guint i = 0; i < n; i++) {
        if (i > 0)
            g_string_append_c(pr->out, ',');
        new_line(pr);
        print_node(pr, json_array_get_element(array, i));
    }
    pr->depth--;
    if (n > 0)
        new_line(pr);
    g_string_append_c(pr->out, ']');
}

static void print_object(Printer *pr, JsonObject *object)
{
    JsonObjectIter iter;
    const char *name;
    JsonNode *node;
    gboolean first = TRUE;

    g_string_append_c(pr->out, '{');
    pr->depth++;
    json_object_iter_init_ordered(&iter, object);
    while (json_object_iter_next_ordered(&iter, &name, &node)) {
        if (!first)
            g_string_append_c(pr->out, ',');
        first = FALSE;
        new_line(pr);
        print_string(pr, name);
        g_string_append(pr->out, pr->pretty ? ": " : ":");
        print_node(pr, node);
    }
    pr->depth--;
    if (!first)
        new_line(pr);
    g_string_append_c(pr->out, '}');
}

static void print_node(Printer *pr, JsonNode *node)
{
    switch (json_node_get_node_type(node)) {
    case JSON_NODE_OBJECT:
        print_object(pr, json_node_get_object(node));
        break;
    case JSON_NODE_ARRAY:
        print_array(pr, json_node_get_array(node));
        break;
    case JSON_NODE_VALUE:
        print_value(pr, node);
        break;
    case JSON_NODE_NULL:
    default:
        g_string_append(pr->out, "null");
        break;
    }
}

char *sv_json_text(JsonNode *node, gboolean pretty)
{
    Printer pr = {.out = g_string_new(NULL), .pretty = pretty};

    print_node(&pr, node);
    return g_string_free(pr.out, FALSE);
}
