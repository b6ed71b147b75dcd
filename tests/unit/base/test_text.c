/* SPDX-License-Identifier: Apache-2.0 */
/* The text buffer: appending, JSON escaping, and numbers that read back exactly. */
#include "base/text.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/runner.h"

TS_TEST(appends)
{
	TS_SCOPED(ts_text) text = { 0 };

	TS_CHECK_STR(ts_text_cstr(&text), "");
	ts_text_append(&text, NULL, 0);
	ts_text_append(&text, "abc", 2);
	ts_text_append_char(&text, '-');
	ts_text_append_str(&text, "xyz");
	ts_text_printf(&text, "%d/%s", 42, "q");
	TS_CHECK_STR(ts_text_cstr(&text), "ab-xyz42/q");
	TS_CHECK_INT(text.length, 10);
	ts_text_printf(&text, "%s", "");
	TS_CHECK_INT(text.length, 10);
	ts_text_clear(&text);
	TS_CHECK_INT(text.length, 0);
	/* Formatted text of every length around the growth of the buffer. */
	for (int width = 1; width < 600; width++) {
		size_t before = text.length;

		ts_text_printf(&text, "%*d", width, 7);
		TS_CHECK_INT(text.length - before, width);
		TS_CHECK_INT(text.data[text.length - 1], '7');
	}
	TS_CHECK_INT(ts_text_status(&text), TS_OK);
}

TS_TEST(failure_sticks_until_clear)
{
	TS_SCOPED(ts_text) text = { 0 };

	ts_text_append_str(&text, "abc");
	TS_CHECK(!ts_text_reserve(&text, SIZE_MAX - 1));
	TS_CHECK(text.failed);
	TS_CHECK_INT(ts_text_status(&text), TS_ENOMEM);
	ts_text_append_str(&text, "def");
	ts_text_append_int(&text, 5);
	ts_text_append_char(&text, 'x');
	ts_text_printf(&text, "%d", 5);
	ts_text_append_json(&text, "a", 1);
	TS_CHECK_INT(text.length, 3);
	TS_CHECK_STR(ts_text_cstr(&text), "");
	ts_text_clear(&text);
	ts_text_append_str(&text, "ghi");
	TS_CHECK_STR(ts_text_cstr(&text), "ghi");
	TS_CHECK(!text.failed);
}

static void check_json(const char *string, size_t length, const char *expected)
{
	TS_SCOPED(ts_text) text = { 0 };
	/* Exactly its own length, so that the sanitizer detects reads beyond it. */
	TS_AUTO_FREE char *copy = malloc(length ? length : 1);

	memcpy(copy, string, length);
	ts_text_append_json(&text, copy, length);
	TS_CHECK_STR(ts_text_cstr(&text), expected);
}

#define CHECK_JSON(literal, expected) check_json(literal, sizeof(literal) - 1, expected)

TS_TEST(json_strings)
{
	CHECK_JSON("", "\"\"");
	CHECK_JSON("aten::add /x", "\"aten::add /x\"");
	CHECK_JSON("a\"b\\c", "\"a\\\"b\\\\c\"");
	CHECK_JSON("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
	CHECK_JSON("\0\1\x1f\x7f", "\"\\u0000\\u0001\\u001f\\u007f\"");
	CHECK_JSON("abcdefghij\x7fklmnopqrst", "\"abcdefghij\\u007fklmnopqrst\"");
	CHECK_JSON("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\x80",
		   "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\x80\"");
	CHECK_JSON("\xff", "\"\xef\xbf\xbd\"");
	CHECK_JSON("a\xe2\x82", "\"a\xef\xbf\xbd\"");
	CHECK_JSON("\xed\xa0\x80z", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"");
	/* The search handles eight bytes at a time: put a special byte at each position. */
	for (int length = 1; length < 40; length++) {
		for (int at = 0; at < length; at++) {
			char string[40], expected[48];

			memset(string, 'a', sizeof(string));
			string[at] = at & 1 ? '"' : '\\';
			snprintf(expected, sizeof(expected), "\"%.*s\\%.*s\"", at, string,
				 length - at, string + at);
			check_json(string, (size_t)length, expected);
		}
	}
}

TS_TEST(no_string_is_an_empty_json_string)
{
	TS_SCOPED(ts_text) text = { 0 };

	ts_text_append_json(&text, NULL, 0);
	TS_CHECK_STR(ts_text_cstr(&text), "\"\"");
}

TS_TEST(integers)
{
	static const int64_t values[] = { 0,   1,   -1,   9,     10,        99,        100,
					  101, 999, 1000, -1000, 123456789, INT64_MAX, INT64_MIN };
	TS_SCOPED(ts_text) text = { 0 };
	char expected[32];

	for (size_t i = 0; i < TS_ARRAY_SIZE(values); i++) {
		ts_text_clear(&text);
		ts_text_append_int(&text, values[i]);
		snprintf(expected, sizeof(expected), "%" PRId64, values[i]);
		TS_CHECK_STR(ts_text_cstr(&text), expected);
		ts_text_clear(&text);
		ts_text_append_uint(&text, (uint64_t)values[i]);
		snprintf(expected, sizeof(expected), "%" PRIu64, (uint64_t)values[i]);
		TS_CHECK_STR(ts_text_cstr(&text), expected);
	}
	for (uint64_t value = 1; value < UINT64_MAX / 7; value = value * 7 + 3) {
		ts_text_clear(&text);
		ts_text_append_uint(&text, value);
		snprintf(expected, sizeof(expected), "%" PRIu64, value);
		TS_CHECK_STR(ts_text_cstr(&text), expected);
	}
}

TS_TEST(microseconds)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0.000" },
		{ 1, "0.001" },
		{ -1, "-0.001" },
		{ 999, "0.999" },
		{ 1000, "1.000" },
		{ 123456, "123.456" },
		{ -123456, "-123.456" },
		{ 1712195495607293168, "1712195495607293.168" },
		{ INT64_MAX, "9223372036854775.807" },
		{ INT64_MIN, "-9223372036854775.808" },
	};
	TS_SCOPED(ts_text) text = { 0 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		ts_text_clear(&text);
		ts_text_append_us(&text, cases[i].ns);
		TS_CHECK_STR(ts_text_cstr(&text), cases[i].text);
	}
}

