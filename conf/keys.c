/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "conf/keys.h"

#include <string.h>

#include "base/names.h"

#define ROW(group, field, type, def, min, max, values, doc)                                        \
    {                                                                                              \
        group, #field, type, def, min, max, values, G_STRUCT_OFFSET(SvConfig, field), doc          \
    }
#define STRING(group, field, def, values, doc)                                                     \
    ROW(group, field, SV_KEY_STRING, def, 0, 0, values, doc)
#define PATH(group, field, def, doc) ROW(group, field, SV_KEY_PATH, def, 0, 0, NULL, doc)
#define PATHS(group, field, doc) ROW(group, field, SV_KEY_PATHS, "", 0, 0, NULL, doc)
#define BOOL(group, field, def, doc) ROW(group, field, SV_KEY_BOOL, def, 0, 0, NULL, doc)
#define UINT(group, field, def, min, max, doc)                                                     \
    ROW(group, field, SV_KEY_UINT, def, min, max, NULL, doc)
#define ENUM(group, field, def, values, doc) ROW(group, field, SV_KEY_ENUM, def, 0, 0, values, doc)
#define TIME(field, def, doc) UINT("timeouts", field, def, 10, 3600000, doc)

/* in the order of SvAccelMode and SvLogLevel */
static const char *const accel_values[] = {"auto", "kvm", "tcg", NULL};
static const char *const level_values[] = {"error", "warning", "info", "debug", NULL};
static const char *const cache_values[] = {
    "none", "writethrough", "writeback", "directsync", "unsafe", NULL};
static const char *const io_values[] = {"native", "threads", "io_uring", NULL};

