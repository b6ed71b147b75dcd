/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handmade line tables, truncated and invalid ones. tests/python/lines.sh compares all of Python's
 * own.
 */
#include "python/local/python_objects.h"
#include "unit/runner.h"

#define LINE(format, table, first, offset) \
	ts_python_line(format, table, sizeof(table), first, offset)

TS_TEST(lnotab)
{
	/*
	 * From 10: 6 bytes, then line 11; 50 bytes, then 2 back; 2 bytes, then 200 forward in two
	 * steps.
	 */
	static const uint8_t table[] = { 6, 1, 50, 0xfe, 2, 127, 0, 73 };

	TS_CHECK_INT(LINE(TS_PYTHON_LNOTAB, table, 10, 0), 10);
	TS_CHECK_INT(LINE(TS_PYTHON_LNOTAB, table, 10, 5), 10);
	TS_CHECK_INT(LINE(TS_PYTHON_LNOTAB, table, 10, 6), 11);
	TS_CHECK_INT(LINE(TS_PYTHON_LNOTAB, table, 10, 55), 11);
	TS_CHECK_INT(LINE(TS_PYTHON_LNOTAB, table, 10, 56), 9);
	TS_CHECK_INT(LINE(TS_PYTHON_LNOTAB, table, 10, 58), 209);
	TS_CHECK_INT(LINE(TS_PYTHON_LNOTAB, table, 10, UINT32_MAX), 209);
	TS_CHECK_INT(ts_python_line(TS_PYTHON_LNOTAB, table, 0, 10, 100), 10);
	TS_CHECK_INT(ts_python_line(TS_PYTHON_LNOTAB, table, 3, 10, 100), 11);
}

TS_TEST(linetable)
{
	/* 4 bytes in line 7, 2 without one, 254 and 6 in line 8, 2 in line 5. */
	static const uint8_t table[] = { 4, 0, 2, 0x80, 254, 1, 6, 0, 2, 0xfd };

	TS_CHECK_INT(LINE(TS_PYTHON_LINETABLE_10, table, 7, 0), 7);
	TS_CHECK_INT(LINE(TS_PYTHON_LINETABLE_10, table, 7, 3), 7);
	TS_CHECK_INT(LINE(TS_PYTHON_LINETABLE_10, table, 7, 4), 0);
	TS_CHECK_INT(LINE(TS_PYTHON_LINETABLE_10, table, 7, 6), 8);
	TS_CHECK_INT(LINE(TS_PYTHON_LINETABLE_10, table, 7, 264), 8);
	TS_CHECK_INT(LINE(TS_PYTHON_LINETABLE_10, table, 7, 266), 5);
	TS_CHECK_INT(LINE(TS_PYTHON_LINETABLE_10, table, 7, 268), 0);
	TS_CHECK_INT(ts_python_line(TS_PYTHON_LINETABLE_10, table, 5, 7, 100), 0);
}

TS_TEST(locations)
{
	static const uint8_t table[] = {
		0x80 | 15 << 3 | 0,                    /* one instruction without a line */
		0x80 | 3 << 3 | 1,  0x25,              /* two, short, same line */
		0x80 | 12 << 3 | 0, 4,           9,    /* one, two lines forward */
		0x80 | 13 << 3 | 7, 0x40 | 0x2c, 0x06, /* eight, no columns, 0x1ac/2 = 214 on */
		0x80 | 14 << 3 | 0, 0x0b,        0x02, 0x03, 0x04, /* one, long, five back */
	};

	TS_CHECK_INT(LINE(TS_PYTHON_LOCATIONS, table, 100, 0), 0);
	TS_CHECK_INT(LINE(TS_PYTHON_LOCATIONS, table, 100, 2), 100);
	TS_CHECK_INT(LINE(TS_PYTHON_LOCATIONS, table, 100, 5), 100);
	TS_CHECK_INT(LINE(TS_PYTHON_LOCATIONS, table, 100, 6), 102);
	TS_CHECK_INT(LINE(TS_PYTHON_LOCATIONS, table, 100, 8), 316);
	TS_CHECK_INT(LINE(TS_PYTHON_LOCATIONS, table, 100, 23), 316);
	TS_CHECK_INT(LINE(TS_PYTHON_LOCATIONS, table, 100, 24), 311);
	TS_CHECK_INT(LINE(TS_PYTHON_LOCATIONS, table, 100, 26), 0);
	/* Truncated inside a number. */
	TS_CHECK_INT(ts_python_line(TS_PYTHON_LOCATIONS, table, 7, 100, 6), 102);
	TS_CHECK_INT(ts_python_line(TS_PYTHON_LOCATIONS, table, 8, 100, 8) > 0, 1);
}

TS_TEST(no_table_at_all)
{
	uint8_t bytes[4096];
	uint32_t random = 1;

	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			random = random * 1664525 + 1013904223;
			bytes[i] = (uint8_t)(random >> 24) | (round & 1 ? 0x40 : 0);
		}
		for (int format = TS_PYTHON_LNOTAB; format <= TS_PYTHON_LOCATIONS; format++)
			for (uint32_t offset = 0; offset < 100000; offset += 9999)
				TS_CHECK(ts_python_line((enum ts_python_lines)format, bytes,
							sizeof(bytes), INT32_MAX, offset) >= 0);
	}
}
