/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 validation, repair and encoding. Well-formed is what table 3-7 of the Unicode standard
 * says: shortest form, no surrogates, nothing above U+10FFFF.
 */
#include "base/utf8.h"

#include "base/text.h"

size_t ts_utf8_step(const char *p, const char *end, bool *ret_valid)
{
	unsigned char first = (unsigned char)*p;
	/* Range of the second byte: narrower than 80..BF after four of the first bytes. */
	unsigned char low = 0x80, high = 0xbf;
	size_t bytes;

	*ret_valid = true;
	if (first < 0x80)
		return 1;
	*ret_valid = false;
	if (first < 0xc2 || first > 0xf4)
		return 1;
	bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (first == 0xe0)
		low = 0xa0;
	else if (first == 0xed)
		high = 0x9f;
	else if (first == 0xf0)
		low = 0x90;
	else if (first == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < bytes; i++) {
		if (p + i == end || (unsigned char)p[i] < low || (unsigned char)p[i] > high)
			return i;
		low = 0x80;
		high = 0xbf;
	}
	*ret_valid = true;
	return bytes;
}

uint32_t ts_utf8_decode(const char *p, size_t bytes)
{
	static const unsigned char first_mask[5] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t code_point = (unsigned char)*p & first_mask[bytes];

	for (size_t i = 1; i < bytes; i++)
		code_point = code_point << 6 | ((unsigned char)p[i] & 0x3f);
	return code_point;
}

static const char *ascii_run(const char *p, const char *end)
{
	while (end - p >= 16) {
		uint64_t words[2];

		memcpy(words, p, 16);
		if ((words[0] | words[1]) & 0x8080808080808080u)
			break;
		p += 16;
	}
	while (p < end && (unsigned char)*p < 0x80)
		p++;
	return p;
}

size_t ts_utf8_valid_prefix(const char *string, size_t length)
{
	const char *p = string, *end;

	/* The string may be NULL then. */
	if (!length)
		return 0;
	end = string + length;
	for (;;) {
		bool valid;
		size_t bytes;

		p = ascii_run(p, end);
		if (p == end)
			return length;
		bytes = ts_utf8_step(p, end, &valid);
		if (!valid)
			return (size_t)(p - string);
		p += bytes;
	}
}

bool ts_utf8_valid(const char *string, size_t length)
{
	return ts_utf8_valid_prefix(string, length) == length;
}

void ts_utf8_sanitize(struct ts_text *text, const char *string, size_t length)
{
	while (length) {
		size_t good = ts_utf8_valid_prefix(string, length), bad;
		bool valid;

		ts_text_append(text, string, good);
		string += good;
		length -= good;
		if (!length)
			return;
		bad = ts_utf8_step(string, string + length, &valid);
		ts_text_append(text, TS_UTF8_REPLACEMENT, 3);
		string += bad;
		length -= bad;
	}
}

bool ts_utf8_is_control(uint32_t code_point)
{
	return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) ||
	       code_point == 0x61c || code_point == 0x200e || code_point == 0x200f ||
	       (code_point >= 0x2028 && code_point <= 0x202e) ||
	       (code_point >= 0x2066 && code_point <= 0x2069);
}

void ts_utf8_replace_controls(char *text, size_t length, char replacement)
{
	char *end;

	/* The text may be NULL then. */
	if (!length)
		return;
	end = text + length;
	while (text < end) {
		bool valid;
		size_t bytes = ts_utf8_step(text, end, &valid);

		if (valid && ts_utf8_is_control(ts_utf8_decode(text, bytes)))
			memset(text, replacement, bytes);
		text += bytes;
	}
}

size_t ts_utf8_encode(char buffer[4], uint32_t code_point)
{
	if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff))
		code_point = 0xfffd;
	if (code_point < 0x80) {
		buffer[0] = (char)code_point;
		return 1;
	}
	if (code_point < 0x800) {
		buffer[0] = (char)(0xc0 | code_point >> 6);
		buffer[1] = (char)(0x80 | (code_point & 0x3f));
		return 2;
	}
	if (code_point < 0x10000) {
		buffer[0] = (char)(0xe0 | code_point >> 12);
		buffer[1] = (char)(0x80 | (code_point >> 6 & 0x3f));
		buffer[2] = (char)(0x80 | (code_point & 0x3f));
		return 3;
	}
	buffer[0] = (char)(0xf0 | code_point >> 18);
	buffer[1] = (char)(0x80 | (code_point >> 12 & 0x3f));
	buffer[2] = (char)(0x80 | (code_point >> 6 & 0x3f));
	buffer[3] = (char)(0x80 | (code_point & 0x3f));
	return 4;
}
