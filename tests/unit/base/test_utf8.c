/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 validation against a simple decoder, and glob matching. */
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "unit/runner.h"

/* Slow and obvious: decodes, then checks that this was the shortest form. */
static bool is_valid_simply(const unsigned char *p, size_t length)
{
	size_t i = 0;

	while (i < length) {
		static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
		size_t bytes = p[i] < 0x80   ? 1
			       : p[i] < 0xc0 ? 0
			       : p[i] < 0xe0 ? 2
			       : p[i] < 0xf0 ? 3
			       : p[i] < 0xf8 ? 4
					     : 0;
		uint32_t value;

		if (bytes == 0 || i + bytes > length)
			return false;
		value = bytes == 1 ? p[i] : p[i] & (0x7fu >> bytes);
		for (size_t k = 1; k < bytes; k++) {
			if ((p[i + k] & 0xc0) != 0x80)
				return false;
			value = value << 6 | (p[i + k] & 0x3f);
		}
		if (value < least[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
			return false;
		i += bytes;
	}
	return true;
}

TS_TEST(valid_agrees_with_a_simple_decoder)
{
	static const unsigned char edges[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
					       0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
					       0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff };
	const size_t n = TS_ARRAY_SIZE(edges);

	for (size_t i = 0; i < n * n * n * n; i++) {
		unsigned char bytes[4] = { edges[i % n], edges[i / n % n], edges[i / n / n % n],
					   edges[i / n / n / n] };

		for (size_t length = 0; length <= 4; length++)
			TS_CHECK_INT(ts_utf8_valid((const char *)bytes, length),
				     is_valid_simply(bytes, length));
	}
}

TS_TEST(every_code_point_is_encoded_and_valid)
{
	char buffer[4];

	for (uint32_t c = 0; c < 0x110000; c++) {
		size_t bytes = ts_utf8_encode(buffer, c);

		TS_CHECK(ts_utf8_valid(buffer, bytes));
		for (size_t cut = 1; cut < bytes; cut++)
			TS_CHECK_INT(ts_utf8_valid_prefix(buffer, cut), 0);
		if (c >= 0xd800 && c < 0xe000)
			TS_CHECK_MEM(buffer, "\xef\xbf\xbd", 3);
	}
	TS_CHECK_INT(ts_utf8_encode(buffer, 0x110000), 3);
	TS_CHECK_INT(ts_utf8_encode(buffer, UINT32_MAX), 3);
}

TS_TEST(no_text_is_empty_text)
{
	TS_CHECK(ts_utf8_valid(NULL, 0));
	ts_utf8_replace_controls(NULL, 0, '?');
}

TS_TEST(long_ascii_with_one_bad_byte)
{
	for (size_t length = 1; length < 80; length++) {
		for (size_t at = 0; at < length; at++) {
			TS_AUTO_FREE char *string = malloc(length);

			memset(string, 'a', length);
			TS_CHECK(ts_utf8_valid(string, length));
			string[at] = '\x80';
			TS_CHECK_INT(ts_utf8_valid_prefix(string, length), at);
		}
	}
}

TS_TEST(sanitize)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9" },
		{ "a\xff"
		  "b",
		  "a\xef\xbf\xbd"
		  "b" },
		{ "\xe2\x82", "\xef\xbf\xbd" },
		{ "\xe2\x82"
		  "A",
		  "\xef\xbf\xbd"
		  "A" },
		{ "\xf0\x9f\x9a", "\xef\xbf\xbd" },
		{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x80\x80\x41", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
				      "A" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		TS_SCOPED(ts_text) text = { 0 };

		ts_utf8_sanitize(&text, cases[i].from, strlen(cases[i].from));
		TS_CHECK_STR(ts_text_cstr(&text), cases[i].to);
		TS_CHECK(ts_utf8_valid(text.data, text.length));
	}
}

/* What terminals act on. */
TS_TEST(control_characters)
{
	static const uint32_t others[] = { ' ',    '~',    0xa0,   0xad,   0x61b,  0x200d,
					   0x2010, 0x2027, 0x202f, 0x2065, 0x206a, 0x10ffff };
	char text[] = "a\x1b"
		      "b\xc2\x9b"
		      "c\xe2\x80\xae"
		      "d\xc3\xa9";

	for (uint32_t c = 0; c < 0x20; c++)
		TS_CHECK(ts_utf8_is_control(c));
	for (uint32_t c = 0x7f; c < 0xa0; c++)
		TS_CHECK(ts_utf8_is_control(c));
	TS_CHECK(ts_utf8_is_control(0x61c));
	TS_CHECK(ts_utf8_is_control(0x200e) && ts_utf8_is_control(0x200f));
	for (uint32_t c = 0x2028; c <= 0x202e; c++)
		TS_CHECK(ts_utf8_is_control(c));
	for (uint32_t c = 0x2066; c <= 0x2069; c++)
		TS_CHECK(ts_utf8_is_control(c));
	for (size_t i = 0; i < TS_ARRAY_SIZE(others); i++)
		TS_CHECK(!ts_utf8_is_control(others[i]));
	ts_utf8_replace_controls(text, strlen(text), '?');
	TS_CHECK_STR(text, "a?b??c???d\xc3\xa9");
}

TS_TEST(glob)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "a", "", false },
		{ "*", "", true },
		{ "*", "anything/at.all", true },
		{ "**", "x", true },
		{ "aten::*", "aten::add", true },
		{ "aten::*", "aten:add", false },
		{ "*gemm*", "ampere_sgemm_128x64_nn", true },
		{ "*gemm*", "ampere_sgem", false },
		{ "a*b*c", "aXbYbZc", true },
		{ "a*b*c", "aXbYbZ", false },
		{ "a?c", "abc", true },
		{ "a?c", "ac", false },
		{ "a?c", "abbc", false },
		{ "Abc", "abc", false },
		{ "?", "\xc3\xa9", true },
		{ "??", "\xc3\xa9", false },
		{ "*??", "\xc3\xa9", false },
		{ "?", "\xff", true },
		{ "[a-c]x", "bx", true },
		{ "[a-c]x", "dx", false },
		{ "[!a-c]x", "dx", true },
		{ "[^a-c]x", "bx", false },
		{ "[]a]", "]", true },
		{ "[]a]", "a", true },
		{ "[!]]", "]", false },
		{ "[a-]", "-", true },
		{ "[-a]", "-", true },
		{ "[\\]]", "]", true },
		{ "[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true },
		{ "[\xc3\xa0-\xc3\xbf]", "e", false },
		{ "[c-a]", "b", false },
		{ "[ab", "[ab", true },
		{ "[ab", "a", false },
		{ "[", "[", true },
		{ "[]", "[]", true },
		{ "[!", "[!", true },
		{ "[!]", "[!]", true },
		{ "\\*", "*", true },
		{ "\\*", "x", false },
		{ "\\[a]", "[a]", true },
		{ "a\\", "a\\", true },
		{ "*[0-9]", "stream 7", true },
		{ "*[0-9]", "stream x", false },
		{ "*a", "aaaa", true },
		{ "*ab", "aaab", true },
		{ "*\xff*", "x\xffy", true },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		size_t length = strlen(cases[i].text);
		TS_AUTO_FREE char *text = malloc(length + !length);

		memcpy(text, cases[i].text, length);
		if (ts_glob_match(cases[i].pattern, text, length) != cases[i].matches)
			ts_test_fail(__FILE__, __LINE__, "'%s' and '%s'", cases[i].pattern,
				     cases[i].text);
	}
	TS_CHECK(ts_glob_match("a?b", "a\0b", 3));
	TS_CHECK(!ts_glob_match("a", "a\0b", 3));
}

TS_TEST(glob_takes_its_time_in_bounds)
{
	char text[5000];
	int64_t start = ts_clock_monotonic_ns();

	memset(text, 'a', sizeof(text));
	TS_CHECK(!ts_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text, sizeof(text)));
	TS_CHECK(!ts_glob_match("*a*[a-z]*?*[!b]*a*a*a*[a]*a*aaaaaaaaaaaaab", text, sizeof(text)));
	TS_CHECK(ts_clock_monotonic_ns() - start < INT64_C(20000000000));
}
