/* SPDX-License-Identifier: Apache-2.0 */
/* Jumps from one piece of code to another. Knows instructions, nothing else. */
#ifndef TS_CODE_LOCAL_JUMPS_H
#define TS_CODE_LOCAL_JUMPS_H

#include <stddef.h>
#include <stdint.h>

/* What looks like a jump by chance hits one place of millions: so many are none. */
#define TS_JUMPS_MIN 3u

/* How many jumps of the code, whose first byte is at `address`, lead to [start, end). */
unsigned int ts_jumps_count(const uint8_t *code, size_t bytes, uint64_t address, uint64_t start,
			    uint64_t end);

#endif
