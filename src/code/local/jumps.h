/* SPDX-License-Identifier: Apache-2.0 */
/* Counts jumps from one piece of code to another. Knows instructions, nothing else. */
#ifndef TS_CODE_LOCAL_JUMPS_H
#define TS_CODE_LOCAL_JUMPS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes that look like a jump by chance rarely hit the same target: fewer than this do not count.
 */
#define TS_JUMPS_MIN 3u

/* The number of jumps in the code, whose first byte is at `address`, that lead to [start, end). */
unsigned int ts_jumps_count(const uint8_t *code, size_t bytes, uint64_t address, uint64_t start,
			    uint64_t end);

#endif
