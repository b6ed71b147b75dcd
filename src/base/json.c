/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON scanner: strings, literals and complete values. The walk over a value is written once and
 * compiled twice, for skip and for minify. It keeps its own stack, so that nesting depth is a limit
 * and not a crash.
 */
#include "base/json.h"

#include "base/json_number.h"

/* ---- results ---- */

int ts_json_cut(struct ts_json *js)
{
	if (js->last)
		return ts_json_bad(js, js->end, "unexpected end");
	js->error_at = js->end;
	return TS_JSON_MORE;
}

int ts_json_bad(struct ts_json *js, const char *at, const char *reason)
{
	js->error_at = at;
	js->reason = reason;
	return TS_EFORMAT;
}

/* ---- tokens ---- */

int ts_json_skip_bom(struct ts_json *js)
{
	static const char mark[3] = "\xef\xbb\xbf";
	size_t held = TS_MIN((size_t)(js->end - js->next), sizeof(mark));

	if (held == 0 || memcmp(js->next, mark, held) != 0)
		return held == 0 && !js->last ? ts_json_cut(js) : TS_OK;
	if (held < sizeof(mark))
		return js->last ? TS_OK : ts_json_cut(js);
	js->next += sizeof(mark);
	return TS_OK;
}

int ts_json_enter(struct ts_json *js, char open, bool *ret_more)
{
	const char *p = ts_json_find_token_(js->next, js->end);
	char close = open == '{' ? '}' : ']';

	if (p == js->end)
		return ts_json_cut(js);
	if (*p != open)
		return ts_json_bad(js, p, open == '{' ? "expected '{'" : "expected '['");
	p = ts_json_find_token_(p + 1, js->end);
	if (p == js->end)
		return ts_json_cut(js);
	*ret_more = *p != close;
	js->next = p + (*p == close);
	return TS_OK;
}

