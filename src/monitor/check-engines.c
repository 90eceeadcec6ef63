/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

/* The engines of this host, and whether they know sandvirt. */
#include "monitor/check.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const char *name;
    const char *programs[3];
    const char *files[5]; /* files, or folders of files */
    const char *snippet; /* below snippets() */
} Engine;

static const Engine engines[] = {
    {"cri-o", {"/usr/bin/crio", "/usr/local/bin/crio"},
        {"/etc/crio/crio.conf", "/etc/crio/crio.conf.d", "/usr/share/crio/crio.conf.d"},
        "10-sandvirt.conf to /etc/crio/crio.conf.d"},
    {"containerd", {"/usr/bin/containerd", "/usr/local/bin/containerd"},
        {"/etc/containerd/config.toml", "/etc/containerd/conf.d"},
        "containerd.toml into /etc/containerd/config.toml"},
    {"docker", {"/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd"},
        {"/etc/docker/daemon.json"}, "docker-daemon.json into /etc/docker/daemon.json"},
    {"podman", {"/usr/bin/podman", "/usr/local/bin/podman"},
        {"/etc/containers/containers.conf", "/etc/containers/containers.conf.d",
            "/usr/share/containers/containers.conf", "/usr/share/containers/containers.conf.d"},
        "containers.conf to /etc/containers/containers.conf.d/sandvirt.conf"},
};

/* A line with the word that is no comment. */
static gboolean names_us(const char *path)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return FALSE;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        if (*g_strchug(*line) != '#' && strstr(*line, "sandvirt"))
            return TRUE;
    return FALSE;
}

static char *find_in(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    if (!dir)
        return names_us(path) ? g_strdup(path) : NULL;
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        if (names_us(file))
            return g_steal_pointer(&file);
    }
    return NULL;
}

static gboolean is_there(const Engine *engine)
{
    for (guint i = 0; i < G_N_ELEMENTS(engine->programs) && engine->programs[i]; i++)
        if (access(engine->programs[i], X_OK) == 0)
            return TRUE;
    return FALSE;
}

/* Before an installation they are where they came from. */
static const char *snippets(void)
{
    return access(SV_DATADIR "/engines", F_OK) == 0 ? SV_DATADIR "/engines"
                                                    : SV_SOURCE_ROOT "/conf/engines";
}

static void check_engine(SvCheck *check, const Engine *engine)
{
    g_autofree char *found = NULL;
    for (guint i = 0; !found && i < G_N_ELEMENTS(engine->files) && engine->files[i]; i++)
        found = find_in(engine->files[i]);
    g_autofree char *advice = g_strdup_printf("copy %s/%s", snippets(), engine->snippet);
    sv_check_add(check, engine->name, found ? SV_CHECK_PASS : SV_CHECK_WARN, found ? NULL : advice,
        "%s", found ? found : "it is installed and does not know sandvirt");
}

void sv_check_engines(SvCheck *check)
{
    guint n = 0;
    for (guint i = 0; i < G_N_ELEMENTS(engines); i++) {
        if (!is_there(&engines[i]))
            continue;
        check_engine(check, &engines[i]);
        n++;
    }
    if (n == 0)
        sv_check_add(check, "engines", SV_CHECK_WARN,
            "install CRI-O, podman, containerd or Docker, or use sandvirt's own commands",
            "none is installed");
}
