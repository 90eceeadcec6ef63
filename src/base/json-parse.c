/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A strict parser (RFC 8259) that builds json-glib nodes. */
#include <config.h>

#include "base/json.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <string.h>

typedef struct {
    const char *start, *p, *end; /* valid UTF-8 without NUL */
    const char *what;
    guint depth;
    GError **error;
} Parser;

static JsonNode *parse_value(Parser *ps);

static JsonNode *fail(Parser *ps, const char *message)
{
    guint line = 1;
    guint column = 1;

    for (const char *q = ps->start; q < ps->p; q++) {
        column++;
        if (*q == '\n') {
            line++;
            column = 1;
        }
    }
    g_set_error(ps->error, SV_BASE_ERROR, SV_ERR_INVALID, "%s: line %u, column %u: %s", ps->what,
        line, column, message);
    return NULL;
}

static void skip_space(Parser *ps)
{
    while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\t' || *ps->p == '\n' || *ps->p == '\r'))
        ps->p++;
}

/* Skips white space, then takes @c when it is next. */
static gboolean take(Parser *ps, char c)
{
    skip_space(ps);
    if (ps->p >= ps->end || *ps->p != c)
        return FALSE;
    ps->p++;
    return TRUE;
}

static gboolean take_word(Parser *ps, const char *word)
{
    gsize len = strlen(word);

    if ((gsize)(ps->end - ps->p) < len || memcmp(ps->p, word, len) != 0)
        return FALSE;
    ps->p += len;
    return TRUE;
}

/* Four hexadecimal digits, or -1. */
static int take_hex4(Parser *ps)
{
    int value = 0;

    if (ps->end - ps->p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = g_ascii_xdigit_value(ps->p[i]);

        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    ps->p += 4;
    return value;
}

/* What follows "\u". 0 when it is not a character (NUL is none here). */
static gunichar take_unicode(Parser *ps)
{
    int high = take_hex4(ps);
    int low;

    if (high <= 0)
        return 0;
    if (high < 0xd800 || high > 0xdfff)
        return (gunichar)high;
    if (high > 0xdbff || !take_word(ps, "\\u"))
        return 0;
    low = take_hex4(ps);
    if (low < 0xdc00 || low > 0xdfff)
        return 0;
    return 0x10000 + ((gunichar)(high - 0xd800) << 10) + (gunichar)(low - 0xdc00);
}

/* What follows a backslash. */
static gboolean take_escape(Parser *ps, GString *out)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *found;
    gunichar c;

    if (ps->p >= ps->end)
        return FALSE;
    if (*ps->p != 'u') {
        found = strchr(from, *ps->p);
        if (found == NULL)
            return FALSE;
        g_string_append_c(out, to[found - from]);
        ps->p++;
        return TRUE;
    }
    ps->p++;
    c = take_unicode(ps);
    if (c == 0)
        return FALSE;
    g_string_append_unichar(out, c);
    return TRUE;
}

/* What follows the opening quote. (transfer full) */
static char *parse_string(Parser *ps)
{
    g_autoptr(GString) out = g_string_new(NULL);

    while (ps->p < ps->end) {
        char c = *ps->p;

        if (c == '"') {
            ps->p++;
            return g_string_free(g_steal_pointer(&out), FALSE);
        }
        if ((guchar)c < 0x20) {
            fail(ps, "control character in a string");
            return NULL;
        }
        ps->p++;
        if (c != '\\') {
            g_string_append_c(out, c);
        } else if (!take_escape(ps, out)) {
            fail(ps, "invalid escape in a string");
            return NULL;
        }
    }
    fail(ps, "string without an end");
    return NULL;
}

static gboolean take_digits(Parser *ps)
{
    const char *begin = ps->p;

    while (ps->p < ps->end && g_ascii_isdigit(*ps->p))
        ps->p++;
    return ps->p > begin;
}

/* Steps over a number of the form that JSON allows. */
static gboolean scan_number(Parser *ps, gboolean *integer)
{
    *integer = TRUE;
    if (ps->p < ps->end && *ps->p == '-')
        ps->p++;
    if (ps->p < ps->end && *ps->p == '0')
        ps->p++;
    else if (!take_digits(ps))
        return FALSE;
    if (ps->p < ps->end && *ps->p == '.') {
        *integer = FALSE;
        ps->p++;
        if (!take_digits(ps))
            return FALSE;
    }
    if (ps->p < ps->end && (*ps->p == 'e' || *ps->p == 'E')) {
        *integer = FALSE;
        ps->p++;
        if (ps->p < ps->end && (*ps->p == '+' || *ps->p == '-'))
            ps->p++;
        if (!take_digits(ps))
            return FALSE;
    }
    return TRUE;
}

