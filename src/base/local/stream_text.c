/* SPDX-License-Identifier: Apache-2.0 */
/* Writes details of objects and commands as JSON; inside observed programs, so without heap. */
#include "base/local/stream_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* All or nothing. No space is reserved for closing brackets, hence is_full. */
static void add(struct stream_text *text, const char *bytes, size_t count)
{
	if (text->is_full || count > STREAM_DETAILS - text->used) {
		text->is_full = true;
		return;
	}
	memcpy(text->data + text->used, bytes, count);
	text->used += count;
}

/* Adds a comma, unless after an opening bracket or a key. */
static void separate(struct stream_text *text)
{
	char last = text->used ? text->data[text->used - 1] : '{';

	if (last != '{' && last != '[' && last != ':')
		add(text, ",", 1);
}

static void add_key(struct stream_text *text, const char *key)
{
	separate(text);
	if (!key)
		return;
	add(text, "\"", 1);
	add(text, key, strlen(key));
	add(text, "\":", 2);
}

/* Length of the UTF-8 sequence at `at`; 0: not valid (must be the shortest form, no surrogates). */
static size_t sequence_length(const unsigned char *at, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = at[0] < 0x80   ? 1
			: at[0] < 0xc2 ? 0
			: at[0] < 0xe0 ? 2
			: at[0] < 0xf0 ? 3
			: at[0] < 0xf5 ? 4
				       : 0;
	uint32_t point;

	if (length <= 1 || length > left)
		return length > left ? 0 : length;
	point = at[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (at[i] & 0x3f);
	}
	if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return 0;
	return length;
}

static void add_escaped(struct stream_text *text, const char *value, size_t count)
{
	const unsigned char *at = (const unsigned char *)value;
	char escape[8];

	for (size_t i = 0; i < count && !text->is_full;) {
		size_t length = sequence_length(at + i, count - i);

		if (length == 0) {
			add(text, "\xef\xbf\xbd", 3);
			i++;
			continue;
		}
		if (at[i] == '"' || at[i] == '\\') {
			add(text, "\\", 1);
			add(text, value + i, 1);
		} else if (at[i] < 0x20 || at[i] == 0x7f) {
			snprintf(escape, sizeof(escape), "\\u%04x", at[i]);
			add(text, escape, 6);
		} else {
			add(text, value + i, length);
		}
		i += length;
	}
}

static void add_string(struct stream_text *text, const char *value, size_t count)
{
	add(text, "\"", 1);
	add_escaped(text, value, count);
	add(text, "\"", 1);
}

void stream_text_begin(struct stream_text *text)
{
	text->used = 0;
	text->is_full = false;
	add(text, "{", 1);
}

const char *stream_text_end(struct stream_text *text)
{
	add(text, "}", 1);
	text->data[text->used] = 0;
	return text->is_full ? NULL : text->data;
}

void stream_text_part(struct stream_text *text, const char *key, const char *value, size_t most)
{
	add_key(text, key);
	add_string(text, value, strnlen(value, most));
}

void stream_text_string(struct stream_text *text, const char *key, const char *value)
{
	stream_text_part(text, key, value, STREAM_DETAILS + 1);
}

void stream_text_uint(struct stream_text *text, const char *key, uint64_t value)
{
	char digits[24];

	add_key(text, key);
	add(text, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value));
}

void stream_text_int(struct stream_text *text, const char *key, int64_t value)
{
	char digits[24];

	add_key(text, key);
	add(text, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRId64, value));
}

void stream_text_true(struct stream_text *text, const char *key)
{
	add_key(text, key);
	add(text, "true", 4);
}

void stream_text_open(struct stream_text *text, const char *key, char bracket)
{
	add_key(text, key);
	add(text, &bracket, 1);
}

void stream_text_close(struct stream_text *text, char bracket)
{
	add(text, bracket == '[' ? "]" : "}", 1);
}

void stream_text_item(struct stream_text *text, uint64_t value)
{
	stream_text_uint(text, NULL, value);
}

void stream_text_element(struct stream_text *text, const char *value)
{
	stream_text_string(text, NULL, value);
}

void stream_text_sizes(struct stream_text *text, const char *key, const size_t *sizes, size_t count)
{
	stream_text_open(text, key, '[');
	for (size_t i = 0; i < count; i++)
		stream_text_item(text, sizes[i]);
	stream_text_close(text, '[');
}
