/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mounts: sources on the host become sources in the guest. Destinations stay: crun resolves them inside
 * the rootfs. */
#include <config.h>

#include "base/names.h"
#include "core/guestspec-private.h"
#include "core/lifecycle.h"
#include <string.h>

/* Made by the guest's kernel, from nothing of the host. */
static const char *const guest_types[] = {"proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup",
    "cgroup2", "ramfs", "devtmpfs", "bpf", "debugfs", "tracefs", "securityfs", "hugetlbfs", NULL};

/* Options of a bind mount that crun in the guest knows. */
const char *const sv_guest_bind_options[] = {"defaults", "bind", "rbind", "ro", "rw", "suid",
    "nosuid", "dev", "nodev", "exec", "noexec", "sync", "async", "dirsync", "atime", "noatime",
    "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime", "shared",
    "rshared", "slave", "rslave", "private", "rprivate", "unbindable", "runbindable", NULL};

/* Options for the whole tree. A tree of the host is one file system in the guest, and crun's way of
 * setting these fails on files: the plain option does the same. */
const char *const sv_guest_recursive_options[] = {"rro", "rrw", "rsuid", "rnosuid", "rdev",
    "rnodev", "rexec", "rnoexec", "rsync", "rasync", "rdirsync", "ratime", "rnoatime", "rdiratime",
    "rnodiratime", "rrelatime", "rnorelatime", "rstrictatime", "rnostrictatime", NULL};

/* Engines' own words that mean nothing here. */
static const char *const silent_options[] = {"z", "Z", "U", "copy", "nocopy", "noswap", NULL};

static gboolean is_idmap_option(const char *option)
{
    return strcmp(option, "idmap") == 0 || strcmp(option, "ridmap") == 0 ||
        g_str_has_prefix(option, "idmap=") || g_str_has_prefix(option, "ridmap=");
}

/* SELinux labels of the host. */
static gboolean is_label_option(const char *option)
{
    return g_str_has_prefix(option, "context=") || g_str_has_prefix(option, "fscontext=") ||
        g_str_has_prefix(option, "defcontext=") || g_str_has_prefix(option, "rootcontext=");
}

static gboolean refuse_idmap(
    const SvGuestBuild *build, guint index, const char *path, GError **error)
{
    JsonArray *mounts = sv_guest_array(json_node_get_object(build->spec->json), "mounts");
    JsonObject *raw = json_array_get_object_element(mounts, index);
    const SvSpecMount *mount = build->spec->mounts->pdata[index];
    JsonArray *uids = sv_guest_array(raw, "uidMappings");
    JsonArray *gids = sv_guest_array(raw, "gidMappings");
    gboolean mapped =
        (uids && json_array_get_length(uids)) || (gids && json_array_get_length(gids));

    for (char **o = mount->options; *o; o++)
        mapped |= is_idmap_option(*o);
    return !mapped || sv_guest_unsupported(error, path, "id-mapped mounts are not supported");
}

/* Mounts cross from host to guest only when the container is made: a later one would keep the host from
 * unmounting it as long as the guest only remembers that it looked there. */
static const char *const propagating_options[] = {"shared", "rshared", "slave", "rslave", NULL};

static void warn_of_propagation(SvGuestBuild *build, const SvSpecMount *mount, const char *path)
{
    for (char **o = mount->options; *o; o++)
        if (g_strv_contains(propagating_options, *o))
            sv_guest_warn(build->guest->warnings,
                "%s: option \"%s\": mounts made later do not pass between host and machine", path,
                *o);
}

static JsonArray *bind_options_of(SvGuestBuild *build, const SvSpecMount *mount, const char *path)
{
    JsonArray *options = json_array_new();

    if (!sv_spec_mount_has_option(mount, "bind") && !sv_spec_mount_has_option(mount, "rbind"))
        json_array_add_string_element(
            options, sv_spec_mount_is_recursive(mount) ? "rbind" : "bind");
    for (char **o = mount->options; *o; o++) {
        /* the rest of those of a file system are the agent's, who mounts it */
        gboolean of_fs = !sv_spec_mount_is_bind(mount);

        if (g_strv_contains(sv_guest_bind_options, *o))
            json_array_add_string_element(options, *o);
        else if (g_strv_contains(sv_guest_recursive_options, *o))
            json_array_add_string_element(options, *o + 1);
        else if (!of_fs && !g_strv_contains(silent_options, *o) && !is_label_option(*o))
            sv_guest_warn(build->guest->warnings, "%s: option \"%s\" is ignored", path, *o);
    }
    return options;
}

/* Programs find in /proc/self/mountinfo what a bind mount was made of: as on a host, its last part is the
 * source's. (transfer full) */
static char *share_name(const SvSpecMount *mount, guint index)
{
    g_autofree char *base = g_path_get_basename(mount->source);

    if (sv_id_check(base, "name in the share", NULL))
        return g_strdup_printf("m%u/%s", index, base);
    return g_strdup_printf("m%u", index);
}

