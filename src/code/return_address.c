/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether a word found on a stack is a return address: it must point into code, right after
 * a call instruction. For frames without unwind information.
 */
#include "code/native_internal.h"

#define AHEAD_BYTES 7u /* the longest call */

/* Values of ts_native_process.returns: 0: not checked; else one of these, or the call's target. */
#define NO_CALL 1u
#define CALL_TO_SOMEWHERE 2u
#define MAX_RETURNS 65536u

#if defined(__x86_64__)

/* Indirect call: FF, then a byte with 2 in its middle bits, which determines the rest. */
static bool is_indirect_call(const uint8_t *code, size_t bytes)
{
	uint8_t mode, base;
	size_t length = 2;

	if (code[0] != 0xff || (code[1] >> 3 & 7) != 2)
		return false;
	mode = code[1] >> 6;
	base = code[1] & 7;
	if (mode != 3 && base == 4)
		length++; /* SIB */
	if (mode == 1)
		length += 1;
	else if (mode == 2 || (mode == 0 && base == 5) ||
		 (mode == 0 && base == 4 && bytes > 2 && (code[2] & 7) == 5))
		length += 4;
	return length == bytes;
}

/* `ahead`: the bytes before the address; the last one is adjacent to it. */
static uint64_t look_at_call(const uint8_t *ahead, uint64_t address)
{
	int32_t distance;

	if (ahead[AHEAD_BYTES - 5] == 0xe8) {
		memcpy(&distance, ahead + AHEAD_BYTES - 4, sizeof(distance));
		return address + (uint64_t)(int64_t)distance;
	}
	for (size_t bytes = 2; bytes <= AHEAD_BYTES; bytes++) {
		if (is_indirect_call(ahead + AHEAD_BYTES - bytes, bytes))
			return CALL_TO_SOMEWHERE;
	}
	return NO_CALL;
}

#else

/* BL holds the distance in words; BLR and its authenticating variants a register. */
static uint64_t look_at_call(const uint8_t *ahead, uint64_t address)
{
	uint32_t code;

	memcpy(&code, &ahead[AHEAD_BYTES - sizeof(code)], sizeof(code));
	if (code >> 26 == 0x25)
		return address - 4 +
		       (uint64_t)((int64_t)((uint64_t)(code & 0x3ffffff) << 38) >> 36);
	if ((code & 0xfefff800u) == 0xd63f0000u)
		return CALL_TO_SOMEWHERE;
	return NO_CALL;
}

#endif

static uint64_t find_call(const struct ts_native_process *native,
			  const struct ts_native_range *range, uint64_t address)
{
	uint8_t ahead[AHEAD_BYTES];

	if (address - range->start < AHEAD_BYTES ||
	    ts_native_read(native, address - AHEAD_BYTES, ahead, sizeof(ahead)) != sizeof(ahead))
		return NO_CALL;
	return look_at_call(ahead, address);
}

bool ts_return_address_check(struct ts_native_process *native, uint64_t address,
			     uint64_t *ret_target)
{
	const struct ts_native_range *range = ts_native_range_at(native, address - 1);
	uint64_t call = 0;

	if (!range)
		return false;
	if (!ts_map_get(&native->returns, address, &call)) {
		call = find_call(native, range, address);
		if (ts_map_count(&native->returns) == MAX_RETURNS)
			ts_map_clear(&native->returns);
		ts_map_put(&native->returns, address, call); /* no memory: will be checked again */
	}
	*ret_target = call > CALL_TO_SOMEWHERE ? call : 0;
	return call != NO_CALL;
}