static int hex_digit(char c)
{
	if (ts_json_is_digit_(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Checks the escape at p (a backslash) and steps over it. */
static int skip_escape(struct ts_json *js, const char **p)
{
	const char *at = *p + 1;

	if (at == js->end)
		return ts_json_cut(js);
	switch (*at++) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		break;
	case 'u':
		for (int i = 0; i < 4; i++, at++) {
			if (at == js->end)
				return ts_json_cut(js);
			if (hex_digit(*at) < 0)
				return ts_json_bad(js, at, "expected four hexadecimal digits");
		}
		break;
	default:
		return ts_json_bad(js, at - 1, "unknown escape in a string");
	}
	*p = at;
	return TS_OK;
}

/* Finds the closing quote of a string, from a byte inside it where a search stopped. */
static int find_string_end(struct ts_json *js, const char *p, const char **ret_end)
{
	for (;;) {
		int rc;

		p = ts_json_find_quote_(p, js->end);
		if (p == js->end)
			return ts_json_cut(js);
		if (*p == '"') {
			*ret_end = p;
			return TS_OK;
		}
		rc = skip_escape(js, &p);
		if (rc)
			return rc;
	}
}

int ts_json_scan_escaped_(struct ts_json *js, const char *from, struct ts_json_string *ret_string)
{
	const char *end;
	int rc = find_string_end(js, from + 1, &end);

	if (rc)
		return rc;
	*ret_string = (struct ts_json_string){ .text = from + 1,
					       .length = (size_t)(end - from - 1),
					       .escaped = true };
	js->next = end + 1;
	return TS_OK;
}

/* The value of \uXXXX at p, whose digits are already checked; -1 if there is none. */
static int32_t take_unit(const char *p, const char *end)
{
	int32_t unit = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++)
		unit = unit * 16 + hex_digit(p[i]);
	return unit;
}

/* Appends the character of \uXXXX at p, combined with a following low surrogate. */
static const char *unescape_unit(const char *p, const char *end, struct ts_text *out)
{
	int32_t unit = take_unit(p, end), low;
	char utf8[4];

	if (unit < 0) {
		/* Not produced by scan_string: keep the bytes. */
		ts_text_append(out, p, 2);
		return p + 2;
	}
	p += 6;
	if (unit >= 0xd800 && unit <= 0xdbff) {
		low = take_unit(p, end);
		if (low >= 0xdc00 && low <= 0xdfff) {
			unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
			p += 6;
		}
	}
	ts_text_append(out, utf8, ts_utf8_encode(utf8, (uint32_t)unit));
	return p;
}

void ts_json_unescape(const struct ts_json_string *string, struct ts_text *out)
{
	static const char meaning[128] = {
		['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t',
	};
	const char *p = string->text, *end = p + string->length;

	while (p < end) {
		const char *stop = memchr(p, '\\', (size_t)(end - p));

		if (!stop || end - stop < 2)
			stop = end;
		ts_text_append(out, p, (size_t)(stop - p));
		p = stop;
		if (p == end)
			return;
		if (p[1] == 'u') {
			p = unescape_unit(p, end, out);
		} else {
			char c = meaning[p[1] & 0x7f];

			ts_text_append_char(out, c ? c : p[1]);
			p += 2;
		}
	}
}

int ts_json_match_word_(struct ts_json *js, const char *p, const char *word, size_t length)
{
	size_t held = TS_MIN((size_t)(js->end - p), length);

	if (memcmp(p, word, held) != 0)
		return ts_json_bad(js, p, "expected a value");
	return held < length ? ts_json_cut(js) : TS_OK;
}

/* The literal at p; p is not js->end. */
static int match_literal(struct ts_json *js, const char *p, enum ts_json_literal *ret_literal,
			 const char **ret_end)
{
	static const struct {
		char word[6];
		unsigned char length;
	} literals[] = {
		[TS_JSON_NULL] = { "null", 4 },
		[TS_JSON_FALSE] = { "false", 5 },
		[TS_JSON_TRUE] = { "true", 4 },
	};
	enum ts_json_literal literal = *p == 't'   ? TS_JSON_TRUE
				       : *p == 'f' ? TS_JSON_FALSE
						   : TS_JSON_NULL;
	int rc = ts_json_match_word_(js, p, literals[literal].word, literals[literal].length);

	if (rc)
		return rc;
	*ret_literal = literal;
	*ret_end = p + literals[literal].length;
	return TS_OK;
}

int ts_json_scan_literal(struct ts_json *js, enum ts_json_literal *ret_literal)
{
	const char *p = ts_json_find_token_(js->next, js->end);

	if (p == js->end)
		return ts_json_cut(js);
	return match_literal(js, p, ret_literal, &js->next);
}

/* ---- whole values ---- */

/*
 * The byte after the number at p, if that is -?D+(.D+)? and a terminating byte follows. NULL if it
 * needs the careful path.
 */
static inline const char *plain_number_end(const char *p, const char *end)
{
	const char *digits = p + (*p == '-'), *q;

	q = ts_json_find_no_digit_(digits, end);
	if (q == digits || q == end || (*digits == '0' && q - digits > 1))
		return NULL;
	if (*q == '.') {
		digits = q + 1;
		q = ts_json_find_no_digit_(digits, end);
		if (q == digits || q == end)
			return NULL;
	}
	return *q == ',' || *q == '}' || *q == ']' || ts_json_is_space_(*q) ? q : NULL;
}

/*
 * The minified text consists of runs of adjacent input bytes, most of them short. Those are copied
 * as 16 bytes; the next run overwrites the excess.
 */
static inline void append_run(struct ts_text *out, const char *run, const char *to, const char *end)
{
	size_t bytes = (size_t)(to - run);

	if (bytes <= 16 && end - run >= 16 && ts_text_reserve(out, 16)) {
		memcpy(out->data + out->length, run, 16);
		out->length += bytes;
	} else {
		ts_text_append(out, run, bytes);
	}
}

/*
 * Results of the rare paths of a walk. The position itself is never in a struct and never has its
 * address taken: the compiler would keep it in memory, and each step would wait for that.
 */
struct walk_result {
	int rc;
	bool replaced; /* minify wrote the token differently from the input */
};

/* The byte after the closing quote of a string whose first '"' or '\\' is at p, if any. */
static __attribute__((noinline)) const char *walk_escaped(struct ts_json *js, const char *p,
							  struct walk_result *result)
{
	result->rc = find_string_end(js, p, &p);
	return p + 1;
}

/* A literal, or a number that is not plain: returns the byte after it. */
static __attribute__((noinline)) const char *walk_scalar(struct ts_json *js, const char *p,
							 struct ts_text *out, const char *run,
							 struct walk_result *result)
{
	struct ts_json_number_parts parts = { .end = p };
	enum ts_json_literal literal;

	if (*p == 't' || *p == 'f' || (*p == 'n' && js->end - p >= 2 && p[1] == 'u')) {
		result->rc = match_literal(js, p, &literal, &p);
		return p;
	}
	/* Before the end of the last buffer it may still become "null" or "nan". */
	if (*p == 'n' && js->end - p < 2)
		result->rc = ts_json_cut(js);
	else if (*p != '-' && !ts_json_is_digit_(*p) && !memchr("nNIi", *p, 4))
		result->rc = ts_json_bad(js, p, "expected a value");
	else
		result->rc = ts_json_split_number_(js, p, &parts);
	if (!result->rc && out && parts.word) {
		append_run(out, run, p, js->end);
		ts_text_append_str(out, parts.negative && *parts.word == 'I' ? "\"-" : "\"");
		ts_text_append_str(out, parts.word);
		ts_text_append_char(out, '"');
		result->replaced = true;
	}
	return parts.end;
}

/* Skips white space, which ends a run. */
#define WALK_SPACE()                                      \
	do {                                              \
		const char *from_ = p;                    \
                                                          \
		p = ts_json_find_token_(from_, end);      \
		if (out && p != from_) {                  \
			append_run(out, run, from_, end); \
			run = p;                          \
		}                                         \
		if (TS_UNLIKELY(p == end))                \
			return ts_json_cut(js);           \
	} while (0)

/* Skips the string at p. */
#define WALK_STRING()                                     \
	do {                                              \
		p = ts_json_find_quote_(p + 1, end);      \
		if (TS_LIKELY(p < end && *p == '"')) {    \
			p++;                              \
		} else {                                  \
			p = walk_escaped(js, p, &result); \
			if (result.rc)                    \
				return result.rc;         \
		}                                         \
	} while (0)

/* `out` is known to be NULL or not at compile time. */
static inline __attribute__((always_inline)) int walk(struct ts_json *js, struct ts_text *out)
{
	struct walk_result result = { .rc = TS_OK };
	const char *p = js->next, *run = p, *behind;
	const char *const end = js->end;
	char closers[TS_JSON_MAX_DEPTH];
	unsigned int depth = 0;
	char closer = 0;

value:
	WALK_SPACE();
	if (*p == '"') {
		WALK_STRING();
	} else if (*p == '{' || *p == '[') {
		if (TS_UNLIKELY(depth == TS_JSON_MAX_DEPTH))
			return ts_json_bad(js, p, "arrays and objects are nested too deeply");
		closers[depth++] = closer;
		closer = (char)(*p++ + 2);
		WALK_SPACE();
		if (*p != closer) {
			if (closer == '}')
				goto key;
			goto value;
		}
		p++;
		closer = closers[--depth];
	} else {
		behind = plain_number_end(p, end);
		if (TS_UNLIKELY(!behind)) {
			behind = walk_scalar(js, p, out, run, &result);
			if (result.rc)
				return result.rc;
			if (result.replaced)
				run = behind;
			result.replaced = false;
		}
		p = behind;
	}
	while (depth) {
		WALK_SPACE();
		if (*p == ',') {
			p++;
			if (closer == '}')
				goto key;
			goto value;
		}
		if (TS_UNLIKELY(*p != closer))
			return ts_json_bad(js, p,
					   closer == '}' ? "expected ',' or '}' after a value"
							 : "expected ',' or ']' after a value");
		p++;
		closer = closers[--depth];
	}
	if (out)
		append_run(out, run, p, end);
	js->next = p;
	return TS_OK;

key:
	WALK_SPACE();
	if (TS_UNLIKELY(*p != '"'))
		return ts_json_bad(js, p, "expected a key in double quotes");
	WALK_STRING();
	WALK_SPACE();
	if (TS_UNLIKELY(*p != ':'))
		return ts_json_bad(js, p, "expected ':' after a key");
	p++;
	goto value;
}

int ts_json_skip(struct ts_json *js)
{
	return walk(js, NULL);
}

int ts_json_minify(struct ts_json *js, struct ts_text *out)
{
	size_t length = out->length;
	int rc = walk(js, out);

	if (rc)
		out->length = length;
	return rc;
}

/* ---- objects and arrays ---- */

void ts_json_walk_start_(struct ts_json_walk *walk, struct ts_json *js)
{
	if (walk->skips_others && ts_json_peek(js) != walk->open)
		walk->rc = ts_json_skip(js);
	else
		walk->rc = ts_json_enter(js, walk->open, &walk->more);
	walk->value = js->next;
}

int ts_json_find_member(struct ts_json *js, const char *key)
{
	struct ts_json_walk walk = { .open = '{' };
	size_t length = strlen(key);

	while (ts_json_walk_next(&walk, js))
		if (walk.key.length == length && !memcmp(walk.key.text, key, length))
			return TS_OK;
	return walk.rc ? walk.rc : TS_ENOTFOUND;
}

bool ts_json_member_string(const char *text, size_t length, const char *key, char *buffer,
			   size_t size)
{
	TS_SCOPED(ts_text) plain = { 0 };
	struct ts_json_string string;
	struct ts_json js;
	size_t fits;

	ts_json_init(&js, text, length, true);
	if (ts_json_find_member(&js, key) || ts_json_scan_string(&js, &string))
		return false;
	ts_json_unescape(&string, &plain);
	if (ts_text_status(&plain))
		return false;
	fits = TS_MIN(plain.length, size - 1);
	fits = plain.length ? ts_utf8_valid_prefix(plain.data, fits) : 0;
	if (fits)
		memcpy(buffer, plain.data, fits);
	buffer[fits] = 0;
	return true;
}
