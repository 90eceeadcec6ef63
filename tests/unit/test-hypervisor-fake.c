/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/fake.h"

typedef struct {
    SvHv *hv;
    GMainLoop *loop;
    guint dones;
    int last_code; /* -1: success */
    GString *events;
    gboolean exists;
    guint n_aliases;
} Fixture;

static void on_event(SvHv *hv, const SvHvEvent *event, gpointer user_data)
{
    Fixture *fixture = user_data;
    g_string_append_printf(
        fixture->events, "%d/%d/%s ", event->type, event->end, event->alias ? event->alias : "-");
    g_main_loop_quit(fixture->loop);
}

static void on_done(SvHv *hv, const GError *error, gpointer user_data)
{
    Fixture *fixture = user_data;
    fixture->dones++;
    fixture->last_code = error != NULL ? error->code : -1;
    g_main_loop_quit(fixture->loop);
}

static void on_status(SvHv *hv, const SvHvStatus *status, const GError *error, gpointer user_data)
{
    Fixture *fixture = user_data;
    fixture->exists = status != NULL && status->exists;
    fixture->n_aliases = status != NULL ? status->aliases->len : 0;
    on_done(hv, error, user_data);
}

static void setup(Fixture *fixture, gconstpointer unused)
{
    fixture->loop = g_main_loop_new(NULL, FALSE);
    fixture->events = g_string_new(NULL);
    fixture->hv = sv_fake_new(on_event, fixture);
}

static void teardown(Fixture *fixture, gconstpointer unused)
{
    fixture->hv->ops->free(fixture->hv);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    g_main_loop_unref(fixture->loop);
    g_string_free(fixture->events, TRUE);
}

static void start_machine(Fixture *fixture)
{
    g_autoptr(SvMachine) machine = sv_machine_new();
    machine->name = g_strdup("sandvirt-x");
    fixture->hv->ops->connect(fixture->hv, on_done, fixture);
    g_main_loop_run(fixture->loop);
    fixture->hv->ops->start(fixture->hv, machine, on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->last_code, ==, -1);
}

static void test_life(Fixture *fixture, gconstpointer unused)
{
    SvHv *hv = fixture->hv;
    g_autoptr(SvDevice) device = sv_device_new_network("ua-sv-n", g_new0(SvNetwork, 1));
    start_machine(fixture);

    hv->ops->attach(hv, device, on_done, fixture);
    g_assert_cmpuint(fixture->dones, ==, 2); /* never from inside the call */
    g_main_loop_run(fixture->loop);
    hv->ops->attach(hv, device, on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->last_code, ==, SV_ERR_EXISTS);
    hv->ops->status(hv, on_status, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_true(fixture->exists);
    g_assert_cmpuint(fixture->n_aliases, ==, 1);

    hv->ops->detach(hv, "ua-sv-other", on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->last_code, ==, SV_ERR_NOT_FOUND);
    hv->ops->detach(hv, "ua-sv-n", on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->last_code, ==, -1);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    hv->ops->destroy(hv, -1, 1000, on_done, fixture);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    g_assert_false(sv_fake_is_running(hv));
    g_autofree char *wanted = g_strdup_printf("%d/0/ua-sv-n %d/%d/- ", SV_HV_EVENT_DEVICE_REMOVED,
        SV_HV_EVENT_STOPPED, SV_HV_END_DESTROYED);
    g_assert_cmpstr(fixture->events->str, ==, wanted);
    g_assert_cmpuint(sv_fake_count(hv, "attach"), ==, 2);
    g_assert_cmpstr(sv_fake_calls(hv)->pdata[1], ==, "start sandvirt-x");
}

static void test_failures(Fixture *fixture, gconstpointer unused)
{
    SvHv *hv = fixture->hv;
    start_machine(fixture);
    sv_fake_fail_nth(hv, 2, SV_ERR_TIMEOUT);
    hv->ops->set_vcpus(hv, 2, on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->last_code, ==, -1);
    hv->ops->set_vcpus(hv, 3, on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->last_code, ==, SV_ERR_TIMEOUT);
    g_assert_cmpuint(sv_fake_vcpus(hv), ==, 2);

    sv_fake_fail_call(hv, "resume", SV_ERR_BUSY);
    hv->ops->resume(hv, on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->last_code, ==, SV_ERR_BUSY);
    sv_fake_fail_call(hv, "resume", SV_ERR_LAST);
    hv->ops->resume(hv, on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->last_code, ==, -1);

    guint before = fixture->dones;
    sv_fake_hold(hv, "set_memory");
    hv->ops->set_memory(hv, 1, on_done, fixture);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    g_assert_cmpuint(fixture->dones, ==, before);
    sv_fake_release(hv, "set_memory");
    g_main_loop_run(fixture->loop);
    g_assert_cmpuint(fixture->dones, ==, before + 1);

    sv_fake_set_delay(hv, "set_memory", 5);
    hv->ops->set_memory(hv, 2, on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpuint(fixture->dones, ==, before + 2);

    sv_fake_emit(hv, SV_HV_EVENT_DISCONNECTED, SV_HV_END_UNKNOWN, NULL);
    g_main_loop_run(fixture->loop);
    g_assert_false(hv->ops->is_connected(hv));
    hv->ops->set_memory(hv, 3, on_done, fixture);
    g_main_loop_run(fixture->loop);
    g_assert_cmpint(fixture->last_code, ==, SV_ERR_CLOSED);
    hv->ops->set_memory(hv, 4, on_done, fixture); /* dropped by free */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/hypervisor/fake/life", Fixture, NULL, setup, test_life, teardown);
    g_test_add("/hypervisor/fake/failures", Fixture, NULL, setup, test_failures, teardown);
    return g_test_run();
}
