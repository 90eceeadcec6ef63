/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzz targets. In a test run sv_fuzz_main feeds the target the files of its corpus, every beginning of
 * them, and mutations of them made from a fixed seed; SV_FUZZ_ROUNDS and SV_FUZZ_SEED change that. With
 * -fsanitize=fuzzer the same target is LLVMFuzzerTestOneInput. */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

/* What a target defines: it must survive any @data. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

G_END_DECLS