static JsonNode *parse_number(Parser *ps)
{
    const char *begin = ps->p;
    g_autofree char *text = NULL;
    gboolean integer;
    double d;

    if (!scan_number(ps, &integer))
        return fail(ps, "unexpected character");
    text = g_strndup(begin, (gsize)(ps->p - begin));
    if (integer) {
        gint64 n;

        errno = 0;
        n = g_ascii_strtoll(text, NULL, 10);
        if (errno != ERANGE)
            return json_node_init_int(json_node_alloc(), n);
    }
    d = g_ascii_strtod(text, NULL);
    if (!isfinite(d))
        return fail(ps, "number out of range");
    return json_node_init_double(json_node_alloc(), d);
}

static JsonNode *parse_array(Parser *ps)
{
    g_autoptr(JsonArray) array = json_array_new();

    if (!take(ps, ']')) {
        do {
            JsonNode *node = parse_value(ps);

            if (node == NULL)
                return NULL;
            json_array_add_element(array, node);
        } while (take(ps, ','));
        if (!take(ps, ']'))
            return fail(ps, "expected ',' or ']'");
    }
    return json_node_init_array(json_node_alloc(), array);
}

static gboolean parse_member(Parser *ps, JsonObject *object)
{
    g_autofree char *name = NULL;
    JsonNode *node;

    if (!take(ps, '"')) {
        fail(ps, "expected a member name");
        return FALSE;
    }
    name = parse_string(ps);
    if (name == NULL)
        return FALSE;
    if (!take(ps, ':')) {
        fail(ps, "expected ':'");
        return FALSE;
    }
    node = parse_value(ps);
    if (node == NULL)
        return FALSE;
    json_object_set_member(object, name, node); /* a later one replaces an earlier one */
    return TRUE;
}

static JsonNode *parse_object(Parser *ps)
{
    g_autoptr(JsonObject) object = json_object_new();

    if (!take(ps, '}')) {
        do {
            if (!parse_member(ps, object))
                return NULL;
        } while (take(ps, ','));
        if (!take(ps, '}'))
            return fail(ps, "expected ',' or '}'");
    }
    return json_node_init_object(json_node_alloc(), object);
}

static JsonNode *parse_container(Parser *ps)
{
    gboolean object = *ps->p == '{';
    JsonNode *node;

    if (ps->depth >= SV_JSON_MAX_DEPTH)
        return fail(ps, "nested too deeply");
    ps->depth++;
    ps->p++;
    node = object ? parse_object(ps) : parse_array(ps);
    ps->depth--;
    return node;
}

static JsonNode *parse_value(Parser *ps)
{
    g_autofree char *text = NULL;

    skip_space(ps);
    if (ps->p >= ps->end)
        return fail(ps, "unexpected end");
    switch (*ps->p) {
    case '{':
    case '[':
        return parse_container(ps);
    case '"':
        ps->p++;
        text = parse_string(ps);
        return text != NULL ? json_node_init_string(json_node_alloc(), text) : NULL;
    case 't':
        if (take_word(ps, "true"))
            return json_node_init_boolean(json_node_alloc(), TRUE);
        break;
    case 'f':
        if (take_word(ps, "false"))
            return json_node_init_boolean(json_node_alloc(), FALSE);
        break;
    case 'n':
        if (take_word(ps, "null"))
            return json_node_init_null(json_node_alloc());
        break;
    default:
        return parse_number(ps);
    }
    return fail(ps, "unexpected character");
}

JsonNode *sv_json_parse(
    const char *text, gssize len, gboolean any_root, const char *what, GError **error)
{
    gsize n = len >= 0 ? (gsize)len : strlen(text);
    Parser ps = {.start = text, .p = text, .end = text + n, .what = what, .error = error};
    g_autoptr(JsonNode) node = NULL;

    if (!g_utf8_validate_len(text, n, NULL)) {
        g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "%s: not valid UTF-8", what);
        return NULL;
    }
    node = parse_value(&ps);
    if (node == NULL)
        return NULL;
    skip_space(&ps);
    if (ps.p < ps.end)
        return fail(&ps, "text after the end");
    if (!any_root && !JSON_NODE_HOLDS_OBJECT(node)) {
        g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "%s: must be an object", what);
        return NULL;
    }
    return g_steal_pointer(&node);
}