static const SvKey keys[] = {
    STRING("hypervisor", uri, "qemu:///system", NULL, "libvirt connection that runs the machines."),
    ENUM("hypervisor", accel, "auto", accel_values,
        "Acceleration. `auto` is `kvm` where a guest really runs under it, which is tried once per "
        "boot of the host, else `tcg` (software emulation, slow) with a warning."),
    BOOL("hypervisor", skip_cpu_probe, "true",
        "Saves about 0.45 s per machine: libvirt does not ask QEMU for every property of the CPU. "
        "libvirt then marks the domain as tainted (custom-hypervisor-feature)."),
    PATH("hypervisor", firmware, "/usr/share/qemu/qboot.rom",
        "Firmware ROM. qboot starts faster than SeaBIOS. Empty: libvirt's default."),
    PATH("hypervisor", virtiofsd, "", "virtiofsd to use. Empty: libvirt's choice."),
    UINT("hypervisor", tcg_cache_mib, "32", 0, 4096,
        "Size of the cache of translated code under `tcg`, in MiB. 0: QEMU's default, which may "
        "grow to a quarter of the host's memory."),
    UINT("hypervisor", root_ports, "8", 1, 24,
        "Number of PCIe ports, one for each disk or network card that is plugged into a running "
        "machine. Further disks go to a SCSI bus."),
    UINT("hypervisor", uid_first, "0", 0, G_MAXINT,
        "First user id of a range of which each machine gets one of its own. 0: all QEMU processes "
        "run as libvirt's user and could reach each other. They must be users of the host, each "
        "with "
        "a group of its own, and be in the groups kvm and libvirt-qemu, as sandvirt's sysusers "
        "file makes them."),
    UINT("hypervisor", uid_last, "0", 0, G_MAXINT, "Last user id of that range."),

    UINT("machine", memory_mib, "256", 64, 16777216,
        "Memory of a machine when nothing asks for more, in MiB."),
    UINT("machine", max_memory_mib, "0", 0, 16777216,
        "Largest memory a pod can ask for, in MiB. 0: what the host has."),
    UINT("machine", overhead_mib, "64", 0, 65536,
        "What the guest itself needs; added to the memory limits of the containers, in MiB."),
    UINT("machine", vcpus, "1", 1, 512, "Virtual CPUs when nothing asks for more."),
    UINT("machine", max_vcpus, "0", 0, 512,
        "Largest number of virtual CPUs a pod can ask for. 0: what the host has."),
    PATH("machine", kernel, "",
        "Guest kernel. Empty: `vmlinux` in `image_dir`. QEMU's user must be able to read it."),
    PATH("machine", image, "",
        "Guest image (initramfs). Empty: `initramfs.img` in `image_dir`. QEMU's user must be able "
        "to read it."),
    STRING("machine", kernel_args, "", NULL, "Appended to the kernel's command line."),
    PATH("machine", image_dir, SV_LOCALSTATEDIR "/lib/sandvirt/images",
        "Folder of guest kernel and image. A build removes all but its own and the last one's."),

    PATH("paths", run_dir, SV_RUNSTATEDIR "/sandvirt",
        "Folder of sockets, shares and other things that a reboot clears; the default of `--root` "
        "too."),
    PATH("paths", launcher_socket, "",
        "Socket of `sandvirt-launcher`. Empty: `.sock/launcher` in `run_dir`."),

    TIME(connect_ms, "10000", "Opening the connection to libvirt, in ms like all of these."),
    TIME(call_ms, "30000", "One call to libvirt, the start of a machine included."),
    TIME(accel_probe_ms, "10000", "Finding out whether KVM really runs a guest."),
    TIME(boot_ms, "60000", "From the start of a machine until its agent is ready."),
    TIME(agent_ms, "30000", "An answer of the agent."),
    TIME(device_ms, "10000", "A plugged device to show up in the guest."),
    TIME(unplug_ms, "5000", "A device to leave the machine."),
    TIME(stop_ms, "10000", "The processes of a container to end after SIGKILL."),
    TIME(shutdown_ms, "5000", "A machine to power off before it is destroyed."),
    TIME(hook_ms, "60000", "A hook that states no time-out of its own."),
    TIME(create_ms, "180000", "All of `create`."),
    TIME(grace_ms, "10000",
        "From SIGTERM to SIGKILL for the containers when a machine is told to shut down, as by "
        "`virsh shutdown`."),

    BOOL("storage", block_rootfs, "true",
        "A root file system that is the root of a mounted block device of its own is given to the "
        "machine as a disk. Otherwise it is shared through virtiofs."),
    BOOL("storage", block_volumes, "false",
        "The same for volumes: faster, but host and guest must not mount them both for writing."),
    PATHS("storage", block_volume_paths,
        "The same for these volumes, and those below these folders, alone."),
    BOOL("storage", shareable, "false", "Allow one disk in several machines."),
    STRING("storage", disk_cache, "none", cache_values, "Cache mode of disks."),
    STRING("storage", disk_io, "native", io_values,
        "How QEMU reads and writes disks. `native` needs the cache mode `none` or `directsync`."),
    BOOL("storage", discard, "true", "Hand discard requests of the guest on to the disk."),
    PATHS("storage", image_folders,
        "Folders of which image files may be used as disks. Empty: none may."),
    BOOL("storage", end_machine_on_busy, "true",
        "End the machine when the guest keeps a disk busy past its time-out. Otherwise the disk "
        "stays in use until the machine ends."),

    BOOL("network", host_network_substitute, "false",
        "Give a pod that asks for the host's network one of its own instead of refusing it."),
    BOOL("network", follow_changes, "true",
        "Follow later changes of addresses and routes in the pod's network namespace."),
    BOOL("network", forward_localhost, "true",
        "Forward connections to the pod's localhost on the host (port forwarding) into the "
        "machine."),

    ENUM("log", log_level, "warning", level_values, "Least severe level that is logged."),
    UINT("log", console_kib, "256", 4, 65536,
        "How much of a machine's console is looked at when it fails, in KiB. The size of the log "
        "itself is virtlogd's `max_size`."),
    BOOL("log", console_shell, "false",
        "A root shell on the serial console (`virsh console`) of every machine. For debugging: "
        "whoever reaches the console rules the pod."),
};

const SvKey *sv_keys(guint *n_keys)
{
    *n_keys = G_N_ELEMENTS(keys);
    return keys;
}

