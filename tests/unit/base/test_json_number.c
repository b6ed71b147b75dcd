/* SPDX-License-Identifier: Apache-2.0 */
/* JSON numbers: exact integers, nearest doubles, and fixed-point times without loss. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/real.h"
#include "unit/runner.h"

/* Scans a number in memory of exactly its size; `behind` terminates the token. */
static int scan(const char *text, const char *behind, bool last, struct ts_json_number *number)
{
	size_t length = strlen(text), total = length + strlen(behind);
	TS_AUTO_FREE char *copy = malloc(total + !total);
	struct ts_json js;
	int rc;

	memcpy(copy, text, length);
	memcpy(copy + length, behind, total - length);
	ts_json_init(&js, copy, total, last);
	rc = ts_json_scan_number(&js, number);
	if (rc == 0) {
		TS_CHECK(js.next == copy + length);
		TS_CHECK(number->text + number->length == js.next);
		number->text = NULL;
	} else {
		TS_CHECK(js.next == copy);
	}
	return rc;
}

static void check_number(const char *text, enum ts_json_number_kind kind, int64_t integer,
			 double real)
{
	static const char *const behind[] = { ",", "}", "]", " ", "\n", "" };
	struct ts_json_number number = { 0 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(behind); i++) {
		if (scan(text, behind[i], true, &number))
			ts_test_fail(__FILE__, __LINE__, "%s is refused", text);
		if (number.kind != kind)
			ts_test_fail(__FILE__, __LINE__, "%s is of kind %d", text, number.kind);
		if (kind == TS_JSON_INT)
			TS_CHECK_INT(number.integer, integer);
		else if (isnan(real))
			TS_CHECK(isnan(number.real));
		else
			TS_CHECK_MEM(&number.real, &real, sizeof(real));
	}
	/* More digits might follow. */
	TS_CHECK_INT(scan(text, "", false, &number), TS_JSON_MORE);
}

TS_TEST(integers)
{
	check_number("0", TS_JSON_INT, 0, 0);
	check_number("7", TS_JSON_INT, 7, 0);
	check_number("-1", TS_JSON_INT, -1, 0);
	check_number("123456789012345678", TS_JSON_INT, 123456789012345678, 0);
	check_number("1234567890123456789", TS_JSON_INT, 1234567890123456789, 0);
	check_number("9223372036854775807", TS_JSON_INT, INT64_MAX, 0);
	check_number("-9223372036854775808", TS_JSON_INT, INT64_MIN, 0);
	check_number("9223372036854775808", TS_JSON_BIG, 0, 9223372036854775808.0);
	check_number("-9223372036854775809", TS_JSON_BIG, 0, -9223372036854775808.0);
	check_number("18446744073709551616", TS_JSON_BIG, 0, 18446744073709551616.0);
	check_number("99999999999999999999999999999999999999", TS_JSON_BIG, 0, 1e38);
	check_number("-0", TS_JSON_DOUBLE, 0, -0.0);
}

TS_TEST(doubles)
{
	check_number("0.0", TS_JSON_DOUBLE, 0, 0.0);
	check_number("-0.0", TS_JSON_DOUBLE, 0, -0.0);
	check_number("0e5", TS_JSON_DOUBLE, 0, 0.0);
	check_number("5.0", TS_JSON_DOUBLE, 0, 5.0);
	check_number("-2.5", TS_JSON_DOUBLE, 0, -2.5);
	check_number("0.1", TS_JSON_DOUBLE, 0, 0.1);
	check_number("1e3", TS_JSON_DOUBLE, 0, 1000.0);
	check_number("1E+3", TS_JSON_DOUBLE, 0, 1000.0);
	check_number("1e-3", TS_JSON_DOUBLE, 0, 1e-3);
	check_number("1712195495607293.168", TS_JSON_DOUBLE, 0, 1712195495607293.168);
	check_number("1e22", TS_JSON_DOUBLE, 0, 1e22);
	check_number("1e23", TS_JSON_DOUBLE, 0, 1e23);
	check_number("9007199254740993.0", TS_JSON_DOUBLE, 0, 9007199254740992.0);
	check_number("9007199254740993.00000000000000000000001", TS_JSON_DOUBLE, 0,
		     9007199254740994.0);
	check_number("1.7976931348623157e308", TS_JSON_DOUBLE, 0, 1.7976931348623157e308);
	check_number("4.9e-324", TS_JSON_DOUBLE, 0, 4.9e-324);
	check_number("1e999", TS_JSON_DOUBLE, 0, INFINITY);
	check_number("-1e999", TS_JSON_DOUBLE, 0, -INFINITY);
	check_number("1e-999", TS_JSON_DOUBLE, 0, 0.0);
	check_number("1e99999999999999999999999", TS_JSON_DOUBLE, 0, INFINITY);
	check_number("1e-99999999999999999999999", TS_JSON_DOUBLE, 0, 0.0);
	check_number("0.0e99999999999999999999999", TS_JSON_DOUBLE, 0, 0.0);
	check_number("NaN", TS_JSON_NONFINITE, 0, NAN);
	check_number("nan", TS_JSON_NONFINITE, 0, NAN);
	check_number("-nan", TS_JSON_NONFINITE, 0, NAN);
	check_number("Infinity", TS_JSON_NONFINITE, 0, INFINITY);
	check_number("-Infinity", TS_JSON_NONFINITE, 0, -INFINITY);
	check_number("inf", TS_JSON_NONFINITE, 0, INFINITY);
	check_number("-inf", TS_JSON_NONFINITE, 0, -INFINITY);
}

