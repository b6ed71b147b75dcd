/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds jumps in code that was not disassembled; see jumps.h. libc only, no heap: observed programs
 * run this.
 */
#include "code/local/jumps.h"

#include <string.h>

#if defined(__x86_64__)

/*
 * JMP and the conditional ones, with a distance of 32 bits. At any byte: instructions are not told
 * apart here.
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

/* B, with a distance of 26 bits in words, and B.cond, with one of 19. */
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