static char *plan_bind(SvGuestBuild *build, const SvSpecMount *mount, guint index)
{
    SvBindPlan *plan = g_new0(SvBindPlan, 1);

    plan->mount_index = index;
    plan->name = share_name(mount, index);
    plan->source = g_strdup(mount->source);
    plan->recursive = sv_spec_mount_is_recursive(mount);
    plan->read_only = sv_spec_mount_is_read_only(mount);
    g_ptr_array_add(build->guest->binds, plan);
    return g_strdup_printf(SV_GUEST_SHARE "/c/%u/%s", build->params->index, plan->name);
}

static gboolean bind_source(SvGuestBuild *build, const SvSpecMount *mount, guint index,
    const char *path, char **source, GError **error)
{
    const SvSourceInfo *info = &build->params->sources[index];

    switch (info->kind) {
    case SV_SOURCE_BIND:
        *source = plan_bind(build, mount, index);
        return TRUE;
    case SV_SOURCE_SHM:
        g_return_val_if_fail(info->shm_name, FALSE);
        *source = g_strconcat(SV_GUEST_SHM "/", info->shm_name, NULL);
        return TRUE;
    case SV_SOURCE_BLOCK:
    case SV_SOURCE_GUEST:
        if (!info->guest_path)
            return sv_guest_unsupported(error, path, "this source is not supported");
        *source = g_strdup(info->guest_path);
        return TRUE;
    }
    g_return_val_if_reached(FALSE);
}

static gboolean set_bind(SvGuestBuild *build, const SvSpecMount *mount, guint index,
    const char *path, JsonObject *out, GError **error)
{
    g_autofree char *source = NULL;

    if (!bind_source(build, mount, index, path, &source, error))
        return FALSE;
    if (build->params->sources[index].kind == SV_SOURCE_BIND)
        warn_of_propagation(build, mount, path);
    json_object_set_string_member(out, "type", "bind");
    json_object_set_string_member(out, "source", source);
    json_object_set_array_member(out, "options", bind_options_of(build, mount, path));
    return TRUE;
}

static gboolean set_other(
    const SvSpecMount *mount, const char *path, JsonObject *out, GError **error)
{
    JsonArray *options = NULL;

    if (!g_strv_contains(guest_types, mount->type)) {
        g_autofree char *type = sv_printable(mount->type, 64);
        g_autofree char *text = g_strdup_printf("type \"%s\" is not supported", type);

        return sv_guest_unsupported(error, path, text);
    }
    json_object_set_string_member(out, "type", mount->type);
    json_object_set_string_member(out, "source", mount->source ? mount->source : mount->type);
    /* No member and an empty one differ: crun has defaults for the first. */
    if (!*mount->options)
        return TRUE;
    options = json_array_new();
    for (char **o = mount->options; *o; o++)
        if (!is_label_option(*o) && !g_strv_contains(silent_options, *o))
            json_array_add_string_element(options, *o);
    json_object_set_array_member(out, "options", options);
    return TRUE;
}

static gboolean has_dev(const SvSpec *spec)
{
    for (guint i = 0; i < spec->mounts->len; i++)
        if (g_str_equal(((SvSpecMount *)spec->mounts->pdata[i])->destination, "/dev"))
            return TRUE;
    return FALSE;
}

/* Where the spec mounts nothing at /dev a runtime makes the default nodes in the rootfs. Ours is the host's
 * folder, in which a guest may make no device: it gets a /dev of its own. */
static JsonObject *own_dev(void)
{
    JsonObject *mount = json_object_new();
    JsonArray *options = json_array_new();

    json_array_add_string_element(options, "nosuid");
    json_array_add_string_element(options, "mode=755");
    json_array_add_string_element(options, "size=64k");
    json_object_set_string_member(mount, "destination", "/dev");
    json_object_set_string_member(mount, "type", "tmpfs");
    json_object_set_string_member(mount, "source", "tmpfs");
    json_object_set_array_member(mount, "options", options);
    return mount;
}

gboolean sv_guest_build_mounts(SvGuestBuild *build, JsonObject *config, GError **error)
{
    JsonArray *mounts = json_array_new();

    json_object_set_array_member(config, "mounts", mounts);
    if (!has_dev(build->spec))
        json_array_add_object_element(mounts, own_dev());
    for (guint i = 0; i < build->spec->mounts->len; i++) {
        const SvSpecMount *mount = build->spec->mounts->pdata[i];
        g_autofree char *path = g_strdup_printf("mounts[%u]", i);
        JsonObject *out = json_object_new();

        json_array_add_object_element(mounts, out);
        json_object_set_string_member(out, "destination", mount->destination);
        if (!refuse_idmap(build, i, path, error))
            return FALSE;
        gboolean bind = sv_spec_mount_is_bind(mount) ||
            (build->params->sources && build->params->sources[i].kind == SV_SOURCE_BLOCK);
        if (bind ? !set_bind(build, mount, i, path, out, error)
                 : !set_other(mount, path, out, error))
            return FALSE;
    }
    return TRUE;
}
