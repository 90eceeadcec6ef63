/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/fake.h"

#include <string.h>

/* What a test asked for one operation. */
typedef struct {
    gboolean fails, held;
    SvErr code;
    guint delay_ms;
} Plan;

/* main loop only */
typedef struct {
    SvHv hv;
    SvHvEventFunc func;
    gpointer user_data;

    GHashTable *plans; /* name to Plan */
    guint fail_nth;
    SvErr fail_code;
    guint delay_ms;
    gboolean no_auto_events;
    SvFakeStartFunc start_func;
    gpointer start_data;

    gboolean connected, exists, suspended;
    GPtrArray *devices;
    SvMetadata *metadata;
    guint vcpus;
    guint64 extra_memory;
    int share_pid;

    GPtrArray *calls;
    GPtrArray *pending; /* of Pending, owned */
} Fake;

/* A completion or an event on its way. */
typedef struct {
    Fake *fake;
    char *name; /* operation; NULL: an event */
    guint source;
    SvHvDone done;
    SvHvStatusDone status_done;
    gpointer user_data;
    GError *error;
    SvHvEvent event;
    char *alias;
} Pending;

static void pending_free(gpointer data)
{
    Pending *pending = data;
    if (pending->source != 0)
        g_source_remove(pending->source);
    g_free(pending->name);
    g_free(pending->alias);
    g_clear_error(&pending->error);
    g_free(pending);
}

static gpointer copy_string(gconstpointer text, gpointer unused)
{
    return g_strdup(text);
}

static void complete_status(Fake *fake, const Pending *pending)
{
    SvHvStatus status = {.exists = fake->exists,
        .running = fake->exists && !fake->suspended,
        .suspended = fake->suspended,
        .id = fake->exists ? 1 : -1};
    status.aliases = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < fake->devices->len; i++) {
        const SvDevice *device = fake->devices->pdata[i];
        g_ptr_array_add(status.aliases, copy_string(device->alias, NULL));
    }
    pending->status_done(
        &fake->hv, pending->error == NULL ? &status : NULL, pending->error, pending->user_data);
    g_ptr_array_unref(status.aliases);
}

static gboolean deliver(gpointer data)
{
    Pending *pending = data;
    Fake *fake = pending->fake;
    pending->source = 0;
    /* Out of the list first: what is called may free the driver. */
    guint index = 0;
    g_ptr_array_find(fake->pending, pending, &index);
    g_ptr_array_steal_index(fake->pending, index);

    if (pending->name == NULL)
        fake->func(&fake->hv, &pending->event, fake->user_data);
    else if (pending->status_done != NULL)
        complete_status(fake, pending);
    else
        pending->done(&fake->hv, pending->error, pending->user_data);
    pending_free(pending);
    return G_SOURCE_REMOVE;
}

static Plan *get_plan(Fake *fake, const char *name)
{
    Plan *plan = g_hash_table_lookup(fake->plans, name);
    if (plan == NULL) {
        plan = g_new0(Plan, 1);
        g_hash_table_insert(fake->plans, g_strdup(name), plan);
    }
    return plan;
}

static void schedule(Pending *pending, guint delay_ms)
{
    pending->source = delay_ms > 0 ? g_timeout_add(delay_ms, deliver, pending)
                                   : g_idle_add_full(G_PRIORITY_DEFAULT, deliver, pending, NULL);
}

/* Records the call and plans its completion. Returns FALSE when it is told to fail. */
static gboolean begin(Fake *fake, const char *name, const char *detail, SvHvDone done,
    SvHvStatusDone status_done, gpointer user_data, SvErr real_code, const char *message)
{
    g_ptr_array_add(fake->calls, g_strconcat(name, detail != NULL ? " " : NULL, detail, NULL));
    Plan *plan = get_plan(fake, name);
    Pending *pending = g_new0(Pending, 1);
    pending->fake = fake;
    pending->name = g_strdup(name);
    pending->done = done;
    pending->status_done = status_done;
    pending->user_data = user_data;

    gboolean nth = fake->fail_nth > 0 && --fake->fail_nth == 0;
    if (nth || plan->fails)
        pending->error =
            g_error_new(SV_HV_ERROR, nth ? fake->fail_code : plan->code, "%s: told to fail", name);
    else if (real_code != SV_ERR_LAST)
        pending->error = g_error_new_literal(SV_HV_ERROR, real_code, message);
    g_ptr_array_add(fake->pending, pending);
    gboolean ok = pending->error == NULL;
    if (!plan->held)
        schedule(pending, plan->delay_ms > 0 ? plan->delay_ms : fake->delay_ms);
    return ok;
}

static void queue_event(Fake *fake, SvHvEventType type, SvHvEnd end, const char *alias)
{
    Pending *pending = g_new0(Pending, 1);
    pending->fake = fake;
    pending->alias = g_strdup(alias);
    pending->event = (SvHvEvent){.type = type, .end = end, .alias = pending->alias};
    g_ptr_array_add(fake->pending, pending);
    schedule(pending, fake->delay_ms);
}

