/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of the translation, one file each. */
#pragma once

#include "core/guestspec.h"

G_BEGIN_DECLS

typedef struct {
    const SvSpec *spec;
    const SvGuestSpecParams *params;
    SvGuestSpec *guest; /* what is being built */
    GHashTable *own; /* types of the namespaces in the guest's config (borrowed names) */
} SvGuestBuild;

/* SV_ERR_UNSUPPORTED "PATH: TEXT"; FALSE. */
gboolean sv_guest_unsupported(GError **error, const char *path, const char *text);
void sv_guest_warn(GPtrArray *warnings, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* (transfer full) The members of @from named in @names (NULL-terminated), as they are; nulls left out. */
JsonObject *sv_guest_copy_members(JsonObject *from, const char *const *names);
/* The object @name of @from, checked before; NULL when it is missing or none. */
JsonObject *sv_guest_object(JsonObject *from, const char *name);
JsonArray *sv_guest_array(JsonObject *from, const char *name);

/* Warns with @text when @from has a string @name that is not empty. */
void sv_guest_warn_of_text(
    JsonObject *from, const char *name, const char *text, SvGuestBuild *build);
/* FALSE: one that is not known, where the bundle's version of the specification wants that to be an error. */
gboolean sv_guest_check_capabilities(const SvSpec *spec, JsonObject *process, GError **error);
/* (transfer full) Those that are known. @warnings: nullable */
JsonObject *sv_guest_build_capabilities(JsonObject *from, GPtrArray *warnings);
/* @warnings: nullable */
JsonObject *sv_guest_build_process(JsonObject *process, GPtrArray *warnings);
gboolean sv_guest_build_mounts(SvGuestBuild *build, JsonObject *config, GError **error);
gboolean sv_guest_build_linux(SvGuestBuild *build, JsonObject *config, GError **error);
gboolean sv_guest_build_sysctls(
    SvGuestBuild *build, JsonObject *source, JsonObject *target, GError **error);

/* Numbers of a device in the guest. FALSE: it has none there. */
gboolean sv_guest_device_lookup(GHashTable *devices, const char *type, gint64 major, gint64 minor,
    gint64 *guest_major, gint64 *guest_minor);
/* linux.devices, and the rules in linux.resources.devices. */
void sv_guest_build_devices(SvGuestBuild *build, JsonObject *source, JsonObject *target);
JsonArray *sv_guest_device_rules(JsonArray *rules, GHashTable *devices);
/* (transfer full) linux.resources but its device rules; NULL + @error. */
JsonObject *sv_guest_build_resources(
    JsonObject *resources, guint cpus, GHashTable *devices, GPtrArray *warnings, GError **error);

G_END_DECLS
