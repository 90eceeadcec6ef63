/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the command line and the shim that it starts speak with each other. */
#pragma once

/* Descriptors that the shim is started with, beside the caller's 0, 1 and 2. */
#define SV_SHIM_CALLER_FD 3 /* SOCK_SEQPACKET to the program that started it */
#define SV_SHIM_SOCK_FD 4 /* detached clone of the mount of RUN/.sock */
#define SV_SHIM_FIRST_DESCRIPTOR 5 /* what the process gets beside 0, 1 and 2 */

/* Messages on SV_SHIM_CALLER_FD. Shim: */
#define SV_SHIM_READY 'R' /* it holds the streams or the terminal, and has left the host's mounts */
#define SV_SHIM_ERROR_TEXT 'E' /* followed by one line; it ends */
/* and its starter; closing before that makes the shim end */
#define SV_SHIM_GO 'G' /* the container is created: go on alone */
