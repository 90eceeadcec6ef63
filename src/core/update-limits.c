/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/update-limits.h"

#define DEFAULT_PERIOD 100000

static JsonObject *part(JsonObject *resources, const char *name)
{
    JsonNode *node = resources ? json_object_get_member(resources, name) : NULL;

    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

/* FALSE: it is not there, or null, which says the same. */
static gboolean get(JsonObject *object, const char *name, gint64 *value)
{
    JsonNode *node = object ? json_object_get_member(object, name) : NULL;

    if (!node || !JSON_NODE_HOLDS_VALUE(node))
        return FALSE;
    *value = json_node_get_int(node);
    return TRUE;
}

void sv_limits_note(SvRecord *record, JsonObject *resources)
{
    JsonObject *cpu = part(resources, "cpu");
    gint64 value = 0;

    if (get(cpu, "quota", &value))
        record->cpu_quota = MAX(value, 0);
    if (get(cpu, "period", &value))
        record->cpu_period = MAX(value, 0);
}

/* Nulls and zeros: not given, as runc takes them; who writes down all members has zeros. */
static void drop_unset(JsonObject *object, const char *name)
{
    gint64 value = 0;

    if (!get(object, name, &value) || value == 0)
        json_object_remove_member(object, name);
}

static void complete_cpu(const SvRecord *record, JsonObject *cpu)
{
    gint64 quota = 0, period = record->cpu_period;
    gboolean named = get(cpu, "quota", &quota);
    gboolean has_period = get(cpu, "period", &period);
    gboolean has_quota = quota != 0; /* none is -1; a zero says nothing, as for runc */

    if (!has_quota)
        quota = record->cpu_quota;
    if (!has_quota && (!has_period || (named && period == 0))) {
        json_object_remove_member(cpu, "quota");
        json_object_remove_member(cpu, "period");
        return;
    }
    json_object_set_int_member(cpu, "quota", quota > 0 ? quota : -1);
    json_object_set_int_member(cpu, "period", period == 0 ? DEFAULT_PERIOD : period);
}

static void complete_memory(const SvRecord *record, JsonObject *memory)
{
    gint64 limit = 0, swap = 0;

    drop_unset(memory, "limit");
    drop_unset(memory, "swap");
    gboolean has_limit = get(memory, "limit", &limit);
    gboolean has_swap = get(memory, "swap", &swap);

    if (has_swap && swap > 0 && !has_limit && record->demand_memory > 0)
        json_object_set_int_member(memory, "limit", record->demand_memory);
    else if (has_limit && limit == -1 && !has_swap)
        json_object_set_int_member(memory, "swap", -1);
}

void sv_limits_complete(const SvRecord *record, JsonObject *resources)
{
    JsonObject *cpu = part(resources, "cpu");
    JsonObject *memory = part(resources, "memory");

    if (cpu)
        complete_cpu(record, cpu);
    if (memory)
        complete_memory(record, memory);
}

static void add_first(SvLimitsFirst *first, const char *file, gint64 number)
{
    Sandvirt__V1__KeyValue *value = &first->values[first->n];

    g_snprintf(first->numbers[first->n], sizeof(first->numbers[0]), "%" G_GINT64_FORMAT, number);
    sandvirt__v1__key_value__init(value);
    value->key = (char *)file;
    value->value = first->numbers[first->n];
    first->list[first->n++] = value;
}

void sv_limits_first(JsonObject *resources, SvLimitsFirst *first)
{
    JsonObject *cpu = part(resources, "cpu");
    gint64 value = 0;

    first->n = 0;
    if (get(cpu, "idle", &value) && value == 0)
        add_first(first, "cpu.idle", value);
    if (get(cpu, "burst", &value) && value >= 0)
        add_first(first, "cpu.max.burst", value);
}
