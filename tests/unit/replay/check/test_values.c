/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in memory, and sets of byte ranges. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "replay/check/values.h"
#include "replay/plan/ranges.h"
#include "unit/runner.h"

static void check_format(const char *name, uint64_t bits, const char *expected)
{
	const struct ts_value_type *type = ts_value_type_find(name);
	char text[TS_VALUE_BYTES];

	TS_CHECK(type);
	TS_CHECK_STR(ts_value_format(type, &bits, text), expected);
}

TS_TEST(values_as_text)
{
	check_format("f32", 0x3fc00000, "1.5");
	check_format("f32", 0xbf800000, "-1");
	check_format("f32", 0x7f800000, "inf");
	check_format("f32", 0xff800000, "-inf");
	check_format("f32", 0x7fc00000, "nan");
	check_format("f32", 1, "1.40129846e-45");
	check_format("f16", 0x3e00, "1.5");
	check_format("f16", 0x0001, "5.9605e-08");
	check_format("f16", 0x7bff, "65504");
	check_format("bf16", 0x3fc0, "1.5");
	/* 448 is the greatest number of e4m3, which has no infinities. */
	check_format("f8e4m3", 0x38, "1");
	check_format("f8e4m3", 0x7e, "448");
	check_format("f8e4m3", 0xff, "nan");
	check_format("f8e4m3", 0x01, "0.00195");
	check_format("f8e5m2", 0x3c, "1");
	check_format("f8e5m2", 0x7b, "5.7e+04");
	check_format("f8e5m2", 0x7c, "inf");
	check_format("f8e5m2", 0xfd, "nan");
	check_format("f64", 0x3ff8000000000000, "1.5");
	check_format("f64", 0x3fb999999999999a, "0.10000000000000001");
	check_format("i8", 0xff, "-1");
	check_format("u8", 0xff, "255");
	check_format("i64", UINT64_MAX, "-1");
	check_format("u64", UINT64_MAX, "18446744073709551615");
	TS_CHECK(!ts_value_type_find("f8"));
}

static bool is_near(const char *name, uint64_t a, uint64_t b, uint64_t ulp)
{
	const struct ts_value_tolerance tolerance = { .ulp = ulp };

	return ts_value_is_near(ts_value_type_find(name), &tolerance, &a, &b);
}

static bool is_within(const char *name, uint64_t a, uint64_t b, const char *text)
{
	struct ts_value_tolerance tolerance;
	struct ts_error err;

	TS_CHECK_INT(ts_value_tolerance_parse(&tolerance, text, &err), 0);
	return ts_value_is_near(ts_value_type_find(name), &tolerance, &a, &b);
}

TS_TEST(values_that_are_near)
{
	TS_CHECK(is_near("f32", 0x3f800000, 0x3f800004, 4));
	TS_CHECK(!is_near("f32", 0x3f800000, 0x3f800005, 4));
	/* The smallest values above and below 0: two apart, since 0 has two representations. */
	TS_CHECK(is_near("f32", 0x00000001, 0x80000001, 2));
	TS_CHECK(!is_near("f32", 0x00000001, 0x80000001, 1));
	TS_CHECK(is_near("f32", 0x00000000, 0x80000000, 0));
	TS_CHECK(is_near("f32", 0x7fc00000, 0x7fc00001, 0));
	TS_CHECK(!is_near("f32", 0x7fc00000, 0x3f800000, UINT64_MAX));
	TS_CHECK(is_near("f32", 0x7f7fffff, 0x7f800000, 1));
	TS_CHECK(is_near("i8", 0xff, 0x01, 2));
	TS_CHECK(!is_near("u8", 0xff, 0x01, 2));
	TS_CHECK(is_near("i64", INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX));
	TS_CHECK(!is_near("i64", INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX - 1));
}

TS_TEST(absolute_and_relative_distance)
{
	/* 1 and 1.5 */
	TS_CHECK(is_within("f32", 0x3f800000, 0x3fc00000, "abs=0.5"));
	TS_CHECK(!is_within("f32", 0x3f800000, 0x3fc00000, "abs=0.49"));
	TS_CHECK(is_within("f32", 0x3f800000, 0x3fc00000, "rel=0.34"));
	TS_CHECK(!is_within("f32", 0x3f800000, 0x3fc00000, "rel=0.33"));
	TS_CHECK(is_within("f32", 0x3f800000, 0x3fc00000, "abs=1e-9,rel=0.34"));
	TS_CHECK(is_within("f32", 0x3f800000, 0x3fc00000, "rel=1e-9,ulp=4194304"));
	/* -1 and 1: the distance is two of either. */
	TS_CHECK(is_within("f16", 0x3c00, 0xbc00, "rel=2"));
	TS_CHECK(!is_within("f16", 0x3c00, 0xbc00, "abs=1.99,rel=1.99"));
	TS_CHECK(is_within("bf16", 0x3f80, 0x3fc0, "abs=0.5"));
	TS_CHECK(is_within("f64", 0x3ff0000000000000, 0x3ff8000000000000, "abs=5e-1"));
	/* Zeros of both signs, NaNs, infinities. */
	TS_CHECK(is_within("f32", 0x00000000, 0x80000000, "abs=1e-30"));
	TS_CHECK(is_within("f32", 0x7fc00000, 0xffc00001, "abs=1e-30"));
	TS_CHECK(!is_within("f32", 0x7fc00000, 0x3f800000, "abs=1e300,rel=1e300"));
	TS_CHECK(!is_within("f32", 0x7f800000, 0x3f800000, "abs=1e300,rel=1"));
	TS_CHECK(!is_within("f32", 0x7f800000, 0xff800000, "rel=1"));
	/* Integers that a double does not hold exactly. */
	TS_CHECK(is_within("u64", UINT64_MAX, UINT64_MAX - 3, "abs=3"));
	TS_CHECK(!is_within("u64", UINT64_MAX, UINT64_MAX - 3, "abs=2"));
	TS_CHECK(is_within("i8", 0xff, 0x01, "abs=2"));
	TS_CHECK(is_within("i32", 1000, 1001, "rel=0.001"));
	TS_CHECK(!is_within("i32", 1000, 1002, "rel=0.001"));
}

