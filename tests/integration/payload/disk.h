/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* disk PATH SECONDS read|write|random-read|random-write: past the cache, in blocks of 1 MiB, or of 4 KiB at
 * random places; prints MiB/s. What was there is lost by the writes. */
int verb_disk(int argc, char **argv);
