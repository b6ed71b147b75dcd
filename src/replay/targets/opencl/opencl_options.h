/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which recorded build options a compiler gets: a trace must not name files
 * (docs/replay.md, 6.1). code/local/opencl_c.h does the same for sources.
 */
#ifndef TS_REPLAY_TARGETS_OPENCL_OPENCL_OPTIONS_H
#define TS_REPLAY_TARGETS_OPENCL_OPENCL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/*
 * Appends accepted options to `kept` and the others to `left_out`, separated by spaces. `options`
 * may be NULL. Warnings are off: the program was compiled before. False if a macro was left out:
 * the program would be another one.
 */
bool ts_opencl_options_clean(const char *options, struct ts_text *kept, struct ts_text *left_out);

#endif