TS_TEST(what_is_no_number)
{
	static const char *const texts[] = { "+1",  "007",   "-01",   "00",   "0x1F",  ".5",
					     "1.",  "1.e3",  "1e",    "1e+",  "-",     "--1",
					     "1a",  "1_000", "1-2",   "NaNx", "Inf",   "infinity",
					     "INF", "true",  "\"1\"", "{",    "1.2.3", "1e5.",
					     "1+1", "-x" };
	struct ts_json_number number = { 0 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(texts); i++) {
		if (scan(texts[i], ",", true, &number) != TS_EFORMAT)
			ts_test_fail(__FILE__, __LINE__, "%s is taken", texts[i]);
	}
	TS_CHECK_INT(scan("", "", true, &number), TS_EFORMAT);
	TS_CHECK_INT(scan("", "", false, &number), TS_JSON_MORE);
	TS_CHECK_INT(scan("-", "", false, &number), TS_JSON_MORE);
	TS_CHECK_INT(scan("1.", "", false, &number), TS_JSON_MORE);
	TS_CHECK_INT(scan("1e", "", false, &number), TS_JSON_MORE);
	TS_CHECK_INT(scan("1e-", "", false, &number), TS_JSON_MORE);
	TS_CHECK_INT(scan("Infin", "", false, &number), TS_JSON_MORE);
}

TS_TEST(doubles_agree_with_libc)
{
	uint64_t random = 42;
	char text[128];

	for (int i = 0; i < 300000; i++) {
		struct ts_json_number number = { 0 };
		double value, expected;

		random = random * 6364136223846793005u + 1442695040888963407u;
		memcpy(&value, &random, sizeof(value));
		switch (i % 4) {
		case 0:
			if (!isfinite(value))
				continue;
			snprintf(text, sizeof(text), "%.*e", (int)(random % 25), value);
			break;
		case 1:
			snprintf(text, sizeof(text), "%" PRIu64 ".%03d", random >> 20,
				 (int)(random % 1000));
			break;
		case 2:
			snprintf(text, sizeof(text), "-0.%" PRIu64 "e%d", random,
				 (int)(random >> 40) % 40 - 20);
			break;
		default:
			snprintf(text, sizeof(text), "%" PRIu64 "e%d", random >> (random % 50),
				 (int)(random >> 33) % 60 - 30);
		}
		expected = strtod(text, NULL);
		TS_CHECK_INT(scan(text, ",", false, &number), 0);
		if (memcmp(&number.real, &expected, sizeof(expected)) != 0 &&
		    number.kind != TS_JSON_INT)
			ts_test_fail(__FILE__, __LINE__, "%s: %a and %a", text, number.real,
				     expected);
	}
}

/* Halfway between two doubles, and slightly more 3,000 digits later. */
TS_TEST(long_numbers_are_rounded_right)
{
	enum { ZEROS = 3000 };
	static char text[ZEROS + 64];
	struct ts_json_number number = { 0 };
	size_t at = (size_t)snprintf(text, sizeof(text), "9007199254740993.");

	memset(text + at, '0', ZEROS);
	text[at + ZEROS] = '\0';
	TS_CHECK_INT(scan(text, ",", false, &number), 0);
	TS_CHECK(number.real == 9007199254740992.0);
	text[at + ZEROS - 1] = '1';
	TS_CHECK_INT(scan(text, ",", false, &number), 0);
	TS_CHECK(number.real == 9007199254740994.0);
	/* Leading zeros after the point, undone by the exponent. */
	memcpy(text, "0.0000000000000000", 17);
	text[at + ZEROS - 1] = '5';
	memcpy(text + at + ZEROS, "e3015", sizeof("e3015"));
	TS_CHECK_INT(scan(text, ",", false, &number), 0);
	TS_CHECK(number.real == 5.0);
}

static void check_us(const char *text, int rc, int64_t expected)
{
	size_t length = strlen(text);
	TS_AUTO_FREE char *copy = malloc(length + 1 + !length);
	int64_t ns = 77;
	struct ts_json js;

	memcpy(copy, text, length);
	if (ts_json_decimal_ns(copy, copy + length, &ns) != rc || ns != (rc ? 77 : expected))
		ts_test_fail(__FILE__, __LINE__, "%s: %" PRId64, text, ns);
	if (rc)
		return;
	copy[length] = ',';
	ts_json_init(&js, copy, length + 1, false);
	TS_CHECK_INT(ts_json_scan_us(&js, &ns), 0);
	TS_CHECK_INT(ns, expected);
	TS_CHECK(js.next == copy + length);
	ts_json_init(&js, copy, length, false);
	TS_CHECK_INT(ts_json_scan_us(&js, &ns), TS_JSON_MORE);
	TS_CHECK(js.next == copy);
}

