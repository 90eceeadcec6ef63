/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the inits of the bench have in common. */
#pragma once

/* Those that /modules names, one path a line. */
void load_modules(void);
/* The first virtio-serial port; -1: none yet. */
int open_port(void);
