/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the interpreter's loop that the compiler has put elsewhere, since it thinks it is run less often ("cold"). A stripped interpreter does
 * not name it, but it can be told: it has rules of its own in .eh_frame, which begin in the middle of a function, and the loop jumps there.
 */
#include "capture/native/native_parts.h"

#define MOST_LOOP_BYTES (1u << 20)
#define LEAST_JUMPS 3u /* what looks like a jump by chance hits one place of millions */

/* A function starts with nothing on the stack but its return address. */
static bool begins_inside(struct ts_native_module *module, uint64_t start)
{
	struct ts_cfi_row row;
	const int64_t at_start = TS_REGISTER_PC == 16 ? 8 : 0;

	return ts_cfi_find(&module->cfi, start, &row) &&
	       (row.frame.kind != TS_CFI_REGISTER || row.frame.reg != TS_REGISTER_SP ||
		row.frame.value != at_start);
}

#if defined(__x86_64__)

/* JMP and the conditional ones, with a distance of 32 bits. At any byte: instructions are not told apart here. */
static unsigned int count_jumps(const uint8_t *code, size_t bytes, uint64_t address,
				const struct ts_cfi_row *to)
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
		jumps += target >= to->start && target < to->end;
	}
	return jumps;
}

#else

/* B, with a distance of 26 bits in words, and B.cond, with one of 19. */
static unsigned int count_jumps(const uint8_t *code, size_t bytes, uint64_t address,
				const struct ts_cfi_row *to)
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
		jumps += target >= to->start && target < to->end;
	}
	return jumps;
}

#endif

bool ts_native_is_cold_loop(const struct ts_native *native, struct ts_native_module *module,
			    const struct ts_cfi_row *row)
{
	size_t bytes = TS_MIN(module->loop.bytes, MOST_LOOP_BYTES);
	TS_AUTO_FREE uint8_t *code = NULL;

	if (!module->is_python || bytes == 0 || !begins_inside(module, row->start))
		return false;
	code = ts_alloc_array(bytes, 1);
	if (!code)
		return false;
	bytes = ts_native_read(native, module->loop.address + module->bias, code, bytes);
	return count_jumps(code, bytes, module->loop.address, row) >= LEAST_JUMPS;
}
