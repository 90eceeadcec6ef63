/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/module.h"
#include "agent/agent-error.h"
#include "base/fd.h"
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIST_MAX (256u * 1024)

typedef struct {
    char *group;
    char *path;
    gboolean done;
} Module;

struct SvModules {
    GPtrArray *list; /* of Module */
    guint idle;
    char *idle_group;
};

static void module_free(gpointer data)
{
    Module *module = data;

    g_free(module->group);
    g_free(module->path);
    g_free(module);
}

SvModules *sv_modules_parse(const char *text)
{
    SvModules *modules = g_new0(SvModules, 1);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    modules->list = g_ptr_array_new_with_free_func(module_free);
    for (char **line = lines; *line; line++) {
        char *space = strchr(*line, ' ');
        Module *module;

        if (**line == '#' || !space || space == *line || space[1] != '/')
            continue;
        module = g_new0(Module, 1);
        module->group = g_strndup(*line, (gsize)(space - *line));
        module->path = g_strchomp(g_strdup(space + 1));
        g_ptr_array_add(modules->list, module);
    }
    return modules;
}

SvModules *sv_modules_load(const char *path, GError **error)
{
    g_autofree char *text = NULL;

    if (!sv_file_read(path, LIST_MAX, &text, NULL, error))
        return NULL;
    return sv_modules_parse(text);
}

void sv_modules_free(SvModules *modules)
{
    if (!modules)
        return;
    if (modules->idle)
        g_source_remove(modules->idle);
    g_free(modules->idle_group);
    g_ptr_array_unref(modules->list);
    g_free(modules);
}

GPtrArray *sv_modules_pending(SvModules *modules, const char *group)
{
    GPtrArray *paths = g_ptr_array_new();

    for (guint i = 0; i < modules->list->len; i++) {
        Module *module = g_ptr_array_index(modules->list, i);

        if (!module->done && g_str_equal(module->group, group))
            g_ptr_array_add(paths, module->path);
    }
    return paths;
}

static void insert(Module *module)
{
    int fd = open(module->path, O_RDONLY | O_CLOEXEC);

    module->done = TRUE;
    /* Another group may have loaded it: the same module can be needed by two. */
    if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
        g_warning("ignoring module %s: %s", module->path, g_strerror(errno));
    sv_fd_close(fd);
}

static Module *next_pending(SvModules *modules, const char *group)
{
    for (guint i = 0; i < modules->list->len; i++) {
        Module *module = g_ptr_array_index(modules->list, i);

        if (!module->done && g_str_equal(module->group, group))
            return module;
    }
    return NULL;
}

void sv_modules_insert(SvModules *modules, const char *group)
{
    Module *module;

    while ((module = next_pending(modules, group)))
        insert(module);
}

static gboolean on_idle(gpointer user_data)
{
    SvModules *modules = user_data;
    Module *module = next_pending(modules, modules->idle_group);

    if (module) {
        insert(module);
        return G_SOURCE_CONTINUE;
    }
    modules->idle = 0;
    return G_SOURCE_REMOVE;
}

void sv_modules_insert_idle(SvModules *modules, const char *group)
{
    if (modules->idle)
        return;
    g_free(modules->idle_group);
    modules->idle_group = g_strdup(group);
    modules->idle = g_idle_add(on_idle, modules);
}

int sv_modules_probe(const char *path, int argc, char **argv)
{
    g_autoptr(SvModules) modules = sv_modules_load(path, NULL);

    if (!modules || argc < 2)
        return 1;
    sv_modules_insert(modules, argv[argc - 1]);
    return 0;
}