const SvKey *sv_keys_find(const char *group, const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (strcmp(keys[i].group, group) == 0 && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    }
    return NULL;
}

gboolean sv_keys_has_group(const char *group)
{
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (strcmp(keys[i].group, group) == 0)
            return TRUE;
    }
    return FALSE;
}

char *sv_key_describe(const SvKey *key)
{
    switch (key->type) {
    case SV_KEY_STRING:
        if (key->values == NULL)
            return g_strdup("text");
        /* fall through */
    case SV_KEY_ENUM: {
        g_autofree char *list = g_strjoinv(", ", (char **)key->values);
        return g_strdup_printf("one of %s", list);
    }
    case SV_KEY_PATH:
        return g_strdup("absolute path");
    case SV_KEY_PATHS:
        return g_strdup("absolute paths, separated by \";\"");
    case SV_KEY_BOOL:
        return g_strdup("true or false");
    case SV_KEY_UINT:
        return g_strdup_printf("integer, %u to %u", key->min, key->max);
    }
    return g_strdup("?");
}

static gboolean reject(const SvKey *key, const char *text, GError **error)
{
    g_autofree char *shown = sv_printable(text, 80);
    g_autofree char *wanted = sv_key_describe(key);
    g_set_error(error, SV_CONF_ERROR, SV_ERR_INVALID, "\"%s\" is not allowed: %s", shown, wanted);
    return FALSE;
}

static gboolean index_of(const SvKey *key, const char *text, guint *index)
{
    for (guint i = 0; key->values[i] != NULL; i++) {
        if (strcmp(key->values[i], text) == 0) {
            *index = i;
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean set_paths(const SvKey *key, const char *text, char ***slot, GError **error)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) parts = g_strsplit(text, ";", -1);
    for (guint i = 0; parts[i] != NULL; i++) {
        const char *path = g_strstrip(parts[i]);
        if (*path == '\0')
            continue;
        if (!g_path_is_absolute(path))
            return reject(key, path, error);
        g_ptr_array_add(paths, g_strdup(path));
    }
    g_ptr_array_add(paths, NULL);
    g_strfreev(*slot);
    *slot = (char **)g_ptr_array_free(g_steal_pointer(&paths), FALSE);
    return TRUE;
}

static gboolean set_uint(const SvKey *key, const char *text, guint *slot, GError **error)
{
    gint64 value = 0;
    if (!sv_parse_int64(text, key->min, key->max, &value, NULL))
        return reject(key, text, error);
    *slot = (guint)value;
    return TRUE;
}

gboolean sv_key_set(const SvKey *key, const char *text, SvConfig *config, GError **error)
{
    void *slot = G_STRUCT_MEMBER_P(config, key->offset);
    guint index = 0;

    switch (key->type) {
    case SV_KEY_STRING:
        if (key->values != NULL && !index_of(key, text, &index))
            return reject(key, text, error);
        break;
    case SV_KEY_PATH:
        if (*text != '\0' && !g_path_is_absolute(text))
            return reject(key, text, error);
        break;
    case SV_KEY_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return reject(key, text, error);
        *(gboolean *)slot = strcmp(text, "true") == 0;
        return TRUE;
    case SV_KEY_UINT:
        return set_uint(key, text, slot, error);
    case SV_KEY_ENUM:
        if (!index_of(key, text, &index))
            return reject(key, text, error);
        *(guint *)slot = index;
        return TRUE;
    case SV_KEY_PATHS:
        return set_paths(key, text, slot, error);
    }
    g_free(*(char **)slot);
    *(char **)slot = g_strdup(text);
    return TRUE;
}

void sv_key_clear(const SvKey *key, SvConfig *config)
{
    void *slot = G_STRUCT_MEMBER_P(config, key->offset);
    if (key->type == SV_KEY_STRING || key->type == SV_KEY_PATH)
        g_clear_pointer((char **)slot, g_free);
    else if (key->type == SV_KEY_PATHS)
        g_clear_pointer((char ***)slot, g_strfreev);
}
