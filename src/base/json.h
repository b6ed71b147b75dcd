/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pull scanner for JSON over a buffer that the caller fills. It finds tokens in place, builds no
 * tree, and allocates only in minify and unescape. In addition to JSON it accepts what real tools
 * write: NaN and infinities, raw control characters in strings. Numbers are in json_number.c, the
 * rest in json.c.
 *
 * Every scan function returns
 * 	0		done, js->next is just after the token;
 * 	TS_JSON_MORE	the buffer ends inside it: only js->error_at has changed; refill and
 * 			rescan from the start of the value (never if js->last is set);
 * 	TS_EFORMAT	js->error_at is the bad byte, js->reason a static text; a truncated
 * 			file has error_at == end in its last buffer.
 * minify and unescape report TS_ENOMEM through their ts_text.
 *
 * An object is read like this (an array likewise, without the key); a value that is not scanned is
 * skipped:
 *
 *	struct ts_json_walk walk = { .open = '{' };
 *
 *	while (ts_json_walk_next(&walk, js))
 *		if (ts_json_string_is(&walk.key, "name"))
 *			walk.rc = ts_json_scan_string(js, &name);
 *	return walk.rc;
 */
#ifndef TS_BASE_JSON_H
#define TS_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/json_bytes.h"
#include "base/memory.h"
#include "base/text.h"

#define TS_JSON_MAX_DEPTH 1024

/* Not an error: see above. */
#define TS_JSON_MORE 1

struct ts_json {
	const char *next;     /* the next byte to scan */
	const char *end;      /* one past the bytes held */
	bool last;            /* nothing follows `end`: a number may stop there */
	const char *error_at; /* after a return that is not 0 */
	const char *reason;   /* after TS_EFORMAT; static */
};

/* The bytes inside the quotes, neither unescaped nor checked for UTF-8. */
struct ts_json_string {
	const char *text;
	size_t length;
	bool escaped; /* contains a backslash: needs ts_json_unescape() */
};

enum ts_json_number_kind {
	TS_JSON_INT,       /* fits `integer` exactly */
	TS_JSON_DOUBLE,    /* has a point or an exponent (or is -0): `real`, the nearest double */
	TS_JSON_BIG,       /* an integer beyond int64: keep the text; `real` is approximate */
	TS_JSON_NONFINITE, /* NaN, Infinity, -Infinity and their short forms: `real` */
};

struct ts_json_number {
	enum ts_json_number_kind kind;
	int64_t integer;  /* TS_JSON_INT only */
	double real;      /* all other kinds */
	const char *text; /* the token as written */
	size_t length;
};

enum ts_json_literal {
	TS_JSON_NULL,
	TS_JSON_FALSE,
	TS_JSON_TRUE,
};

static inline void ts_json_init(struct ts_json *js, const char *data, size_t bytes, bool last)
{
	*js = (struct ts_json){ .next = data, .end = data + bytes, .last = last };
}

/* ---- results of failed scans; also for callers that check more than the grammar ---- */

/* Not enough bytes: TS_JSON_MORE, or TS_EFORMAT in the last buffer. */
int ts_json_cut(struct ts_json *js);

/* TS_EFORMAT at a byte, with a static reason. */
int ts_json_bad(struct ts_json *js, const char *at, const char *reason);

/* ---- tokens ---- */

/* Skips a byte order mark at the start of a file. */
int ts_json_skip_bom(struct ts_json *js);

static inline void ts_json_skip_space(struct ts_json *js)
{
	js->next = ts_json_find_token_(js->next, js->end);
}

/*
 * Skips white space and returns the next byte, which identifies the value: { [ " t f and digits;
 * '-' a number; 'n' null or nan; 'N' 'I' 'i' a number (nonfinite). -1: the buffer ends; return
 * ts_json_cut(js).
 */
static inline int ts_json_peek(struct ts_json *js)
{
	ts_json_skip_space(js);
	return js->next < js->end ? (unsigned char)*js->next : -1;
}

