/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Disks into the machine, until the guest has found them. */
#include <config.h>

#include "core/disks.h"

#include <string.h>

/* Several disks on their way; one answer. */
typedef struct {
    SvSandbox *sandbox;
    char *container;
    guint pending;
    GError *error; /* the first */
    SvDone done;
    gpointer user_data;
} Fan;

/* One of them. */
typedef struct {
    Fan *fan;
    char *alias;
} Call;

static Fan *fan_new(SvContainer *container, SvDone done, gpointer user_data)
{
    Fan *fan = g_new0(Fan, 1);

    fan->sandbox = container->sandbox;
    fan->container = g_strdup(container->record->id);
    fan->pending = 1; /* until all have been sent */
    fan->done = done;
    fan->user_data = user_data;
    return fan;
}

static Call *call_new(Fan *fan, const SvDiskRecord *disk)
{
    Call *call = g_new0(Call, 1);

    call->fan = fan;
    call->alias = g_strdup(disk->alias);
    fan->pending++;
    return call;
}

static void fan_end(Fan *fan)
{
    if (--fan->pending)
        return;
    sv_answer_later(fan->done, fan->error, fan->user_data);
    g_clear_error(&fan->error);
    g_free(fan->container);
    g_free(fan);
}

/* Takes @error. */
static void call_end(Call *call, GError *error)
{
    Fan *fan = call->fan;

    if (error && !fan->error)
        fan->error = g_steal_pointer(&error);
    g_clear_error(&error);
    g_free(call->alias);
    g_free(call);
    fan_end(fan);
}

/* The disk of @call; NULL: its container has gone. */
static SvDiskRecord *call_disk(const Call *call, SvContainer **container)
{
    *container = sv_sandbox_find(call->fan->sandbox, call->fan->container, NULL);
    return *container ? sv_disk_records_find((*container)->record->disks, call->alias) : NULL;
}

/* ---- attach */

static SvDevice *device_of(const SvSandbox *sandbox, const SvDiskRecord *disk)
{
    const SvConfig *config = sandbox->config;
    SvBlock *block = g_new0(SvBlock, 1);

    block->kind = disk->image ? SV_BLOCK_FILE : SV_BLOCK_DEVICE;
    block->source = disk->image ? sv_disk_image_path(sandbox, disk) : g_strdup(disk->source);
    block->format = g_strdup(disk->format);
    block->serial = g_strdup(disk->serial);
    block->bus = g_str_has_prefix(disk->target, "sd") ? SV_BUS_SCSI : SV_BUS_VIRTIO;
    block->target = g_strdup(disk->target);
    block->read_only = disk->read_only;
    block->shareable = !disk->exclusive && !disk->read_only;
    block->discard = config->discard;
    block->cache = g_strdup(config->disk_cache);
    block->io = g_strdup(config->disk_io);
    return sv_device_new_block(disk->alias, block);
}

static void send_attach(SvSandbox *sandbox, const SvDiskRecord *disk, Call *call);

/* No port is left (network cards need them too): the SCSI bus has room. */
static gboolean try_scsi(Call *call, const GError *error)
{
    SvContainer *container = NULL;
    SvDiskRecord *disk = call_disk(call, &container);
    g_autoptr(GError) failure = NULL;

    if (!disk || !sv_error_is(error, SV_ERR_LIMIT) || g_str_has_prefix(disk->target, "sd"))
        return FALSE;
    if (!sv_disk_use_scsi(call->fan->sandbox, disk, &failure) ||
        !sv_container_save(container, &failure)) {
        g_info("container %s: %s", container->record->id, failure->message);
        return FALSE;
    }
    send_attach(call->fan->sandbox, disk, call);
    return TRUE;
}

static void on_attached(SvHv *hv, const GError *error, gpointer user_data)
{
    Call *call = user_data;
    SvContainer *container = NULL;
    SvDiskRecord *disk = call_disk(call, &container);

    if (!error) {
        call_end(call, NULL);
        return;
    }
    if (try_scsi(call, error))
        return;
    g_autofree char *title = disk ? sv_disk_record_title(disk) : g_strdup(call->alias);
    call_end(call, g_error_new(error->domain, error->code, "%s: %s", title, error->message));
}

static void send_attach(SvSandbox *sandbox, const SvDiskRecord *disk, Call *call)
{
    g_autoptr(SvDevice) device = device_of(sandbox, disk);

    sandbox->hv->ops->attach(sandbox->hv, device, on_attached, call);
}

static void attach(SvSandbox *sandbox, const SvDiskRecord *disk, Call *call)
{
    GError *error = NULL;

    /* one that it shares is there, or is on its way */
    if (disk->shares)
        call_end(call, NULL);
    else if (disk->image && !sv_disk_image_bind(sandbox, disk, &error))
        call_end(call, error);
    else
        send_attach(sandbox, disk, call);
}