TS_TEST(microseconds)
{
	check_us("0", 0, 0);
	check_us("-0", 0, 0);
	check_us("1712195495607293.168", 0, 1712195495607293168);
	check_us("1712195495607293", 0, 1712195495607293000);
	check_us("1.2e3", 0, 1200000);
	check_us("-5", 0, -5000);
	check_us("-5.25", 0, -5250);
	check_us("0.001", 0, 1);
	check_us("0.0004", 0, 0);
	check_us("0.0005", 0, 1);
	check_us("-0.0005", 0, -1);
	check_us("0.00049999999999999999999999999", 0, 0);
	check_us("1.2345", 0, 1235);
	check_us("1.2344999", 0, 1234);
	check_us("0.9995", 0, 1000);
	check_us("123456e-3", 0, 123456);
	check_us("5e-4", 0, 1);
	check_us("4e-4", 0, 0);
	check_us("5e-5", 0, 0);
	check_us("9e-5", 0, 0);
	check_us("0.000000001e9", 0, 1000);
	check_us("1e-1000000000000000000000", 0, 0);
	check_us("0e1000000000000000000000", 0, 0);
	check_us("1E2", 0, 100000);
	check_us("9223372036854775.807", 0, INT64_MAX);
	check_us("9223372036854775.8074", 0, INT64_MAX);
	check_us("-9223372036854775.808", 0, INT64_MIN);
	check_us("922337203685477.5807e1", 0, INT64_MAX);
	check_us("9223372036854775.808", TS_EFORMAT, 0);
	check_us("9223372036854775.8075", TS_EFORMAT, 0);
	check_us("-9223372036854775.809", TS_EFORMAT, 0);
	check_us("9999999999999999.999", TS_EFORMAT, 0);
	check_us("9999999999999999.9999", TS_EFORMAT, 0);
	check_us("99999999999999999", TS_EFORMAT, 0);
	check_us("1e16", TS_EFORMAT, 0);
	check_us("1e1000000000000000000000", TS_EFORMAT, 0);
	check_us("NaN", TS_EFORMAT, 0);
	check_us("Infinity", TS_EFORMAT, 0);
	check_us("", TS_EFORMAT, 0);
	check_us(" 1", TS_EFORMAT, 0);
	check_us("1 ", TS_EFORMAT, 0);
	check_us("1,", TS_EFORMAT, 0);
	check_us("01", TS_EFORMAT, 0);
	check_us("+1", TS_EFORMAT, 0);
	check_us("abc", TS_EFORMAT, 0);
}

TS_TEST(microseconds_read_back_what_was_written)
{
	TS_SCOPED(ts_text) text = { 0 };
	uint64_t random = 5;

	for (int i = 0; i < 300000; i++) {
		int64_t ns, back;

		random = random * 6364136223846793005u + 1442695040888963407u;
		ns = (int64_t)random >> (i % 60);
		ts_text_clear(&text);
		ts_text_append_us(&text, ns);
		TS_CHECK_INT(ts_json_decimal_ns(text.data, text.data + text.length, &back), 0);
		TS_CHECK_INT(back, ns);
	}
}

TS_TEST(other_places)
{
	struct ts_json js;
	int64_t value;

	ts_json_init(&js, " 1712195495.607293168 ", 22, true);
	TS_CHECK_INT(ts_json_scan_decimal(&js, 9, &value), 0);
	TS_CHECK_INT(value, 1712195495607293168);
	ts_json_init(&js, "-2.5", 4, true);
	TS_CHECK_INT(ts_json_scan_decimal(&js, 0, &value), 0);
	TS_CHECK_INT(value, -3);
	ts_json_init(&js, "1", 1, true);
	TS_CHECK_INT(ts_json_scan_decimal(&js, 18, &value), 0);
	TS_CHECK_INT(value, 1000000000000000000);
	ts_json_init(&js, "1", 1, true);
	TS_CHECK_INT(ts_json_scan_decimal(&js, 19, &value), TS_EFORMAT);
	TS_CHECK_STR(js.reason, "number is too large");
}

/* Every finite double reads back as written, and so do the infinities. */
TS_TEST(doubles_read_back_what_was_written)
{
	TS_SCOPED(ts_text) text = { 0 };
	uint64_t random = 9;

	for (int i = 0; i < 100000; i++) {
		struct ts_json_number number = { 0 };
		double value;

		random = random * 6364136223846793005u + 1442695040888963407u;
		memcpy(&value, &random, sizeof(value));
		if (isnan(value))
			continue;
		ts_text_clear(&text);
		ts_text_append_double(&text, i ? value : -INFINITY);
		TS_CHECK_INT(scan(ts_text_cstr(&text), "}", false, &number), 0);
		TS_CHECK_INT(number.kind, TS_JSON_DOUBLE);
		if (i)
			TS_CHECK_MEM(&number.real, &value, sizeof(value));
		else
			TS_CHECK(number.real == -INFINITY);
	}
}
