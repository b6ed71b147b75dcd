/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads numbers from untrusted bytes in DWARF's encodings. A read beyond the end returns 0 and sets
 * a sticky failure.
 */
#ifndef TS_CODE_LOCAL_CURSOR_H
#define TS_CODE_LOCAL_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ts_cursor {
	const uint8_t *at, *end;
	bool is_bad;
};

static inline size_t ts_cursor_left(const struct ts_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* Fails all further reads. */
static inline void ts_cursor_fail(struct ts_cursor *cursor)
{
	cursor->is_bad = true;
	cursor->at = cursor->end;
}

static inline void ts_cursor_skip(struct ts_cursor *cursor, uint64_t bytes)
{
	if (bytes > ts_cursor_left(cursor))
		ts_cursor_fail(cursor);
	else
		cursor->at += bytes;
}

static inline void ts_cursor_copy(struct ts_cursor *cursor, void *to, size_t bytes)
{
	memset(to, 0, bytes);
	if (bytes > ts_cursor_left(cursor)) {
		ts_cursor_fail(cursor);
		return;
	}
	memcpy(to, cursor->at, bytes);
	cursor->at += bytes;
}

static inline uint8_t ts_cursor_u8(struct ts_cursor *cursor)
{
	uint8_t value;

	ts_cursor_copy(cursor, &value, sizeof(value));
	return value;
}

static inline uint16_t ts_cursor_u16(struct ts_cursor *cursor)
{
	uint16_t value;

	ts_cursor_copy(cursor, &value, sizeof(value));
	return value;
}

static inline uint32_t ts_cursor_u32(struct ts_cursor *cursor)
{
	uint32_t value;

	ts_cursor_copy(cursor, &value, sizeof(value));
	return value;
}

static inline uint64_t ts_cursor_u64(struct ts_cursor *cursor)
{
	uint64_t value;

	ts_cursor_copy(cursor, &value, sizeof(value));
	return value;
}

/* LEB128: seven bits per byte; bits beyond 64 are dropped. */
static inline uint64_t ts_cursor_uleb(struct ts_cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t byte = ts_cursor_u8(cursor);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

static inline int64_t ts_cursor_sleb(struct ts_cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t byte = ts_cursor_u8(cursor);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if ((byte & 0x40) && shift + 7 < 64)
			value |= ~(uint64_t)0 << (shift + 7);
		return (int64_t)value;
	}
}

#endif
