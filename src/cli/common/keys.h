/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes keys from the bytes that a terminal sends: letters, UTF-8 characters and escape
 * sequences, split at any byte. Does no input itself.
 */
#ifndef TS_CLI_COMMON_KEYS_H
#define TS_CLI_COMMON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key: a character's code point, or one of these. */
enum ts_key {
	TS_KEY_NONE = 0,
	TS_KEY_TAB = '\t',
	TS_KEY_ENTER = '\n',
	TS_KEY_ESCAPE = 0x1b,
	TS_KEY_BACKSPACE = 0x7f,
	TS_KEY_UP = 0x110000,
	TS_KEY_DOWN,
	TS_KEY_LEFT,
	TS_KEY_RIGHT,
	TS_KEY_HOME,
	TS_KEY_END,
	TS_KEY_PAGE_UP,
	TS_KEY_PAGE_DOWN,
	TS_KEY_INSERT,
	TS_KEY_DELETE,
	TS_KEY_F1,
	TS_KEY_F12 = TS_KEY_F1 + 11,
	TS_KEY_OTHER, /* an unknown sequence */
};

/* A zeroed struct has nothing pending. */
struct ts_keys {
	char bytes[32]; /* incomplete sequence */
	size_t length;
	bool skips; /* skipping the rest of a sequence that is too long */
};

/* The key that a byte completes, or TS_KEY_NONE. */
uint32_t ts_keys_take(struct ts_keys *keys, unsigned char byte);

/* True if a sequence is incomplete: wait a little, then call ts_keys_flush(). */
bool ts_keys_pending(const struct ts_keys *keys);

/* Ends an incomplete sequence: the Escape key, or TS_KEY_OTHER. */
uint32_t ts_keys_flush(struct ts_keys *keys);

#endif
