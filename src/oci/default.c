/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The template that `sandvirt spec` writes: the shape of runc's, so that scripts that edit one work with
 * the other. */
#include <config.h>

#include "oci/spec.h"

static const char template[] =
    "{'ociVersion':'" SV_OCI_VERSION "',"
    "'process':{'terminal':true,'user':{'uid':0,'gid':0},'args':['sh'],"
    "'env':['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin','TERM=xterm'],"
    "'cwd':'/','capabilities':{"
    "'bounding':['CAP_AUDIT_WRITE','CAP_KILL','CAP_NET_BIND_SERVICE'],"
    "'effective':['CAP_AUDIT_WRITE','CAP_KILL','CAP_NET_BIND_SERVICE'],"
    "'permitted':['CAP_AUDIT_WRITE','CAP_KILL','CAP_NET_BIND_SERVICE']},"
    "'rlimits':[{'type':'RLIMIT_NOFILE','hard':1024,'soft':1024}],'noNewPrivileges':true},"
    "'root':{'path':'rootfs','readonly':true},'hostname':'sandvirt',"
    "'mounts':[{'destination':'/proc','type':'proc','source':'proc'},"
    "{'destination':'/dev','type':'tmpfs','source':'tmpfs',"
    "'options':['nosuid','strictatime','mode=755','size=65536k']},"
    "{'destination':'/dev/pts','type':'devpts','source':'devpts',"
    "'options':['nosuid','noexec','newinstance','ptmxmode=0666','mode=0620','gid=5']},"
    "{'destination':'/dev/shm','type':'tmpfs','source':'shm',"
    "'options':['nosuid','noexec','nodev','mode=1777','size=65536k']},"
    "{'destination':'/dev/mqueue','type':'mqueue','source':'mqueue',"
    "'options':['nosuid','noexec','nodev']},"
    "{'destination':'/sys','type':'sysfs','source':'sysfs',"
    "'options':['nosuid','noexec','nodev','ro']},"
    "{'destination':'/sys/fs/cgroup','type':'cgroup','source':'cgroup',"
    "'options':['nosuid','noexec','nodev','relatime','ro']}],"
    "'linux':{'resources':{'devices':[{'allow':false,'access':'rwm'}]},"
    "'namespaces':[{'type':'pid'},{'type':'network'},{'type':'ipc'},{'type':'uts'},"
    "{'type':'mount'},{'type':'cgroup'}],"
    "'maskedPaths':['/proc/acpi','/proc/asound','/proc/kcore','/proc/keys','/proc/latency_stats',"
    "'/proc/timer_list','/proc/timer_stats','/proc/sched_debug','/sys/firmware','/proc/scsi'],"
    "'readonlyPaths':['/proc/bus','/proc/fs','/proc/irq','/proc/sys','/proc/sysrq-trigger']}}";

JsonNode *sv_spec_default(void)
{
    g_autofree char *text = g_strdup(template);
    g_autoptr(GError) error = NULL;

    /* Single quotes above are for the reader. */
    g_strdelimit(text, "'", '"');
    JsonNode *node = sv_json_parse(text, -1, FALSE, "template", &error);
    if (!node)
        g_error("%s", error->message);
    return node;
}
