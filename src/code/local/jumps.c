/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds jumps in code without disassembling it. libc only, no heap: runs inside observed programs.
 */
#include "code/local/jumps.h"

#include <string.h>

#if defined(__x86_64__)

/*
 * JMP and conditional jumps with 32-bit displacements, at any byte: instruction boundaries are
 * unknown.
 */
unsigned int ts_jumps_count(const uint8_t *code, size_t bytes, uint64_t address, uint64_t start,
			    uint64_t end)
{
	unsigned int jumps = 0;

	for (size_t i = 0; i + 6 <= bytes; i++) {
		size_t at = i + (code[i] == 0xe9 ? 1 : 2);
		int32_t distance;
		uint64_t target;

		if (code[i] != 0xe9 && (code[i] != 0x0f || (code[i + 1] & 0xf0) != 0x80))
			continue;
		memcpy(&distance, code + at, sizeof(distance));
		target = address + at + sizeof(distance) + (uint64_t)(int64_t)distance;
		jumps += target >= start && target < end;
	}
	return jumps;
}

#else

/* B with a 26-bit word displacement, and B.cond with a 19-bit one. */
unsigned int ts_jumps_count(const uint8_t *code, size_t bytes, uint64_t address, uint64_t start,
			    uint64_t end)
{
	unsigned int jumps = 0;

	for (size_t i = 0; i + 4 <= bytes; i += 4) {
		uint32_t word;
		uint64_t target;

		memcpy(&word, code + i, sizeof(word));
		if (word >> 26 == 5)
			target = (uint64_t)((int64_t)((uint64_t)word << 38) >> 36);
		else if (word >> 24 == 0x54)
			target = (uint64_t)((int64_t)((uint64_t)(word >> 5) << 45) >> 43);
		else
			continue;
		target += address + i;
		jumps += target >= start && target < end;
	}
	return jumps;
}

#endif
