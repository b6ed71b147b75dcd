/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text: a growing byte buffer with the append functions that exporters need, UTF-8 checks, glob
 * matching, number formatting and parsing. Only ts_text_printf() depends on the locale. Implemented
 * in text.c, utf8.c, glob.c, format.c and parse.c.
 */
#ifndef TS_BASE_TEXT_H
#define TS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tracesmith/error.h>

#include "base/memory.h"

/* ---- the buffer ---- */

/*
 * `data` is NULL before the first append and not NUL-terminated (see ts_text_cstr()). A failed
 * allocation sets `failed` until clear or release; appends then do nothing, so that a caller checks
 * once, at the end.
 */
struct ts_text {
	char *data;
	size_t length;
	size_t capacity;
	bool failed;
};

/* A zeroed struct works as well. */
void ts_text_init(struct ts_text *text);
void ts_text_release(struct ts_text *text);

/* Empties the buffer and clears `failed`; keeps the memory. */
static inline void ts_text_clear(struct ts_text *text)
{
	text->length = 0;
	text->failed = false;
}

/* Reserves `bytes` more: true, or false with `failed` set. */
bool ts_text_grow_(struct ts_text *text, size_t bytes);

static inline bool ts_text_reserve(struct ts_text *text, size_t bytes)
{
	if (TS_LIKELY(text->capacity - text->length >= bytes && !text->failed))
		return true;
	return ts_text_grow_(text, bytes);
}

static inline void ts_text_append(struct ts_text *text, const void *data, size_t bytes)
{
	if (bytes && ts_text_reserve(text, bytes)) {
		memcpy(text->data + text->length, data, bytes);
		text->length += bytes;
	}
}

static inline void ts_text_append_char(struct ts_text *text, char c)
{
	if (ts_text_reserve(text, 1))
		text->data[text->length++] = c;
}

/* A NUL-terminated string. */
static inline void ts_text_append_str(struct ts_text *text, const char *string)
{
	ts_text_append(text, string, strlen(string));
}

void ts_text_printf(struct ts_text *text, const char *format, ...) TS_PRINTF_LIKE(2, 3);

/*
 * The string in double quotes, escaped for JSON: invalid UTF-8 becomes U+FFFD, control characters
 * (and DEL) their short escape or \u00XX; '/' and everything else is unchanged.
 */
void ts_text_append_json(struct ts_text *text, const char *string, size_t length);

/* The same without the quotes. */
void ts_text_append_json_bare(struct ts_text *text, const char *string, size_t length);

void ts_text_append_int(struct ts_text *text, int64_t value);
void ts_text_append_uint(struct ts_text *text, uint64_t value);

/*
 * A JSON number that reads back as the same double and never looks like an integer: 5.0, 1e+22.
 * Infinities are written as 1e999 and -1e999 (which read back as such), NaN as "NaN" with quotes.
 */
void ts_text_append_double(struct ts_text *text, double value);

/* Nanoseconds as microseconds with three decimals, "-123.456"; exact for every int64. */
void ts_text_append_us(struct ts_text *text, int64_t ns);

/*
 * The content NUL-terminated (the NUL is not counted in `length`); valid until the next append. ""
 * if empty or failed. Content that contains NULs is the caller's problem.
 */
const char *ts_text_cstr(struct ts_text *text);

/* TS_ENOMEM after a failed allocation, otherwise 0. */
static inline int ts_text_status(const struct ts_text *text)
{
	return text->failed ? TS_ENOMEM : TS_OK;
}

/* ---- UTF-8 ---- */

/* Complete, shortest-form UTF-8 without surrogates; fast for ASCII. NULs are valid. */
bool ts_utf8_valid(const char *string, size_t length);

/* Length of the longest valid prefix. */
size_t ts_utf8_valid_prefix(const char *string, size_t length);

/* Appends the string with each maximal ill-formed sequence replaced by one U+FFFD. */
void ts_utf8_sanitize(struct ts_text *text, const char *string, size_t length);

/*
 * Characters that a terminal acts on instead of showing them: control characters of ASCII and
 * Latin-1, line separators, and those that change the direction of text. Texts of traces and files
 * may contain them; whatever is shown is escaped.
 */
