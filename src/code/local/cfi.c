/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the .eh_frame entry of an address: by the sorted table of .eh_frame_hdr, or by one that
 * we built. libc only, no heap: runs inside observed programs.
 */
#include "code/local/cfi.h"
#include "base/local/macros.h"

#include "code/local/cursor.h"

/* DW_EH_PE_...: pointer encoding and base. */
#define ENCODED_FORMAT 0x0fu
#define ENCODED_RELATIVE 0x70u
#define RELATIVE_TO_PC 0x10u
#define RELATIVE_TO_DATA 0x30u
#define ENCODED_INDIRECT 0x80u
#define ENCODED_NONE 0xffu
#define SORTED_PAIRS 0x3bu /* of int32_t, relative to the header */

#define MAX_RECORD_BYTES \
	(1u << 20) /* size limit of one CIE or FDE; real ones have a few hundred bytes */

/* ---- pointers ---- */

static uint64_t read_format(struct ts_cursor *cursor, uint8_t format)
{
	switch (format) {
	case 0x00: /* absptr */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		return ts_cursor_u64(cursor);
	case 0x01:
		return ts_cursor_uleb(cursor);
	case 0x02:
		return ts_cursor_u16(cursor);
	case 0x03:
		return ts_cursor_u32(cursor);
	case 0x09:
		return (uint64_t)ts_cursor_sleb(cursor);
	case 0x0a:
		return (uint64_t)(int64_t)(int16_t)ts_cursor_u16(cursor);
	case 0x0b:
		return (uint64_t)(int64_t)(int32_t)ts_cursor_u32(cursor);
	default:
		ts_cursor_fail(cursor);
		return 0;
	}
}

uint64_t ts_cfi_pointer(const struct ts_cfi *cfi, struct ts_cursor *cursor, uint8_t encoding)
{
	uint64_t location = cfi->frames_address + (uint64_t)(cursor->at - cfi->frames);
	uint64_t value = read_format(cursor, encoding & ENCODED_FORMAT);

	if (encoding & ENCODED_INDIRECT) /* only personality routines, which are not needed */
		return 0;
	switch (encoding & ENCODED_RELATIVE) {
	case 0:
		return value;
	case RELATIVE_TO_PC:
		return location + value;
	case RELATIVE_TO_DATA:
		return cfi->header_address + value;
	default:
		ts_cursor_fail(cursor);
		return 0;
	}
}

/* ---- records ---- */

/* The record at an offset: its content after the length. False: none, or the empty terminator. */
static bool open_record(const struct ts_cfi *cfi, size_t offset, struct ts_cursor *ret_cursor)
{
	struct ts_cursor cursor = { .at = cfi->frames, .end = cfi->frames + cfi->frames_bytes };
	uint32_t bytes;

	ts_cursor_skip(&cursor, offset);
	bytes = ts_cursor_u32(&cursor);
	/* 0xffffffff starts a 64-bit length, which no linker writes. */
	if (bytes < 4 || bytes > MAX_RECORD_BYTES || bytes > ts_cursor_left(&cursor))
		return false;
	cursor.end = cursor.at + bytes;
	*ret_cursor = cursor;
	return !cursor.is_bad;
}

static void read_augmentation(const struct ts_cfi *cfi, struct ts_cursor *cursor,
			      const char *letters, struct ts_cfi_common *common)
{
	for (; *letters && !cursor->is_bad; letters++) {
		switch (*letters) {
		case 'R':
			common->encoding = ts_cursor_u8(cursor);
			break;
		case 'P':
			ts_cfi_pointer(cfi, cursor, ts_cursor_u8(cursor));
			break;
		case 'L':
			ts_cursor_u8(cursor);
			break;
		case 'S':
			common->is_signal = true;
			break;
		case 'B': /* aarch64: signed with the B key */
		case 'G': /* aarch64: tagged memory */
			break;
		default: /* 'z' gave the length: the rest can be skipped */
			return;
		}
	}
}

