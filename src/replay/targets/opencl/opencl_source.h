/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what a trace may pass to a compiler. A trace must not name files (docs/replay.md, 6.1),
 * so source with includes is not compiled, and only build options that are known to name no file
 * are accepted.
 */
#ifndef TS_REPLAY_TARGETS_OPENCL_OPENCL_SOURCE_H
#define TS_REPLAY_TARGETS_OPENCL_OPENCL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/*
 * Does the source include another file (#include, #import, #embed ...)? Also true for a line that
 * an #if would exclude, for any spelling, and if there is no memory to find out.
 */
bool ts_opencl_source_includes(const char *source, size_t bytes);

/*
 * Appends accepted options to `kept` and the others to `left_out`, separated by spaces. `options`
 * may be NULL.
 */
void ts_opencl_options_clean(const char *options, struct ts_text *kept, struct ts_text *left_out);

#endif