bool ts_utf8_is_control(uint32_t code_point);

/* Replaces each byte of such characters in place; the text is valid UTF-8. */
void ts_utf8_replace_controls(char *text, size_t length, char replacement);

/*
 * Encodes a code point as 1 to 4 bytes and returns their number; U+FFFD if it is not a scalar
 * value.
 */
size_t ts_utf8_encode(char buffer[4], uint32_t code_point);

/* ---- parts of a text ---- */

static inline bool ts_starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static inline bool ts_starts_with_len(const char *text, size_t length, const char *prefix)
{
	size_t bytes = strlen(prefix);

	return length >= bytes && !memcmp(text, prefix, bytes);
}

static inline bool ts_ends_with_len(const char *text, size_t length, const char *end)
{
	size_t bytes = strlen(end);

	return length >= bytes && !memcmp(text + length - bytes, end, bytes);
}

/* ---- commands to paste ---- */

/* Appends a word, quoted for a shell if needed. */
void ts_text_append_shell(struct ts_text *text, const char *word);

/* The same in a buffer, which is returned; "PATH" if it is too long. */
#define TS_SHELL_BYTES 512
const char *ts_shell_quote(char buffer[TS_SHELL_BYTES], const char *word);

/* The same in a buffer of the enclosing scope, for argument lists. */
#define TS_SHELL(word) ts_shell_quote((char[TS_SHELL_BYTES]){ 0 }, (word))

/* ---- glob ---- */

/*
 * Matches the entire text against a NUL-terminated pattern: * any bytes, ? one character (a UTF-8
 * sequence where there is one), [a-z] and [!a-z] (also ^) one byte of a set, \ quotes the next
 * character. An unclosed '[' is literal. Case-sensitive. Time is at most pattern length times text
 * length.
 */
bool ts_glob_match(const char *pattern, const char *text, size_t length);

/* ---- numbers for people ---- */

/*
 * All four write a NUL-terminated text, truncated to `size`, and return buffer, so that they can be
 * used as arguments. TS_FORMAT_BYTES is enough for each.
 */
#define TS_FORMAT_BYTES 32

/* "0 ns", "999 ns", "1.234 us", "12.35 ms", "4.560 s", "2 m 03 s", "1 h 02 m", "3 d 04 h". */
const char *ts_format_duration_ns(char *buffer, size_t size, int64_t ns);

/*
 * Milliseconds with all digits, so that the time can be used as input again: "-0.000001 ms",
 * "12.345678 ms".
 */
const char *ts_format_instant_ns(char *buffer, size_t size, int64_t ns);

/* "0 B", "999 B", "1.00 KiB", "12.3 MiB", "456 GiB". */
const char *ts_format_bytes(char *buffer, size_t size, uint64_t bytes);

/* "1,234,567", "-12". */
const char *ts_format_count(char *buffer, size_t size, int64_t count);

/* A wait status: "exit code 3", "killed by SIGSEGV". */
const char *ts_format_exit(char *buffer, size_t size, int wait_status);

/* "1 copy", "1,645 copies", "2 processes". The noun has a regular plural. */
const char *ts_format_counted(char *buffer, size_t size, uint64_t count, const char *noun);
#define TS_FORMAT_COUNTED_BYTES 64

/* The same in a buffer of the enclosing scope, for argument lists. */
#define TS_COUNTED(count, noun)                                                                   \
	ts_format_counted((char[TS_FORMAT_COUNTED_BYTES]){ 0 }, TS_FORMAT_COUNTED_BYTES, (count), \
			  (noun))

/* ---- numbers from people ---- */

/*
 * The entire text must be the number; *ret is untouched on failure. TS_EFORMAT: not a number, or
 * out of range.
 */

/* Decimal digits with an optional sign. */
int ts_parse_int64(const char *text, size_t length, int64_t *ret_value);

/*
 * "1.5ms", "10us", "3 s", "250" (ns), "2m", "1h", "-3us": a decimal number, an optional space, an
 * optional unit (ns us ms s m h d). Exact decimal arithmetic; fractions of 1 ns are rounded half
 * away from zero. At most 18 decimals.
 */
int ts_parse_duration_ns(const char *text, size_t length, int64_t *ret_ns);

#endif