static bool read_letters(struct ts_cursor *cursor, char *ret_letters, size_t capacity)
{
	for (size_t i = 0; i < capacity; i++) {
		ret_letters[i] = (char)ts_cursor_u8(cursor);
		if (ret_letters[i] == '\0')
			return !cursor->is_bad;
	}
	return false;
}

static bool read_common(const struct ts_cfi *cfi, size_t offset, struct ts_cfi_common *ret_common)
{
	struct ts_cfi_common common = { 0 };
	struct ts_cursor cursor;
	char letters[16];
	uint8_t version;
	uint64_t reg;

	if (!open_record(cfi, offset, &cursor) || ts_cursor_u32(&cursor) != 0)
		return false;
	version = ts_cursor_u8(&cursor);
	if ((version != 1 && version != 3) || !read_letters(&cursor, letters, sizeof(letters)))
		return false;
	common.code_factor = ts_cursor_uleb(&cursor);
	common.data_factor = ts_cursor_sleb(&cursor);
	reg = version == 1 ? ts_cursor_u8(&cursor) : ts_cursor_uleb(&cursor);
	if (reg >= TS_UNWIND_REGISTERS || (letters[0] != 'z' && letters[0] != '\0'))
		return false;
	common.return_register = (uint8_t)reg;
	common.has_augmentation = letters[0] == 'z';
	common.program = cursor.at;
	if (common.has_augmentation) {
		uint64_t bytes = ts_cursor_uleb(&cursor);

		common.program = cursor.at + TS_MIN(bytes, ts_cursor_left(&cursor));
		read_augmentation(cfi, &cursor, letters + 1, &common);
	}
	common.program_end = cursor.end;
	*ret_common = common;
	return !cursor.is_bad;
}

struct frame_record {
	struct ts_cfi_common common;
	uint64_t start, end;
	const uint8_t *program, *program_end;
};

static bool read_frame(const struct ts_cfi *cfi, size_t offset, struct frame_record *ret_frame)
{
	struct frame_record frame;
	struct ts_cursor cursor;
	uint32_t back;
	uint64_t bytes;

	if (!open_record(cfi, offset, &cursor))
		return false;
	back = ts_cursor_u32(&cursor);
	/* Relative to its own offset; 0 is a CIE. */
	if (back == 0 || back > offset + 4 || !read_common(cfi, offset + 4 - back, &frame.common))
		return false;
	frame.start = ts_cfi_pointer(cfi, &cursor, frame.common.encoding);
	bytes = read_format(&cursor, frame.common.encoding & ENCODED_FORMAT);
	if (__builtin_add_overflow(frame.start, bytes, &frame.end))
		return false;
	if (frame.common.has_augmentation)
		ts_cursor_skip(&cursor, ts_cursor_uleb(&cursor));
	frame.program = cursor.at;
	frame.program_end = cursor.end;
	*ret_frame = frame;
	return !cursor.is_bad;
}

/* ---- the file's table ---- */

void ts_cfi_read_header(struct ts_cfi *cfi, const uint8_t *header, size_t bytes)
{
	struct ts_cursor cursor = { .at = header, .end = header + bytes };
	uint8_t version = ts_cursor_u8(&cursor), frames_encoding = ts_cursor_u8(&cursor);
	uint8_t count_encoding = ts_cursor_u8(&cursor), table_encoding = ts_cursor_u8(&cursor);
	uint64_t count;

	if (version != 1 || table_encoding != SORTED_PAIRS || count_encoding == ENCODED_NONE)
		return;
	read_format(&cursor, frames_encoding & ENCODED_FORMAT);
	count = read_format(&cursor, count_encoding & ENCODED_FORMAT);
	if (cursor.is_bad)
		return;
	cfi->table = cursor.at;
	cfi->table_count = TS_MIN(count, ts_cursor_left(&cursor) / 8);
}