/*
 * White space, then `open` ('{' or '['). *ret_more is false for an empty one, which is then
 * consumed.
 */
int ts_json_enter(struct ts_json *js, char open, bool *ret_more);

/*
 * After a value: white space, then ',' (*ret_more true) or `close` (false). A comma before `close`
 * is rejected by whatever reads the next value.
 */
static inline int ts_json_next(struct ts_json *js, char close, bool *ret_more)
{
	const char *p = ts_json_find_token_(js->next, js->end);

	if (TS_UNLIKELY(p == js->end))
		return ts_json_cut(js);
	if (TS_UNLIKELY(*p != ',' && *p != close))
		return ts_json_bad(js, p,
				   close == '}' ? "expected ',' or '}' after a value"
						: "expected ',' or ']' after a value");
	*ret_more = *p == ',';
	js->next = p + 1;
	return TS_OK;
}

/* The cold paths of scan_string: escapes and buffer ends. `from` is at a quote. */
int ts_json_scan_escaped_(struct ts_json *js, const char *from, struct ts_json_string *ret_string);

/* White space, then a string. */
static inline int ts_json_scan_string(struct ts_json *js, struct ts_json_string *ret_string)
{
	const char *p = ts_json_find_token_(js->next, js->end), *stop;

	if (TS_UNLIKELY(p == js->end))
		return ts_json_cut(js);
	if (TS_UNLIKELY(*p != '"'))
		return ts_json_bad(js, p, "expected a string");
	stop = ts_json_find_quote_(p + 1, js->end);
	if (TS_UNLIKELY(stop == js->end || *stop != '"'))
		return ts_json_scan_escaped_(js, p, ret_string);
	*ret_string = (struct ts_json_string){ .text = p + 1, .length = (size_t)(stop - p - 1) };
	js->next = stop + 1;
	return TS_OK;
}

/* White space, a string, white space, ':'. */
static inline int ts_json_scan_key(struct ts_json *js, struct ts_json_string *ret_key)
{
	const char *start = js->next, *p;
	struct ts_json_string key;
	int rc = ts_json_scan_string(js, &key);

	if (TS_UNLIKELY(rc))
		return rc;
	p = ts_json_find_token_(js->next, js->end);
	if (TS_LIKELY(p < js->end && *p == ':')) {
		*ret_key = key;
		js->next = p + 1;
		return TS_OK;
	}
	js->next = start;
	return p == js->end ? ts_json_cut(js) : ts_json_bad(js, p, "expected ':' after a key");
}

/* Compares with a string literal. Escaped strings never match. */
#define ts_json_string_is(string, literal)          \
	((string)->length == sizeof(literal) - 1 && \
	 memcmp((string)->text, literal, sizeof(literal) - 1) == 0)

/*
 * Appends a string from scan_string with its escapes resolved: surrogate pairs combined, lone
 * surrogates as U+FFFD, \u0000 as a zero byte. Other bytes are copied unchanged.
 */
void ts_json_unescape(const struct ts_json_string *string, struct ts_text *out);

int ts_json_scan_number_slow_(struct ts_json *js, const char *from, struct ts_json_number *ret);

/*
 * White space, then a number. Rejects a leading '+' or '.', leading zeros and hexadecimal. Numbers
 * too large for a double give an infinite `real` of kind TS_JSON_DOUBLE.
 */