TS_TEST(doubles_as_written)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0.0, "0.0" },
		{ -0.0, "-0.0" },
		{ 5.0, "5.0" },
		{ -5.0, "-5.0" },
		{ 0.1, "0.1" },
		{ 0.3, "0.3" },
		{ 1.5, "1.5" },
		{ 100.0, "100.0" },
		{ 123456.789, "123456.789" },
		{ 0.00001, "0.00001" },
		{ 999999999999999.0, "999999999999999.0" },
		{ 1e22, "1e+22" },
		{ 1e-7, "1e-07" },
		{ 5e-324, "4.94065645841247e-324" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 9007199254740993.0, "9007199254740992.0" },
		{ INFINITY, "1e999" },
		{ -INFINITY, "-1e999" },
		{ NAN, "\"NaN\"" },
	};
	TS_SCOPED(ts_text) text = { 0 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		ts_text_clear(&text);
		ts_text_append_double(&text, cases[i].value);
		TS_CHECK_STR(ts_text_cstr(&text), cases[i].text);
	}
}

static void check_round_trip(struct ts_text *text, double value)
{
	const char *written;
	double back;

	ts_text_clear(text);
	ts_text_append_double(text, value);
	written = ts_text_cstr(text);
	back = strtod(written, NULL);
	TS_CHECK_MEM(&back, &value, sizeof(value));
	TS_CHECK(strchr(written, '.') || strchr(written, 'e'));
	TS_CHECK(text->length <= 24);
}

TS_TEST(doubles_read_back)
{
	TS_SCOPED(ts_text) text = { 0 };
	uint64_t random = 1;

	for (int i = 0; i < 200000; i++) {
		double value;

		random = random * 6364136223846793005u + 1442695040888963407u;
		memcpy(&value, &random, sizeof(value));
		if (isfinite(value))
			check_round_trip(&text, value);
		/* And of the magnitude that traces have: times, rates, fractions. */
		check_round_trip(&text, (double)(random >> 11) * 0x1p-40);
		check_round_trip(&text, (double)(int64_t)(random >> 34) / 1000.0);
		check_round_trip(&text, (double)(random >> 44) / 1e9);
	}
}

TS_TEST(doubles_ignore_the_locale)
{
	static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "ps_AF.UTF-8" };
	TS_SCOPED(ts_text) text = { 0 };
	size_t i = 0;

	while (i < TS_ARRAY_SIZE(names) && !setlocale(LC_ALL, names[i]))
		i++;
	if (i == TS_ARRAY_SIZE(names))
		ts_test_skip("no locale with a decimal comma is installed");
	ts_text_append_double(&text, 1e-7 / 3);
	TS_CHECK(!strchr(ts_text_cstr(&text), ','));
}

TS_TEST(words_are_quoted_where_they_need_it)
{
	char quoted[TS_SHELL_BYTES], word[TS_SHELL_BYTES];

	TS_CHECK_STR(ts_shell_quote(quoted, "/dev/shm/tracesmith-0"), "/dev/shm/tracesmith-0");
	TS_CHECK_STR(ts_shell_quote(quoted, "/a b"), "'/a b'");
	TS_CHECK_STR(ts_shell_quote(quoted, "$(reboot)"), "'$(reboot)'");
	TS_CHECK_STR(ts_shell_quote(quoted, "it's"), "'it'\\''s'");
	TS_CHECK_STR(ts_shell_quote(quoted, ""), "''");
	/* A name that is too long is not truncated into another. */
	memset(word, '\'', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	TS_CHECK_STR(ts_shell_quote(quoted, word), "PATH");
	memset(word, ' ', sizeof(word) - 1);
	TS_CHECK_STR(ts_shell_quote(quoted, word), "PATH");
	word[sizeof(word) - 16] = '\0';
	TS_CHECK_INT(strlen(ts_shell_quote(quoted, word)), sizeof(word) - 16 + 2);
}