static uint64_t table_value(const struct ts_cfi *cfi, size_t index, size_t which)
{
	int32_t value;

	memcpy(&value, cfi->table + 8 * index + 4 * which, sizeof(value));
	return cfi->header_address + (uint64_t)(int64_t)value;
}

static bool find_in_table(const struct ts_cfi *cfi, uint64_t address, size_t *ret_offset)
{
	size_t low = 0, high = cfi->table_count;
	uint64_t location;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table_value(cfi, middle, 0) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	location = table_value(cfi, low - 1, 1);
	*ret_offset = (size_t)(location - cfi->frames_address);
	return location >= cfi->frames_address;
}

/* ---- a table of our own ---- */

bool ts_cfi_next(const struct ts_cfi *cfi, size_t *offset, struct ts_cfi_entry *ret_entry)
{
	struct ts_cursor cursor;
	struct frame_record frame;

	while (open_record(cfi, *offset, &cursor)) {
		size_t at = *offset;

		*offset = (size_t)(cursor.end - cfi->frames);
		if (!read_frame(cfi, at, &frame))
			continue;
		*ret_entry = (struct ts_cfi_entry){ .start = frame.start,
						    .end = frame.end,
						    .offset = at };
		return true;
	}
	return false;
}

static bool find_in_entries(const struct ts_cfi *cfi, uint64_t address, size_t *ret_offset)
{
	size_t low = 0, high = cfi->entry_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cfi->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	*ret_offset = cfi->entries[low - 1].offset;
	return true;
}

/* ---- both ---- */

bool ts_cfi_frames_address(const void *header, uint64_t header_address,
			   const struct ts_cfi_segment *segment, uint64_t *ret_address)
{
	const uint8_t *bytes = header, *end = (const uint8_t *)segment->bytes + segment->count;
	struct ts_cursor cursor = { .at = bytes + 4, .end = end };
	uint64_t offset;

	if (bytes < (const uint8_t *)segment->bytes || end - bytes < 8)
		return false;
	/* The pointer to .eh_frame is relative to its own address. */
	offset = read_format(&cursor, bytes[1] & ENCODED_FORMAT);
	*ret_address = header_address + 4 + offset;
	return !cursor.is_bad &&
	       (bytes[1] & (ENCODED_RELATIVE | ENCODED_INDIRECT)) == RELATIVE_TO_PC;
}

void ts_cfi_init_mapped(struct ts_cfi *cfi, const void *header, uint64_t header_address,
			const struct ts_cfi_segment *segment, const struct ts_cfi_segment *frames)
{
	const uint8_t *end = (const uint8_t *)segment->bytes + segment->count;
	uint64_t at;

	*cfi = (struct ts_cfi){ .header_address = header_address };
	if (!ts_cfi_frames_address(header, header_address, segment, &at) || at < frames->address ||
	    at - frames->address >= frames->count)
		return;
	cfi->frames = (const uint8_t *)frames->bytes + (at - frames->address);
	cfi->frames_bytes = frames->count - (at - frames->address);
	cfi->frames_address = at;
	ts_cfi_read_header(cfi, header, (size_t)(end - (const uint8_t *)header));
}

bool ts_cfi_find(struct ts_cfi *cfi, uint64_t address, struct ts_cfi_row *ret_row)
{
	struct frame_record frame;
	size_t offset;

	if (!cfi->frames)
		return false;
	if (cfi->table_count == 0 && cfi->make_entries && !cfi->is_indexed)
		cfi->make_entries(cfi);
	if (!(cfi->table_count ? find_in_table(cfi, address, &offset)
			       : find_in_entries(cfi, address, &offset)))
		return false;
	if (!read_frame(cfi, offset, &frame) || address < frame.start || address >= frame.end)
		return false;
	*ret_row = (struct ts_cfi_row){ .start = frame.start,
					.end = frame.end,
					.return_register = frame.common.return_register,
					.is_signal = frame.common.is_signal };
	return ts_cfi_run(cfi, &frame.common, frame.program, frame.program_end, address, ret_row);
}
