/* SPDX-License-Identifier: Apache-2.0 */
/* How summaries say what was lost. */
#ifndef TS_CLI_COMMON_LOST_TEXT_H
#define TS_CLI_COMMON_LOST_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * "nothing lost", "5 events lost", "an unknown number of events lost", "5 events lost, and an
 * unknown number more". `unknown`: losses that nobody counted. Returns the buffer.
 */
const char *ts_lost_text(char *buffer, size_t bytes, uint64_t lost, uint64_t unknown,
			 const char *one, const char *many);

#endif