static void domain_gone(Fake *fake)
{
    fake->exists = FALSE;
    fake->suspended = FALSE;
    g_ptr_array_set_size(fake->devices, 0);
}

static gboolean find_device(Fake *fake, const char *alias, guint *index)
{
    for (guint i = 0; i < fake->devices->len; i++) {
        const SvDevice *device = fake->devices->pdata[i];
        if (strcmp(device->alias, alias) == 0) {
            *index = i;
            return TRUE;
        }
    }
    return FALSE;
}

/* What goes wrong with a call on a domain that is not there. */
static SvErr need_domain(Fake *fake)
{
    if (!fake->connected)
        return SV_ERR_CLOSED;
    return fake->exists ? SV_ERR_LAST : SV_ERR_NOT_FOUND;
}

static void fake_connect(SvHv *hv, SvHvDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    g_assert_false(fake->connected);
    if (begin(fake, "connect", NULL, done, NULL, user_data, SV_ERR_LAST, NULL))
        fake->connected = TRUE;
}

static void fake_start(SvHv *hv, const SvMachine *machine, SvHvDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    SvErr code = !fake->connected ? SV_ERR_CLOSED : fake->exists ? SV_ERR_EXISTS : SV_ERR_LAST;
    if (!begin(fake, "start", machine->name, done, NULL, user_data, code, "cannot start"))
        return;
    fake->exists = TRUE;
    fake->vcpus = machine->vcpus;
    sv_metadata_free(fake->metadata);
    fake->metadata = sv_metadata_copy(machine->metadata);
    for (guint i = 0; i < machine->devices->len; i++)
        g_ptr_array_add(fake->devices, sv_device_copy(machine->devices->pdata[i]));
    if (fake->start_func != NULL)
        fake->start_func(hv, machine, fake->start_data);
}

static void fake_status(SvHv *hv, SvHvStatusDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    begin(fake, "status", NULL, NULL, done, user_data,
        fake->connected ? SV_ERR_LAST : SV_ERR_CLOSED, "not connected");
}

static void fake_attach(SvHv *hv, const SvDevice *device, SvHvDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    guint index = 0;
    SvErr code = need_domain(fake);
    if (code == SV_ERR_LAST && find_device(fake, device->alias, &index))
        code = SV_ERR_EXISTS;
    if (begin(fake, "attach", device->alias, done, NULL, user_data, code, "cannot attach"))
        g_ptr_array_add(fake->devices, sv_device_copy(device));
}

static void fake_detach(SvHv *hv, const char *alias, SvHvDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    guint index = 0;
    SvErr code = need_domain(fake);
    if (code == SV_ERR_LAST && !find_device(fake, alias, &index))
        code = SV_ERR_NOT_FOUND;
    if (!begin(fake, "detach", alias, done, NULL, user_data, code, "cannot detach"))
        return;
    if (fake->no_auto_events)
        return;
    queue_event(fake, SV_HV_EVENT_DEVICE_REMOVED, SV_HV_END_UNKNOWN, alias);
    g_ptr_array_remove_index(fake->devices, index);
}

static void fake_destroy(
    SvHv *hv, int qemu_pidfd, guint grace_ms, SvHvDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    gboolean existed = fake->exists;
    if (!begin(fake, "destroy", NULL, done, NULL, user_data, SV_ERR_LAST, NULL) || !existed)
        return;
    domain_gone(fake);
    if (!fake->no_auto_events)
        queue_event(fake, SV_HV_EVENT_STOPPED, SV_HV_END_DESTROYED, NULL);
}

static void fake_resume(SvHv *hv, SvHvDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    if (!begin(fake, "resume", NULL, done, NULL, user_data, need_domain(fake), "cannot resume"))
        return;
    fake->suspended = FALSE;
    if (!fake->no_auto_events)
        queue_event(fake, SV_HV_EVENT_RESUMED, SV_HV_END_UNKNOWN, NULL);
}

static void fake_set_metadata(
    SvHv *hv, const SvMetadata *metadata, SvHvDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    if (!begin(fake, "set_metadata", NULL, done, NULL, user_data, need_domain(fake), "no domain"))
        return;
    sv_metadata_free(fake->metadata);
    fake->metadata = sv_metadata_copy(metadata);
}

static void fake_set_vcpus(SvHv *hv, guint vcpus, SvHvDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    if (begin(fake, "set_vcpus", NULL, done, NULL, user_data, need_domain(fake), "no domain"))
        fake->vcpus = vcpus;
}

static void fake_set_memory(SvHv *hv, guint64 extra_bytes, SvHvDone done, gpointer user_data)
{
    Fake *fake = (Fake *)hv;
    if (begin(fake, "set_memory", NULL, done, NULL, user_data, need_domain(fake), "no domain"))
        fake->extra_memory = extra_bytes;
}

static int fake_share_pid(SvHv *hv)
{
    return ((Fake *)hv)->share_pid;
}

static gboolean fake_is_connected(SvHv *hv)
{
    return ((Fake *)hv)->connected;
}

