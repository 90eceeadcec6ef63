/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The libvirt driver on libvirt's own test driver, which lives in this process: no daemon, no QEMU. */
#include <config.h>

#include <glib/gstdio.h>
#include <libvirt/libvirt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hypervisor/accel.h"
#include "hypervisor/driver.h"
#include "hypervisor/list.h"

#define UUID "6f0ad4a4-9c1c-5d3c-8d0c-6a3b52f4bbbb"
#define NAME "sandvirt-unit"

typedef struct {
    const SvConfig *config;
    SvHv *hv;
    SvMachine *machine;
    virConnectPtr admin; /* somebody with virsh */
    GMainLoop *loop;
    guint dones;
    int code; /* -1: success */
    GString *events;
    SvHvStatus status; /* without aliases */
    guint n_aliases;
    int accel;
} Fixture;

static void on_event(SvHv *hv, const SvHvEvent *event, gpointer user_data)
{
    Fixture *fixture = user_data;
    g_string_append_printf(fixture->events, "%d/%d ", event->type, event->end);
    g_main_loop_quit(fixture->loop);
}

static void on_done(SvHv *hv, const GError *error, gpointer user_data)
{
    Fixture *fixture = user_data;
    fixture->dones++;
    fixture->code = error != NULL ? error->code : -1;
    if (error != NULL)
        g_test_message("%s", error->message);
    g_main_loop_quit(fixture->loop);
}

static void on_status(SvHv *hv, const SvHvStatus *status, const GError *error, gpointer user_data)
{
    Fixture *fixture = user_data;
    if (status != NULL) {
        fixture->status = *status;
        fixture->n_aliases = status->aliases->len;
        fixture->status.aliases = NULL;
    }
    on_done(hv, error, user_data);
}

/* Runs the loop until the next call has ended. */
static int finish(Fixture *fixture)
{
    guint before = fixture->dones;
    while (fixture->dones == before)
        g_main_loop_run(fixture->loop);
    return fixture->code;
}

static void wait_events(Fixture *fixture, const char *wanted)
{
    while (strlen(fixture->events->str) < strlen(wanted))
        g_main_loop_run(fixture->loop);
    g_assert_cmpstr(fixture->events->str, ==, wanted);
    g_string_truncate(fixture->events, 0);
}

static const SvConfig *load_config(const char *accel)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("sv-hv-XXXXXX", &path, &error);
    g_assert_no_error(error);
    close(fd);
    g_autofree char *text = g_strdup_printf("[hypervisor]\nuri=test:///default\naccel=%s\n", accel);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    const SvConfig *config = sv_config_load(path, &error);
    g_assert_no_error(error);
    g_unlink(path);
    return config;
}

