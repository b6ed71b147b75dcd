/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the key sequences of xterm, rxvt, tmux, screen and the Linux console. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "cli/common/keys.h"

#define ESC '\033'

/* ---- sequences ---- */

/* "\e[1;5A", "\eOA", "\e[A", "\e[[A" (F1 of the console): by the last letter. */
static uint32_t key_of_letter(char introducer, char letter, bool console)
{
	static const struct {
		char letter;
		uint32_t key;
	} keys[] = {
		{ 'A', TS_KEY_UP },   { 'B', TS_KEY_DOWN }, { 'C', TS_KEY_RIGHT },
		{ 'D', TS_KEY_LEFT }, { 'H', TS_KEY_HOME }, { 'F', TS_KEY_END },
	};

	if (console && letter >= 'A' && letter <= 'E')
		return TS_KEY_F1 + (uint32_t)(letter - 'A');
	for (size_t i = 0; i < TS_ARRAY_SIZE(keys); i++) {
		if (keys[i].letter == letter)
			return keys[i].key;
	}
	if (letter >= 'P' && letter <= 'S')
		return TS_KEY_F1 + (uint32_t)(letter - 'P');
	return introducer == 'O' && letter == 'M' ? TS_KEY_ENTER : TS_KEY_OTHER;
}

/* "\e[5~": by the number. */
static uint32_t key_of_number(unsigned long number)
{
	static const uint32_t keys[] = {
		[1] = TS_KEY_HOME,    [2] = TS_KEY_INSERT,    [3] = TS_KEY_DELETE, [4] = TS_KEY_END,
		[5] = TS_KEY_PAGE_UP, [6] = TS_KEY_PAGE_DOWN, [7] = TS_KEY_HOME,   [8] = TS_KEY_END,
	};

	if (number < TS_ARRAY_SIZE(keys) && keys[number])
		return keys[number];
	if (number >= 11 && number <= 15)
		return TS_KEY_F1 + (uint32_t)(number - 11);
	if (number >= 17 && number <= 21)
		return TS_KEY_F1 + 5 + (uint32_t)(number - 17);
	if (number == 23 || number == 24)
		return TS_KEY_F1 + 10 + (uint32_t)(number - 23);
	return TS_KEY_OTHER;
}

static uint32_t end_sequence(struct ts_keys *keys)
{
	char last = keys->bytes[keys->length - 1];
	bool console = keys->length == 4 && keys->bytes[2] == '[';
	uint32_t key;

	if (keys->skips)
		key = TS_KEY_OTHER;
	else if (last == '~')
		key = key_of_number(strtoul(keys->bytes + 2, NULL, 10));
	else
		key = key_of_letter(keys->bytes[1], last, console);
	*keys = (struct ts_keys){ .length = 0 };
	return key;
}

/* A byte after ESC. */
static uint32_t take_escaped(struct ts_keys *keys, char byte)
{
	bool second = keys->length == 2;

	/* ESC ESC: the first was the Escape key, the second may begin a sequence. */
	if (byte == ESC) {
		*keys = (struct ts_keys){ .bytes = { ESC }, .length = 1 };
		return TS_KEY_ESCAPE;
	}
	if (second && (byte == '[' || byte == 'O'))
		return TS_KEY_NONE;
	/* Alt and a key. */
	if (second) {
		keys->length = 0;
		return TS_KEY_OTHER;
	}
	/* Parameters continue; "\e[[" is the Linux console's. */
	if ((byte >= 0x20 && byte < 0x40) || (byte == '[' && keys->length == 3))
		return TS_KEY_NONE;
	return end_sequence(keys);
}

/* ---- characters ---- */

static uint32_t take_utf8(struct ts_keys *keys)
{
	bool valid;
	const char *end = keys->bytes + keys->length;
	size_t bytes = ts_utf8_step(keys->bytes, end, &valid);
	unsigned char first = (unsigned char)keys->bytes[0];
	size_t needed = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	uint32_t key = TS_KEY_OTHER;

	if (!valid && bytes == keys->length && bytes < needed && first >= 0xc2)
		return TS_KEY_NONE;
	if (valid)
		key = ts_utf8_decode(keys->bytes, bytes);
	keys->length = 0;
	return key;
}

static uint32_t key_of_byte(unsigned char byte)
{
	if (byte == '\r')
		return TS_KEY_ENTER;
	return byte == '\b' ? TS_KEY_BACKSPACE : byte;
}

/* ---- entry points ---- */

uint32_t ts_keys_take(struct ts_keys *keys, unsigned char byte)
{
	if (keys->length == 0 && byte < 0x80 && byte != ESC)
		return byte ? key_of_byte(byte) : TS_KEY_OTHER;
	if (keys->length == sizeof(keys->bytes) - 1) {
		keys->skips = true;
		keys->length--;
	}
	keys->bytes[keys->length++] = (char)byte;
	keys->bytes[keys->length] = '\0';
	if (keys->bytes[0] != ESC)
		return take_utf8(keys);
	return keys->length == 1 ? TS_KEY_NONE : take_escaped(keys, (char)byte);
}

bool ts_keys_pending(const struct ts_keys *keys)
{
	return keys->length > 0;
}

uint32_t ts_keys_flush(struct ts_keys *keys)
{
	uint32_t key = keys->length == 1 && keys->bytes[0] == ESC ? TS_KEY_ESCAPE : TS_KEY_OTHER;

	if (keys->length == 0)
		return TS_KEY_NONE;
	*keys = (struct ts_keys){ .length = 0 };
	return key;
}