static void fake_free(SvHv *hv)
{
    if (hv == NULL)
        return;
    Fake *fake = (Fake *)hv;
    g_ptr_array_unref(fake->pending);
    g_ptr_array_unref(fake->calls);
    g_ptr_array_unref(fake->devices);
    g_hash_table_unref(fake->plans);
    sv_metadata_free(fake->metadata);
    g_free(fake);
}

static const SvHvOps fake_ops = {
    .connect = fake_connect,
    .start = fake_start,
    .status = fake_status,
    .attach = fake_attach,
    .detach = fake_detach,
    .destroy = fake_destroy,
    .resume = fake_resume,
    .set_metadata = fake_set_metadata,
    .set_vcpus = fake_set_vcpus,
    .set_memory = fake_set_memory,
    .share_pid = fake_share_pid,
    .is_connected = fake_is_connected,
    .free = fake_free,
};

SvHv *sv_fake_new(SvHvEventFunc func, gpointer user_data)
{
    Fake *fake = g_new0(Fake, 1);
    fake->hv.ops = &fake_ops;
    fake->func = func;
    fake->user_data = user_data;
    fake->plans = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    fake->devices = g_ptr_array_new_with_free_func((GDestroyNotify)sv_device_free);
    fake->calls = g_ptr_array_new_with_free_func(g_free);
    fake->pending = g_ptr_array_new_with_free_func(pending_free);
    fake->share_pid = -1;
    return &fake->hv;
}

void sv_fake_fail_nth(SvHv *hv, guint n, SvErr code)
{
    ((Fake *)hv)->fail_nth = n;
    ((Fake *)hv)->fail_code = code;
}

void sv_fake_fail_call(SvHv *hv, const char *name, SvErr code)
{
    Plan *plan = get_plan((Fake *)hv, name);
    plan->fails = code != SV_ERR_LAST;
    plan->code = code;
}

void sv_fake_set_delay(SvHv *hv, const char *name, guint delay_ms)
{
    if (name == NULL)
        ((Fake *)hv)->delay_ms = delay_ms;
    else
        get_plan((Fake *)hv, name)->delay_ms = delay_ms;
}

void sv_fake_hold(SvHv *hv, const char *name)
{
    get_plan((Fake *)hv, name)->held = TRUE;
}

void sv_fake_release(SvHv *hv, const char *name)
{
    Fake *fake = (Fake *)hv;
    get_plan(fake, name)->held = FALSE;
    for (guint i = 0; i < fake->pending->len; i++) {
        Pending *pending = fake->pending->pdata[i];
        if (pending->source == 0 && g_strcmp0(pending->name, name) == 0)
            schedule(pending, 0);
    }
}

void sv_fake_set_auto_events(SvHv *hv, gboolean on)
{
    ((Fake *)hv)->no_auto_events = !on;
}

void sv_fake_close(SvHv *hv)
{
    ((Fake *)hv)->connected = FALSE;
}

void sv_fake_emit(SvHv *hv, SvHvEventType type, SvHvEnd end, const char *alias)
{
    Fake *fake = (Fake *)hv;
    guint index = 0;
    if (type == SV_HV_EVENT_STOPPED)
        domain_gone(fake);
    else if (type == SV_HV_EVENT_SUSPENDED || type == SV_HV_EVENT_RESUMED)
        fake->suspended = type == SV_HV_EVENT_SUSPENDED;
    else if (type == SV_HV_EVENT_CONNECTED || type == SV_HV_EVENT_DISCONNECTED)
        fake->connected = type == SV_HV_EVENT_CONNECTED;
    else if (type == SV_HV_EVENT_DEVICE_REMOVED && find_device(fake, alias, &index))
        g_ptr_array_remove_index(fake->devices, index);
    queue_event(fake, type, end, alias);
}

void sv_fake_set_share_pid(SvHv *hv, int pid)
{
    ((Fake *)hv)->share_pid = pid;
}

void sv_fake_set_start_func(SvHv *hv, SvFakeStartFunc func, gpointer user_data)
{
    ((Fake *)hv)->start_func = func;
    ((Fake *)hv)->start_data = user_data;
}

GPtrArray *sv_fake_calls(SvHv *hv)
{
    return ((Fake *)hv)->calls;
}

guint sv_fake_count(SvHv *hv, const char *name)
{
    Fake *fake = (Fake *)hv;
    gsize len = strlen(name);
    guint count = 0;
    for (guint i = 0; i < fake->calls->len; i++) {
        const char *call = fake->calls->pdata[i];
        if (strncmp(call, name, len) == 0 && (call[len] == '\0' || call[len] == ' '))
            count++;
    }
    return count;
}

gboolean sv_fake_is_running(SvHv *hv)
{
    return ((Fake *)hv)->exists;
}

GPtrArray *sv_fake_devices(SvHv *hv)
{
    return ((Fake *)hv)->devices;
}

const SvMetadata *sv_fake_metadata(SvHv *hv)
{
    return ((Fake *)hv)->metadata;
}

guint sv_fake_vcpus(SvHv *hv)
{
    return ((Fake *)hv)->vcpus;
}

guint64 sv_fake_extra_memory(SvHv *hv)
{
    return ((Fake *)hv)->extra_memory;
}