static void setup(Fixture *fixture, gconstpointer unused)
{
    fixture->config = load_config("tcg");
    fixture->loop = g_main_loop_new(NULL, FALSE);
    fixture->events = g_string_new(NULL);
    fixture->hv = sv_libvirt_new(fixture->config, UUID, NAME, on_event, fixture);
    fixture->admin = virConnectOpen(fixture->config->uri);
    g_assert_nonnull(fixture->admin);
    SvMachine *machine = sv_machine_new();
    machine->name = g_strdup(NAME);
    machine->uuid = g_strdup(UUID);
    machine->memory_mib = 64;
    machine->kernel = g_strdup("/vmlinux");
    machine->metadata = sv_metadata_new();
    machine->metadata->sandbox = g_strdup("unit");
    machine->metadata->root = g_strdup("/unit");
    fixture->machine = machine;
    g_assert_false(fixture->hv->ops->is_connected(fixture->hv));
    fixture->hv->ops->connect(fixture->hv, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
    g_assert_true(fixture->hv->ops->is_connected(fixture->hv));
}

static void teardown(Fixture *fixture, gconstpointer unused)
{
    fixture->hv->ops->free(fixture->hv);
    g_assert_true(sv_libvirt_end_domain(fixture->config, UUID, "/unit", NULL));
    virConnectClose(fixture->admin);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    sv_machine_free(fixture->machine);
    g_main_loop_unref(fixture->loop);
    g_string_free(fixture->events, TRUE);
    sv_config_unref(fixture->config);
}

static void start(Fixture *fixture)
{
    fixture->hv->ops->start(fixture->hv, fixture->machine, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
}

static void look(Fixture *fixture)
{
    fixture->hv->ops->status(fixture->hv, on_status, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
}

static void test_life(Fixture *fixture, gconstpointer unused)
{
    SvHv *hv = fixture->hv;
    look(fixture);
    g_assert_false(fixture->status.exists);
    start(fixture);
    hv->ops->start(hv, fixture->machine, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, SV_ERR_EXISTS);
    look(fixture);
    g_assert_true(fixture->status.exists && fixture->status.running);
    g_assert_cmpint(fixture->status.id, >, 0);
    g_assert_cmpint(hv->ops->share_pid(hv), ==, -1);

    virDomainPtr dom = virDomainLookupByName(fixture->admin, NAME);
    g_assert_nonnull(dom);
    g_assert_cmpint(virDomainSuspend(dom), ==, 0);
    g_autofree char *suspended = g_strdup_printf("%d/0 ", SV_HV_EVENT_SUSPENDED);
    wait_events(fixture, suspended);
    look(fixture);
    g_assert_true(fixture->status.exists && fixture->status.suspended);
    g_assert_false(fixture->status.running);
    hv->ops->resume(hv, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
    g_autofree char *resumed = g_strdup_printf("%d/0 ", SV_HV_EVENT_RESUMED);
    wait_events(fixture, resumed);
    hv->ops->resume(hv, on_done, fixture); /* runs already */
    g_assert_cmpint(finish(fixture), ==, -1);
    virDomainFree(dom);

    hv->ops->destroy(hv, -1, 1000, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
    g_autofree char *stopped = g_strdup_printf("%d/%d ", SV_HV_EVENT_STOPPED, SV_HV_END_DESTROYED);
    wait_events(fixture, stopped);
    hv->ops->destroy(hv, -1, 1000, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
    hv->ops->resume(hv, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, SV_ERR_NOT_FOUND);

    start(fixture); /* again, and events come once */
    hv->ops->destroy(hv, -1, 1000, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
    wait_events(fixture, stopped);
}

/* Suspended and resumed at once: no late "suspended". */
static void test_flap(Fixture *fixture, gconstpointer unused)
{
    start(fixture);
    virDomainPtr dom = virDomainLookupByName(fixture->admin, NAME);
    g_assert_cmpint(virDomainSuspend(dom), ==, 0);
    g_assert_cmpint(virDomainResume(dom), ==, 0);
    virDomainFree(dom);
    g_autofree char *resumed = g_strdup_printf("%d/0 ", SV_HV_EVENT_RESUMED);
    wait_events(fixture, resumed);
    look(fixture);
    g_assert_cmpstr(fixture->events->str, ==, "");
}

static void test_metadata(Fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    start(fixture);
    g_free(fixture->machine->metadata->lock);
    fixture->machine->metadata->lock = g_strdup("/a'b\"<&>");
    fixture->hv->ops->set_metadata(fixture->hv, fixture->machine->metadata, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);

    g_autoptr(SvInventory) inventory = sv_libvirt_inventory(fixture->config, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(inventory->domains->len, ==, 1); /* "test" of the test driver is not ours */
    const SvFound *found = inventory->domains->pdata[0];
    g_assert_cmpstr(found->name, ==, NAME);
    g_assert_cmpstr(found->uuid, ==, UUID);
    g_assert_cmpstr(found->metadata->root, ==, "/unit");
    g_assert_cmpstr(found->metadata->lock, ==, "/a'b\"<&>");
    g_assert_cmpuint(inventory->libvirt[0], >=, 9);

    g_assert_true(sv_libvirt_end_domain(fixture->config, UUID, "/other", &error));
    look(fixture);
    g_assert_true(fixture->status.exists);
}

static int on_admin_event(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *opaque)
{
    Fixture *fixture = opaque;
    if (event == VIR_DOMAIN_EVENT_UNDEFINED)
        g_main_loop_quit(fixture->loop);
    return 0;
}

static void define(Fixture *fixture)
{
    virDomainPtr dom = virDomainLookupByName(fixture->admin, NAME);
    char *text = virDomainGetXMLDesc(dom, VIR_DOMAIN_XML_INACTIVE);
    virDomainPtr defined = virDomainDefineXML(fixture->admin, text);
    g_assert_nonnull(defined);
    g_assert_cmpint(virDomainIsPersistent(dom), ==, 1);
    free(text);
    virDomainFree(defined);
    virDomainFree(dom);
}

/* Defined by an administrator: it becomes transient again, and does not stay when it ends. */
static void test_defined(Fixture *fixture, gconstpointer unused)
{
    start(fixture);
    int id = virConnectDomainEventRegisterAny(fixture->admin, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
        VIR_DOMAIN_EVENT_CALLBACK(on_admin_event), fixture, NULL);
    define(fixture);
    g_main_loop_run(fixture->loop);
    virDomainPtr dom = virDomainLookupByName(fixture->admin, NAME);
    g_assert_cmpint(virDomainIsPersistent(dom), ==, 0);
    g_assert_cmpint(virDomainIsActive(dom), ==, 1);
    virDomainFree(dom);
    g_assert_cmpint(virConnectDomainEventDeregisterAny(fixture->admin, id), ==, 0);
    /* while nobody looked, and it has ended since */
    fixture->hv->ops->free(fixture->hv);
    define(fixture);
    dom = virDomainLookupByName(fixture->admin, NAME);
    g_assert_cmpint(virDomainDestroy(dom), ==, 0);
    g_assert_cmpint(virDomainIsPersistent(dom), ==, 1);
    virDomainFree(dom);
    fixture->hv = sv_libvirt_new(fixture->config, UUID, NAME, on_event, fixture);
    fixture->hv->ops->connect(fixture->hv, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
    look(fixture);
    g_assert_cmpint(fixture->status.id, ==, -1);
    look(fixture);
    g_assert_false(fixture->status.exists);
    g_assert_null(virDomainLookupByName(fixture->admin, NAME));
    /* and for gc */
    start(fixture);
    fixture->hv->ops->free(fixture->hv);
    define(fixture);
    dom = virDomainLookupByName(fixture->admin, NAME);
    g_assert_cmpint(virDomainDestroy(dom), ==, 0);
    virDomainFree(dom);
    g_assert_true(sv_libvirt_end_domain(fixture->config, UUID, "/unit", NULL));
    g_assert_null(virDomainLookupByName(fixture->admin, NAME));
    fixture->hv = sv_libvirt_new(fixture->config, UUID, NAME, on_event, fixture);
}

/* A domain with our uuid and name, but not of ours. */
static void test_foreign(Fixture *fixture, gconstpointer unused)
{
    SvHv *hv = fixture->hv;
    virDomainPtr dom = virDomainCreateXML(fixture->admin,
        "<domain type='test'><name>" NAME "</name><uuid>" UUID "</uuid><memory>65536</memory>"
        "<os><type>hvm</type></os></domain>",
        0);
    g_assert_nonnull(dom);
    look(fixture);
    g_assert_false(fixture->status.exists);
    hv->ops->destroy(hv, -1, 1000, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
    hv->ops->set_metadata(hv, fixture->machine->metadata, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, SV_ERR_NOT_FOUND);
    hv->ops->start(hv, fixture->machine, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, SV_ERR_EXISTS);
    g_assert_cmpint(virDomainIsActive(dom), ==, 1);
    g_assert_cmpint(virDomainDestroy(dom), ==, 0);
    virDomainFree(dom);
}

static void test_invalid(Fixture *fixture, gconstpointer unused)
{
    g_free(fixture->machine->uuid);
    fixture->machine->uuid = g_strdup("no uuid");
    fixture->hv->ops->start(fixture->hv, fixture->machine, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, SV_ERR_INVALID);
}

/* A destroy while the domain is being started: whatever comes first, it is gone in the end. */
static void test_start_destroy(Fixture *fixture, gconstpointer unused)
{
    SvHv *hv = fixture->hv;
    for (guint i = 0; i < 20; i++) {
        guint before = fixture->dones;
        hv->ops->start(hv, fixture->machine, on_done, fixture);
        for (guint j = 0; j < i % 4; j++)
            g_main_context_iteration(NULL, FALSE);
        hv->ops->destroy(hv, -1, 1000, on_done, fixture);
        while (fixture->dones < before + 2)
            g_main_loop_run(fixture->loop);
        g_assert_cmpint(fixture->code, ==, -1); /* of destroy, which ends last */
        look(fixture);
        g_assert_false(fixture->status.exists);
    }
}

static void on_accel(SvAccel accel, const char *reason, const GError *error, gpointer user_data)
{
    Fixture *fixture = user_data;
    g_assert_no_error(error);
    g_assert_null(reason);
    fixture->accel = (int)accel;
    g_main_loop_quit(fixture->loop);
}

/* What the configuration says is not questioned. */
static void test_accel(Fixture *fixture, gconstpointer unused)
{
    const SvConfig *kvm = load_config("kvm");
    sv_accel_resolve(kvm, on_accel, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->accel, ==, SV_ACCEL_KVM);
    sv_accel_resolve(fixture->config, on_accel, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->accel, ==, SV_ACCEL_TCG);
    sv_config_unref(kvm);
}

/* free forgets what is on its way */
static void test_drop(Fixture *fixture, gconstpointer unused)
{
    start(fixture);
    guint before = fixture->dones;
    SvHv *hv = fixture->hv;
    hv->ops->set_metadata(hv, fixture->machine->metadata, on_done, fixture);
    hv->ops->status(hv, on_status, fixture);
    hv->ops->destroy(hv, -1, 1000, on_done, fixture);
    hv->ops->free(hv);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    g_assert_cmpuint(fixture->dones, ==, before);
    fixture->hv = sv_libvirt_new(fixture->config, UUID, NAME, on_event, fixture);
    fixture->hv->ops->connect(fixture->hv, on_done, fixture);
    g_assert_cmpint(finish(fixture), ==, -1);
}

/* Without a connection calls wait; free drops them. */
static void test_parked(Fixture *fixture, gconstpointer unused)
{
    SvHv *hv = sv_libvirt_new(fixture->config, UUID, NAME, on_event, fixture);
    guint before = fixture->dones;
    hv->ops->status(hv, on_status, fixture);
    g_main_context_iteration(NULL, FALSE);
    g_assert_cmpuint(fixture->dones, ==, before);
    hv->ops->connect(hv, on_done, fixture);
    while (fixture->dones < before + 2)
        g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->code, ==, -1);
    hv->ops->free(hv);
    hv = sv_libvirt_new(fixture->config, UUID, NAME, on_event, fixture);
    hv->ops->status(hv, on_status, fixture);
    hv->ops->connect(hv, on_done, fixture);
    hv->ops->free(hv);
    hv = sv_libvirt_new(fixture->config, UUID, NAME, on_event, fixture);
    hv->ops->destroy(hv, -1, 1, on_done, fixture);
    hv->ops->free(hv);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    /* a dropped definition is a warning, of a thread, at any time */
    g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
#define ADD(name, func) g_test_add("/hypervisor/driver/" name, Fixture, NULL, setup, func, teardown)
    ADD("life", test_life);
    ADD("flap", test_flap);
    ADD("metadata", test_metadata);
    ADD("defined", test_defined);
    ADD("foreign", test_foreign);
    ADD("invalid", test_invalid);
    ADD("start-destroy", test_start_destroy);
    ADD("accel", test_accel);
    ADD("drop", test_drop);
    ADD("parked", test_parked);
    return g_test_run();
}
