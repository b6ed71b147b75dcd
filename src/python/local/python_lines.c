/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of an instruction, from CPython's three kinds of line tables. Works on a copy that may
 * be truncated, torn or not a table: it stays within its bytes and returns some number. libc only:
 * also linked into the agent.
 */
#include "python/local/python_objects.h"

/* Lines are sums of differences; garbage must not overflow. */
static int32_t sum(int64_t line)
{
	return line < 0 || line > INT32_MAX ? 0 : (int32_t)line;
}

/* Pairs: bytes of code, lines (signed). A line starts at its pair's address. */
static int32_t of_pairs(const uint8_t *table, size_t bytes, int32_t first_line, uint32_t offset)
{
	uint64_t address = 0;
	int64_t line = first_line;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		address += table[i];
		if (address > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return sum(line);
}

/* Pairs: bytes of code, lines (signed; -128: no line). A pair's line covers its bytes. */
static int32_t of_ranges(const uint8_t *table, size_t bytes, int32_t first_line, uint32_t offset)
{
	uint64_t end = 0;
	int64_t line = first_line;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		end += table[i];
		if (delta != INT8_MIN)
			line += delta;
		if (offset < end)
			return delta == INT8_MIN ? 0 : sum(line);
	}
	return 0;
}

/* Six bits per byte, lowest first; bit 6: another follows. */
static uint64_t next_number(const uint8_t *table, size_t bytes, size_t *at)
{
	uint64_t number = 0;
	unsigned int shift = 0;

	while (*at < bytes) {
		uint8_t byte = table[(*at)++];

		if (shift < 60)
			number |= (uint64_t)(byte & 0x3f) << shift;
		shift += 6;
		if (!(byte & 0x40))
			break;
	}
	return number;
}

static int64_t next_signed(const uint8_t *table, size_t bytes, size_t *at)
{
	uint64_t number = next_number(table, bytes, at);
	int64_t half = (int64_t)(number >> 1 & UINT32_MAX);

	return number & 1 ? -half : half;
}

enum location { SHORT_LAST = 9, ONE_LINE = 10, ONE_LINE_LAST = 12, NO_COLUMNS, LONG, NO_LINE };

/*
 * PEP 657: each entry begins with a byte that has bit 7: kind of location, and instructions minus
 * one.
 */
static int32_t of_locations(const uint8_t *table, size_t bytes, int32_t first_line, uint32_t offset)
{
	uint64_t end = 0;
	int64_t line = first_line;

	for (size_t at = 0; at < bytes;) {
		uint8_t head = table[at++];
		unsigned int kind = head >> 3 & 15;

		end += 2u * ((head & 7u) + 1);
		if (kind == NO_COLUMNS || kind == LONG)
			line += next_signed(table, bytes, &at);
		else if (kind >= ONE_LINE && kind <= ONE_LINE_LAST)
			line += kind - ONE_LINE;
		if (offset < end)
			return kind == NO_LINE ? 0 : sum(line);
		/* Columns and end lines, which have no bit 7. */
		while (at < bytes && !(table[at] & 0x80))
			at++;
	}
	return 0;
}

int32_t ts_python_line(enum ts_python_lines format, const uint8_t *table, size_t bytes,
		       int32_t first_line, uint32_t offset)
{
	switch (format) {
	case TS_PYTHON_LNOTAB:
		return of_pairs(table, bytes, first_line, offset);
	case TS_PYTHON_LINETABLE_10:
		return of_ranges(table, bytes, first_line, offset);
	case TS_PYTHON_LOCATIONS:
		return of_locations(table, bytes, first_line, offset);
	}
	return 0;
}
