/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of configuration keys: one row per key drives the parser, the shipped file, the
 * documentation and the tests. */
#pragma once

#include "conf/config.h"

G_BEGIN_DECLS

typedef enum {
    SV_KEY_STRING, /* char *; one of @values when those are given */
    SV_KEY_PATH, /* char *; absolute or empty */
    SV_KEY_BOOL, /* gboolean */
    SV_KEY_UINT, /* guint between @min and @max */
    SV_KEY_ENUM, /* an enum: index into @values */
    SV_KEY_PATHS, /* char **; absolute paths, separated by ";" */
} SvKeyType;

typedef struct {
    const char *group, *name;
    SvKeyType type;
    const char *def; /* the default as it would stand in the file */
    guint min, max;
    const char *const *values; /* NULL-terminated; nullable */
    gsize offset; /* into SvConfig */
    const char *doc; /* one paragraph, no markup but `code` */
} SvKey;

/* (transfer none): rows of one group are neighbours. */
const SvKey *sv_keys(guint *n_keys);
const SvKey *sv_keys_find(const char *group, const char *name);
gboolean sv_keys_has_group(const char *group);

/* Parses @text and stores it in @config, freeing what was there. The error tells what is wrong with
 * the value, without file and key. */
gboolean sv_key_set(const SvKey *key, const char *text, SvConfig *config, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Frees what sv_key_set allocated. */
void sv_key_clear(const SvKey *key, SvConfig *config);
/* "integer, 1 to 64", "true or false", ... (transfer full) */
char *sv_key_describe(const SvKey *key) G_GNUC_WARN_UNUSED_RESULT;

/* The shipped sandvirt.conf, every key commented out with its default (transfer full). */
char *sv_keys_sample(void) G_GNUC_WARN_UNUSED_RESULT;
/* docs/configuration.md (transfer full). */
char *sv_keys_markdown(void) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
