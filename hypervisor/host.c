/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/host.h"

#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <stdio.h>
#include <string.h>

#include "hypervisor/libvirt-priv.h"
#include "hypervisor/xml.h"

typedef xmlDoc AutoDoc;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AutoDoc, xmlFreeDoc)

void sv_host_free(SvHost *host)
{
    if (host == NULL)
        return;
    g_free(host->emulator);
    g_free(host->why);
    g_free(host->confinement);
    g_free(host);
}

/* ---- XML: the text of the first node that @path finds (transfer full), NULL when there is none */

static char *find_text(xmlDocPtr doc, const char *path)
{
    xmlXPathContextPtr context = xmlXPathNewContext(doc);
    xmlXPathObjectPtr found = xmlXPathEvalExpression(BAD_CAST path, context);
    char *text = NULL;
    if (found != NULL && found->nodesetval != NULL && found->nodesetval->nodeNr > 0) {
        xmlChar *content = xmlNodeGetContent(found->nodesetval->nodeTab[0]);
        text = g_strdup((const char *)content);
        xmlFree(content);
    }
    xmlXPathFreeObject(found);
    xmlXPathFreeContext(context);
    return text;
}

static xmlDocPtr parse(const char *text)
{
    return text == NULL ? NULL
                        : xmlReadMemory(text, (int)strlen(text), NULL, NULL,
                              XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
}

/* ---- questions */

static void split_version(unsigned long version, guint parts[3])
{
    parts[0] = (guint)(version / 1000000);
    parts[1] = (guint)(version / 1000 % 1000);
    parts[2] = (guint)(version % 1000);
}

static void ask_capabilities(virConnectPtr conn, SvHost *host)
{
    char *text = virConnectGetCapabilities(conn);
    g_autoptr(AutoDoc) doc = parse(text);
    free(text);
    if (doc == NULL)
        return;
    g_autofree char *label =
        find_text(doc, "/capabilities/host/secmodel[model='dac']/baselabel[@type='qemu']");
    if (label != NULL && sscanf(label, "+%d:+%d", &host->uid, &host->gid) != 2)
        host->uid = host->gid = -1;
    host->confinement =
        find_text(doc, "/capabilities/host/secmodel[model!='dac' and model!='none']/model");
}

static void ask_qemu(virConnectPtr conn, SvHost *host)
{
    char *text = virConnectGetDomainCapabilities(conn, NULL, "x86_64", "q35", "qemu", 0);
    g_autoptr(AutoDoc) doc = parse(text);
    free(text);
    if (doc == NULL) {
        g_autoptr(GError) error = NULL;
        sv_hv_set_libvirt_error(&error, "libvirt knows no QEMU for q35");
        host->why = g_strdup(error->message);
        return;
    }
    host->emulator = find_text(doc, "/domainCapabilities/path");
    g_autofree char *type = find_text(
        doc, "/domainCapabilities/devices/filesystem[@supported='yes']/enum/value[.='virtiofs']");
    host->has_virtiofs = type != NULL;
}

static SvHost *ask(const SvConfig *config, GError **error)
{
    unsigned long version = 0;
    g_autoptr(AutoConnect) conn = sv_libvirt_open(config->uri, error);
    if (conn == NULL)
        return NULL;
    SvHost *host = g_new0(SvHost, 1);
    host->uid = host->gid = -1;
    if (virConnectGetLibVersion(conn, &version) == 0)
        split_version(version, host->libvirt);
    if (virConnectGetVersion(conn, &version) == 0)
        split_version(version, host->qemu);
    ask_capabilities(conn, host);
    ask_qemu(conn, host);
    return host;
}

/* ---- with a deadline: nothing can interrupt a call to a daemon that hangs */

typedef struct {
    gatomicrefcount refs;
    const SvConfig *config;
    GAsyncQueue *end; /* gets the Question itself */
    SvHost *host;
    GError *error;
} Question;

static void question_unref(Question *question)
{
    if (!g_atomic_ref_count_dec(&question->refs))
        return;
    sv_config_unref(question->config);
    g_async_queue_unref(question->end);
    sv_host_free(question->host);
    g_clear_error(&question->error);
    g_free(question);
}

static gpointer run(gpointer data)
{
    Question *question = data;
    question->host = ask(question->config, &question->error);
    g_async_queue_push(question->end, question);
    question_unref(question);
    return NULL;
}

SvHost *sv_libvirt_host(const SvConfig *config, GError **error)
{
    guint64 deadline_us = ((guint64)config->connect_ms + config->call_ms) * 1000;
    sv_libvirt_init();
    Question *question = g_new0(Question, 1);
    g_atomic_ref_count_init(&question->refs);
    g_atomic_ref_count_inc(&question->refs);
    question->config = sv_config_ref(config);
    question->end = g_async_queue_new();
    g_thread_unref(g_thread_new("libvirt", run, question));
    SvHost *host = NULL;
    if (g_async_queue_timeout_pop(question->end, deadline_us) == NULL)
        g_set_error(error, SV_HV_ERROR, SV_ERR_TIMEOUT,
            "libvirt at %s does not answer within %" G_GUINT64_FORMAT " s", config->uri,
            deadline_us / 1000000);
    else if (question->error != NULL)
        g_propagate_error(error, g_steal_pointer(&question->error));
    else
        host = g_steal_pointer(&question->host);
    question_unref(question);
    return host;
}

/* ---- a machine on trial */

struct SvTrial {
    virConnectPtr conn;
    virDomainPtr dom;
};

SvTrial *sv_trial_start(const SvConfig *config, const SvMachine *machine, GError **error)
{
    sv_libvirt_init();
    virConnectPtr conn = sv_libvirt_open(config->uri, error);
    if (conn == NULL)
        return NULL;
    g_autofree char *xml = sv_xml_domain(machine);
    virDomainPtr dom =
        virDomainCreateXML(conn, xml, VIR_DOMAIN_START_AUTODESTROY | VIR_DOMAIN_START_VALIDATE);
    if (dom == NULL) {
        sv_hv_set_libvirt_error(error, "start a machine");
        virConnectClose(conn);
        return NULL;
    }
    SvTrial *trial = g_new0(SvTrial, 1);
    trial->conn = conn;
    trial->dom = dom;
    return trial;
}

void sv_trial_end(SvTrial *trial)
{
    if (trial == NULL)
        return;
    virDomainDestroy(trial->dom);
    virDomainFree(trial->dom);
    virConnectClose(trial->conn);
    g_free(trial);
}
