/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of the parser of config.json, one file each. They fill their members of @spec; messages
 * start with the JSON path. */
#pragma once

#include "oci/spec.h"

G_BEGIN_DECLS

/* Sets SV_ERR_INVALID "PATH: TEXT" and returns FALSE. */
gboolean sv_spec_error(GError **error, const char *path, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* "PARENT.NAME" (transfer full). */
char *sv_spec_path(const char *parent, const char *name);

/* Calls @func for each object in the array @name (missing is fine; an element that is no object is an
 * error) with its path, "linux.devices[3]". */
typedef gboolean (*SvSpecEach)(
    JsonObject *object, const char *path, gpointer user_data, GError **error);
gboolean sv_spec_each(JsonObject *parent, const char *name, const char *path, SvSpecEach func,
    gpointer user_data, GError **error);
/* Each member of @names (NULL-terminated) that is there must be of that type. */
gboolean sv_spec_check_strings(
    JsonObject *object, const char *path, const char *const *names, GError **error);
gboolean sv_spec_check_bools(
    JsonObject *object, const char *path, const char *const *names, GError **error);
gboolean sv_spec_check_strvs(
    JsonObject *object, const char *path, const char *const *names, GError **error);
/* An object whose members are all strings. @into: (nullable) char* -> char*. */
gboolean sv_spec_string_map(
    JsonObject *parent, const char *name, const char *path, GHashTable *into, GError **error);
/* An integer within @min..@max; missing leaves *out. */
gboolean sv_spec_range(JsonObject *object, const char *name, const char *path, gint64 min,
    gint64 max, gint64 *out, GError **error);

gboolean sv_spec_process(JsonObject *process, const char *path, GError **error);
gboolean sv_spec_read_process(SvSpec *spec, JsonObject *root, GError **error);
gboolean sv_spec_read_mounts(SvSpec *spec, JsonObject *root, GError **error);
gboolean sv_spec_read_hooks(SvSpec *spec, JsonObject *root, GError **error);
gboolean sv_spec_read_linux(SvSpec *spec, JsonObject *root, GError **error);

G_END_DECLS
