/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A bundle's config.json, the pod it says it belongs to, and what the guest would get. */
#include "fuzz.h"

#include "core/guestspec.h"

static void build(const SvSpec *spec)
{
    g_autofree SvSourceInfo *sources = g_new0(SvSourceInfo, spec->mounts->len + 1);
    g_autoptr(GHashTable) devices = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GError) error = NULL;
    SvGuestSpecParams params = {
        .container_id = "c",
        .root_path = "/r",
        .cpus = 2,
        .sources = sources,
        .guest_devices = devices,
    };

    g_hash_table_insert(devices, (gpointer) "b:8:0", (gpointer) "b:253:16");
    for (guint i = 0; i < spec->mounts->len; i++) {
        sources[i].kind = i % 4;
        sources[i].shm_name = (char *)"shm-0";
        sources[i].guest_path = i % 8 < 4 ? (char *)"/dev/null" : NULL;
    }
    g_autoptr(SvGuestSpec) guest = sv_guest_spec_build(spec, &params, &error);
    g_assert_true((guest == NULL) == (error != NULL));
    if (guest) {
        g_autofree char *text = sv_json_text(guest->config, FALSE);

        g_assert_nonnull(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvSpec) spec = sv_spec_parse(data ? (const char *)data : "", size, "/bundle", &error);

    g_assert_true((spec == NULL) == (error != NULL));
    if (!spec)
        return 0;
    g_autoptr(SvPod) pod = sv_pod_from_spec(spec, "c", &error);
    g_assert_true((pod == NULL) == (error != NULL));
    build(spec);
    return 0;
}