TS_TEST(tolerances_as_text)
{
	static const char *const bad[] = { "",        "4",      "ulp",    "ulp=",      "ulp=-1",
					   "ulp=1.5", "abs=x",  "abs=-1", "rel=1e999", "rel=nan",
					   "abs=1,",  ",abs=1", "abs=1 ", "eps=1",     "abs=1e" };
	struct ts_value_tolerance tolerance = { .ulp = 77 };
	struct ts_error err;

	for (size_t i = 0; i < TS_ARRAY_SIZE(bad); i++) {
		TS_CHECK_INT(ts_value_tolerance_parse(&tolerance, bad[i], &err), TS_EINVAL);
		TS_CHECK_INT(tolerance.ulp, 77);
	}
	TS_CHECK_INT(ts_value_tolerance_parse(&tolerance, "rel=1e-6,ulp=4,abs=0", &err), 0);
	TS_CHECK_INT(tolerance.ulp, 4);
	TS_CHECK(tolerance.relative == 1e-6 && tolerance.absolute == 0);
	TS_CHECK(ts_value_tolerance_is_set(&tolerance));
	TS_CHECK_INT(ts_value_tolerance_parse(&tolerance, "ulp=0", &err), 0);
	TS_CHECK(!ts_value_tolerance_is_set(&tolerance));
}

TS_TEST(differences)
{
	const float a[] = { 1, 2, 3, 4 }, b[] = { 1, 2, nextafterf(3, 4), 5 };
	const struct ts_value_type *type = ts_value_type_find("f32");
	const struct ts_value_tolerance one = { .ulp = 1 }, many = { .ulp = 1000 };
	struct ts_value_difference difference = ts_value_compare(NULL, NULL, a, b, sizeof(a));

	TS_CHECK_INT(difference.first_byte, 8);
	TS_CHECK_INT(difference.bytes, 2);
	difference = ts_value_compare(type, &one, a, b, sizeof(a));
	TS_CHECK_INT(difference.first_value, 3);
	TS_CHECK_INT(difference.first_byte, 14);
	difference = ts_value_compare(type, &one, a, b, 12);
	TS_CHECK_INT(difference.bytes, 0);
	/* Incomplete values are compared by bytes. */
	difference = ts_value_compare(type, &many, "abcdX", "abcdY", 5);
	TS_CHECK_INT(difference.first_byte, 4);
	TS_CHECK_INT(difference.bytes, 1);
}

/* Compared with an array of bytes. */
TS_TEST(ranges_are_sets_of_bytes)
{
	uint64_t state = 9;
	struct ts_ranges ranges = { 0 };
	bool bytes[97] = { false };

	for (int i = 0; i < 20000; i++) {
		uint64_t from, to;
		bool touch = false, put;

		state = state * 6364136223846793005u + 1442695040888963407u;
		from = (state >> 33) % 97;
		to = from + (state >> 45) % (98 - from);
		put = state >> 62 & 1;
		for (uint64_t k = from; k < to; k++)
			touch |= bytes[k];
		TS_CHECK_INT(ts_ranges_touch(&ranges, from, to), touch);
		TS_CHECK_INT(put ? ts_ranges_add(&ranges, from, to)
				 : ts_ranges_cut(&ranges, from, to),
			     0);
		for (uint64_t k = from; k < to; k++)
			bytes[k] = put;
		for (size_t k = 0; k < ranges.count; k++) {
			TS_CHECK(ranges.items[k].from < ranges.items[k].to);
			TS_CHECK(k == 0 || ranges.items[k - 1].to < ranges.items[k].from);
		}
		for (uint64_t k = 0; k < 97; k++)
			TS_CHECK_INT(ts_ranges_touch(&ranges, k, k + 1), bytes[k]);
	}
	ts_ranges_release(&ranges);
}
