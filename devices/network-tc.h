/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Traffic control: what comes in on one link goes out on another. */
#pragma once

#include "netns/netlink.h"

G_BEGIN_DECLS

/* Adds to @indexes the links that have an ingress qdisc of somebody else. One that holds nothing but a filter of ours
 * was left behind, and is ours. */
gboolean sv_tc_foreign(SvNetlink *nl, GHashTable *indexes, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* *made: there was no ingress qdisc before (in any case FALSE on failure before that point). A filter of ours that
 * was left behind is replaced. @mark: kept with the filter. */
gboolean sv_tc_redirect(SvNetlink *nl, int from, int to, guint32 mark, gboolean *made,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Where our filter on the link leads to; 0: nowhere any more, -1: there is no such filter. *mark (nullable): of that
 * filter. */
int sv_tc_target(SvNetlink *nl, int index, guint32 *mark);
/* Takes our filter away, and the qdisc when it was @made and nobody else uses it. Missing: fine. */
gboolean sv_tc_clear(SvNetlink *nl, int index, gboolean made, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