static inline int ts_json_scan_number(struct ts_json *js, struct ts_json_number *ret_number)
{
	const char *p = ts_json_find_token_(js->next, js->end), *digits;
	uint64_t value = 0;
	bool negative;

	if (TS_UNLIKELY(p == js->end))
		return ts_json_cut(js);
	negative = *p == '-';
	digits = p + negative;
	for (const char *q = digits; q < js->end; q++) {
		unsigned char digit = (unsigned char)(*q - '0');

		if (digit <= 9) {
			value = value * 10 + digit;
			continue;
		}
		/*
		 * A plain integer that cannot overflow and is terminated; everything else is rare.
		 */
		if (TS_LIKELY((*q == ',' || *q == '}' || *q == ']' || ts_json_is_space_(*q)) &&
			      (size_t)(q - digits) - 1 < 18 &&
			      (*digits != '0' || q == digits + 1) && (value != 0 || !negative))) {
			ret_number->kind = TS_JSON_INT;
			ret_number->integer = negative ? -(int64_t)value : (int64_t)value;
			ret_number->text = p;
			ret_number->length = (size_t)(q - p);
			js->next = q;
			return TS_OK;
		}
		break;
	}
	return ts_json_scan_number_slow_(js, p, ret_number);
}

/*
 * White space, then a number as a fixed-point decimal: value * 10^places, exact, further digits
 * rounded half away from zero. Places 3 turns microseconds into nanoseconds, 9 seconds. Results
 * beyond int64 and nonfinite numbers are TS_EFORMAT.
 */
int ts_json_scan_decimal(struct ts_json *js, unsigned int places, int64_t *ret_value);

/* Microseconds as nanoseconds: 1712195495607293.168, 1.2e3, -5. */
static inline int ts_json_scan_us(struct ts_json *js, int64_t *ret_ns)
{
	return ts_json_scan_decimal(js, 3, ret_ns);
}

/* The same for a text that is just the number (say, from a string); 0 or TS_EFORMAT. */
int ts_json_decimal_ns(const char *text, const char *end, int64_t *ret_ns);

/* White space, then true, false or null. */
int ts_json_scan_literal(struct ts_json *js, enum ts_json_literal *ret_literal);

/* ---- whole values ---- */

/*
 * White space, then any one value, fully syntax-checked; at most TS_JSON_MAX_DEPTH nested arrays
 * and objects. Not recursive.
 */
int ts_json_skip(struct ts_json *js);

/*
 * Like ts_json_skip(), and appends the value without white space between tokens. Strings and
 * numbers keep their bytes; nonfinite numbers become the strings "NaN", "Infinity" and "-Infinity".
 * On failure `out` keeps its length. An allocation failure only sets out->failed.
 */
int ts_json_minify(struct ts_json *js, struct ts_text *out);

/* ---- objects and arrays ---- */

struct ts_json_walk {
	char open;                 /* '{' or '[' */
	bool skips_others;         /* skips any other value instead of failing */
	int rc;                    /* set it to end the walk */
	struct ts_json_string key; /* of the member; in the buffer */
	/* of the walk itself */
	bool more;
	const char *value;
};

void ts_json_walk_start_(struct ts_json_walk *walk, struct ts_json *js);

/*
 * Steps to the next member or item and the white space before its value. The caller scans the value
 * or leaves it, to be skipped. False: at the end, which is then consumed, or walk->rc is not 0.
 */
static inline bool ts_json_walk_next(struct ts_json_walk *walk, struct ts_json *js)
{
	if (TS_UNLIKELY(!walk->value)) {
		ts_json_walk_start_(walk, js);
	} else if (walk->more && !walk->rc) {
		if (js->next == walk->value)
			walk->rc = ts_json_skip(js);
		if (!walk->rc)
			walk->rc = ts_json_next(js, (char)(walk->open + 2), &walk->more);
	}
	if (!walk->more || walk->rc)
		return false;
	if (walk->open == '{')
		walk->rc = ts_json_scan_key(js, &walk->key);
	ts_json_skip_space(js);
	walk->value = js->next;
	return !walk->rc;
}

/*
 * Steps into the object to the value of its first member with that key. TS_ENOTFOUND: it has none.
 */
int ts_json_find_member(struct ts_json *js, const char *key);

/*
 * The string of that member of the object `text`, unescaped and truncated to fit `size` bytes with
 * its NUL. False, with the buffer unchanged: there is none.
 */
bool ts_json_member_string(const char *text, size_t length, const char *key, char *buffer,
			   size_t size);

#endif
