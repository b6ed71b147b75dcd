/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing text buffer and its append functions. Hot in exporters, so numbers are formatted without
 * printf().
 */
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/real.h"
#include "base/utf8.h"

void ts_text_init(struct ts_text *text)
{
	*text = (struct ts_text){ .data = NULL };
}

void ts_text_release(struct ts_text *text)
{
	free(text->data);
	ts_text_init(text);
}

bool ts_text_grow_(struct ts_text *text, size_t bytes)
{
	size_t need;

	if (text->failed)
		return false;
	if (__builtin_add_overflow(text->length, bytes, &need) ||
	    ts_grow_array((void **)&text->data, &text->capacity, need, 1)) {
		text->failed = true;
		return false;
	}
	return true;
}

void ts_text_printf(struct ts_text *text, const char *format, ...)
{
	va_list args, again;
	int length;

	if (!ts_text_reserve(text, 1))
		return;
	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(text->data + text->length, text->capacity - text->length, format, args);
	if (length >= 0 && (size_t)length >= text->capacity - text->length) {
		/* One more for the NUL of vsnprintf(). */
		if (ts_text_reserve(text, (size_t)length + 1))
			vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
		else
			length = 0;
	}
	va_end(again);
	va_end(args);
	if (length < 0)
		text->failed = true;
	else
		text->length += (size_t)length;
}

const char *ts_text_cstr(struct ts_text *text)
{
	if (!ts_text_reserve(text, 1))
		return "";
	text->data[text->length] = '\0';
	return text->data;
}

/* ---- JSON strings ---- */

/* The end of the run of ASCII bytes that need no JSON escape. */
static const char *plain_run(const char *p, const char *end)
{
	const uint64_t ones = 0x0101010101010101u, highs = ones << 7;

	while (end - p >= 8) {
		uint64_t word, quotes, backslashes, deletes;

		memcpy(&word, p, 8);
		quotes = word ^ (ones * '"');
		backslashes = word ^ (ones * '\\');
		deletes = word ^ (ones * 0x7f);
		/* For each of five classes: is there such a byte? (word - n) borrows where < n. */
		if ((word | ((word - ones * 0x20) & ~word) | ((quotes - ones) & ~quotes) |
		     ((backslashes - ones) & ~backslashes) | ((deletes - ones) & ~deletes)) &
		    highs)
			break;
		p += 8;
	}
	while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f && *p != '"' &&
	       *p != '\\')
		p++;
	return p;
}

/* Of a quote, a backslash or a control character. */
static void append_escape(struct ts_text *text, uint32_t c)
{
	static const char hex[] = "0123456789abcdef";
	static const char letters[32] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r',
	};
	char escape[6] = {
		'\\', 'u', hex[c >> 12], hex[c >> 8 & 15], hex[c >> 4 & 15], hex[c & 15]
	};

	if (c == '"' || c == '\\') {
		escape[1] = (char)c;
		ts_text_append(text, escape, 2);
	} else if (c < 0x20 && letters[c]) {
		escape[1] = letters[c];
		ts_text_append(text, escape, 2);
	} else {
		ts_text_append(text, escape, 6);
	}
}

void ts_text_append_json_bare(struct ts_text *text, const char *string, size_t length)
{
	const char *p = string, *end;

	/* The string may be NULL then. */
	if (!length)
		return;
	end = string + length;
	while (p < end) {
		const char *stop = plain_run(p, end);
		size_t bytes;
		bool valid;

		ts_text_append(text, p, (size_t)(stop - p));
		p = stop;
		if (p == end)
			return;
		if ((unsigned char)*p < 0x80) {
			append_escape(text, (unsigned char)*p++);
			continue;
		}
		bytes = ts_utf8_step(p, end, &valid);
		if (!valid)
			ts_text_append(text, TS_UTF8_REPLACEMENT, 3);
		else if (ts_utf8_is_control(ts_utf8_decode(p, bytes)))
			append_escape(text, ts_utf8_decode(p, bytes));
		else
			ts_text_append(text, p, bytes);
		p += bytes;
	}
}

void ts_text_append_json(struct ts_text *text, const char *string, size_t length)
{
	ts_text_append_char(text, '"');
	ts_text_append_json_bare(text, string, length);
	ts_text_append_char(text, '"');
}

/* ---- numbers ---- */

#define UINT64_DIGITS 20

/* Writes the digits of value so that they end just before `end`; returns their start. */
static char *put_backwards(char *end, uint64_t value)
{
	static const char pairs[201] = "00010203040506070809101112131415161718192021222324"
				       "25262728293031323334353637383940414243444546474849"
				       "50515253545556575859606162636465666768697071727374"
				       "75767778798081828384858687888990919293949596979899";

	while (value >= 100) {
		end -= 2;
		memcpy(end, pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10) {
		end -= 2;
		memcpy(end, pairs + value * 2, 2);
	} else {
		*--end = (char)('0' + value);
	}
	return end;
}

static uint64_t magnitude_of(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

void ts_text_append_uint(struct ts_text *text, uint64_t value)
{
	char digits[UINT64_DIGITS], *end = digits + sizeof(digits);
	char *start = put_backwards(end, value);

	ts_text_append(text, start, (size_t)(end - start));
}

void ts_text_append_int(struct ts_text *text, int64_t value)
{
	char digits[UINT64_DIGITS + 1], *end = digits + sizeof(digits);
	char *start = put_backwards(end, magnitude_of(value));

	if (value < 0)
		*--start = '-';
	ts_text_append(text, start, (size_t)(end - start));
}

void ts_text_append_us(struct ts_text *text, int64_t ns)
{
	char digits[UINT64_DIGITS + 5], *end = digits + sizeof(digits), *start = end;
	uint64_t magnitude = magnitude_of(ns);
	unsigned int decimals = (unsigned int)(magnitude % 1000);

	*--start = (char)('0' + decimals % 10);
	*--start = (char)('0' + decimals / 10 % 10);
	*--start = (char)('0' + decimals / 100);
	*--start = '.';
	start = put_backwards(start, magnitude / 1000);
	if (ns < 0)
		*--start = '-';
	ts_text_append(text, start, (size_t)(end - start));
}

void ts_text_append_double(struct ts_text *text, double value)
{
	char buffer[TS_REAL_BYTES];

	if (isnan(value))
		ts_text_append_str(text, "\"NaN\"");
	else if (isinf(value))
		ts_text_append_str(text, value < 0 ? "-1e999" : "1e999");
	else
		ts_text_append(text, buffer, ts_real_format(buffer, value));
}

/* ---- commands to paste ---- */

static bool is_plain_word(const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:@%,=";

	return *word && !word[strspn(word, plain)];
}

void ts_text_append_shell(struct ts_text *text, const char *word)
{
	if (is_plain_word(word)) {
		ts_text_append_str(text, word);
		return;
	}
	ts_text_append_char(text, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			ts_text_append_str(text, "'\\'");
		ts_text_append_char(text, *word);
	}
	ts_text_append_char(text, '\'');
}

const char *ts_shell_quote(char buffer[TS_SHELL_BYTES], const char *word)
{
	TS_SCOPED(ts_text) text = { 0 };

	ts_text_append_shell(&text, word);
	snprintf(buffer, TS_SHELL_BYTES, "%s",
		 ts_text_status(&text) || text.length >= TS_SHELL_BYTES ? "PATH"
									: ts_text_cstr(&text));
	return buffer;
}
