/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/check.h"

#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *const result_names[] = {"pass", "warn", "fail"};
static const char *const colors[] = {"\033[32m", "\033[33m", "\033[31m"};

static void print_line(const SvCheck *check, const char *name, SvCheckResult result,
    const char *advice, const char *text)
{
    const char *begin = check->color ? colors[result] : "";
    const char *end = check->color ? "\033[0m" : "";
    g_print("%s%s%s  %-14s %s\n", begin, result_names[result], end, name, text);
    if (advice)
        g_print("      %-14s -> %s\n", "", advice);
    /* The next one may take a while. */
    fflush(stdout);
}

void sv_check_add(SvCheck *check, const char *name, SvCheckResult result, const char *advice,
    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *raw = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *text = sv_printable(raw, 2000);
    check->counts[result]++;
    if (!check->list) {
        print_line(check, name, result, advice, text);
        return;
    }
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "name", name);
    json_object_set_string_member(object, "result", result_names[result]);
    json_object_set_string_member(object, "text", text);
    if (advice)
        json_object_set_string_member(object, "advice", advice);
    json_array_add_object_element(check->list, object);
}

static void print_json(SvCheck *check, SvCheckResult worst)
{
    JsonObject *object = json_object_new();
    g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), object);
    json_object_set_string_member(object, "result", result_names[worst]);
    json_object_set_array_member(object, "checks", json_array_ref(check->list));
    g_autofree char *text = sv_json_text(node, TRUE);
    g_print("%s\n", text);
    json_object_unref(object);
}

int sv_check(const SvConfig *config, const char *root, gboolean json, gboolean quick)
{
    SvCheck check = {.config = config, .root = root, .quick = quick};
    check.color = !json && isatty(STDOUT_FILENO);
    check.list = json ? json_array_new() : NULL;
    sv_check_host(&check);
    sv_check_libvirt(&check);
    sv_check_machine(&check);
    sv_check_boot(&check);
    sv_check_engines(&check);

    SvCheckResult worst = check.counts[SV_CHECK_FAIL] ? SV_CHECK_FAIL
        : check.counts[SV_CHECK_WARN]                 ? SV_CHECK_WARN
                                                      : SV_CHECK_PASS;
    if (json)
        print_json(&check, worst);
    else
        g_print("\n%s: %u passed, %u warnings, %u failed\n",
            worst == SV_CHECK_FAIL ? "this host is not fit" : "this host is fit",
            check.counts[SV_CHECK_PASS], check.counts[SV_CHECK_WARN], check.counts[SV_CHECK_FAIL]);
    if (check.list)
        json_array_unref(check.list);
    sv_host_free(check.host);
    return worst == SV_CHECK_FAIL ? 1 : 0;
}