void sv_disks_plug(SvContainer *container, SvDone done, gpointer user_data)
{
    Fan *fan = fan_new(container, done, user_data);

    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];

        attach(container->sandbox, disk, call_new(fan, disk));
    }
    fan_end(fan);
}

/* ---- in the guest */

/* The guest is not trusted: a node's name goes into its own config.json, and nowhere else. */
static gboolean is_node(const char *text)
{
    gsize len = strlen(text);

    return g_str_has_prefix(text, "/dev/") && len > 5 && len < 64 &&
        strspn(text + 5, "abcdefghijklmnopqrstuvwxyz0123456789") == len - 5;
}

static gboolean take_answer(
    SvDiskRecord *disk, const Sandvirt__V1__WaitBlockResponse *answer, GError **error)
{
    g_autofree char *title = sv_disk_record_title(disk);

    if (!is_node(answer->node) || answer->major > 4095 || answer->minor > 1048575) {
        g_set_error(
            error, SV_CORE_ERROR, SV_ERR_INVALID, "%s: the guest gives it no valid name", title);
        return FALSE;
    }
    if (answer->size_bytes != disk->size / 512 * 512) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "%s: the guest sees %" G_GUINT64_FORMAT " bytes instead of %" G_GUINT64_FORMAT, title,
            answer->size_bytes, disk->size);
        return FALSE;
    }
    g_free(disk->guest_node);
    disk->guest_node = g_strdup(answer->node);
    disk->guest_major = answer->major;
    disk->guest_minor = answer->minor;
    g_debug(
        "disk %s: there after %.1f ms in the guest", disk->alias, (double)answer->guest_ns / 1e6);
    return TRUE;
}

static void on_found(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Call *call = user_data;
    SvContainer *container = NULL;
    SvDiskRecord *disk = call_disk(call, &container);
    GError *failure = NULL;

    if (!disk)
        g_set_error(&failure, SV_CORE_ERROR, SV_ERR_CANCELLED, "the container has gone");
    else if (error)
        failure = sv_disks_explain(container, error);
    else
        take_answer(disk, (const Sandvirt__V1__WaitBlockResponse *)reply, &failure);
    call_end(call, failure);
}

static void await(SvSandbox *sandbox, const SvDiskRecord *disk, Call *call)
{
    Sandvirt__V1__WaitBlockRequest message = SANDVIRT__V1__WAIT_BLOCK_REQUEST__INIT;

    if (!sandbox->agent) {
        call_end(call,
            g_error_new_literal(SV_CORE_ERROR, SV_ERR_CLOSED, "the machine's agent has gone"));
        return;
    }
    message.serial = disk->serial;
    message.timeout_ms = sandbox->config->device_ms;
    /* the guest's own answer names the disk: it comes first unless the guest hangs */
    sv_agent_call(sandbox->agent, "WaitBlock", &message.base,
        &sandvirt__v1__wait_block_response__descriptor, sandbox->config->device_ms + 1000, on_found,
        call);
}

void sv_disks_await(SvContainer *container, SvDone done, gpointer user_data)
{
    Fan *fan = fan_new(container, done, user_data);

    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];

        await(container->sandbox, disk, call_new(fan, disk));
    }
    fan_end(fan);
}

/* ---- one disk more */

typedef struct {
    SvSandbox *sandbox;
    char *container;
    char *alias;
    SvDone done;
    gpointer user_data;
} Plug;

static void plug_end(const GError *error, gpointer user_data)
{
    Plug *plug = user_data;

    plug->done(error, plug->user_data);
    g_free(plug->container);
    g_free(plug->alias);
    g_free(plug);
}

static void on_plugged(const GError *error, gpointer user_data)
{
    Plug *plug = user_data;
    SvContainer *container = sv_sandbox_find(plug->sandbox, plug->container, NULL);
    SvDiskRecord *disk =
        container ? sv_disk_records_find(container->record->disks, plug->alias) : NULL;

    if (error || !disk) {
        plug_end(error, plug);
        return;
    }
    Fan *fan = fan_new(container, plug_end, plug);
    await(plug->sandbox, disk, call_new(fan, disk));
    fan_end(fan);
}

void sv_disk_plug(SvContainer *container, const char *alias, SvDone done, gpointer user_data)
{
    const SvDiskRecord *disk = sv_disk_records_find(container->record->disks, alias);
    Plug *plug = g_new0(Plug, 1);

    plug->sandbox = container->sandbox;
    plug->container = g_strdup(container->record->id);
    plug->alias = g_strdup(alias);
    plug->done = done;
    plug->user_data = user_data;
    Fan *fan = fan_new(container, on_plugged, plug);
    attach(container->sandbox, disk, call_new(fan, disk));
    fan_end(fan);
}
