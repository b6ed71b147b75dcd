/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON numbers: grammar, exact integers, nearest doubles, and exact fixed-point decimals (times
 * never pass through a double).
 */
#include "base/json_number.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/real.h"

/* ---- the grammar ---- */

static bool is_word_byte(char c)
{
	return ts_json_is_digit_(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == '.' || c == '+' || c == '-';
}

/* Whether the token ends at p: a terminating byte follows, or no more bytes will come. */
static int check_end(struct ts_json *js, const char *p)
{
	if (p == js->end)
		return js->last ? TS_OK : ts_json_cut(js);
	if (is_word_byte(*p))
		return ts_json_bad(js, p, "unexpected character in a number");
	return TS_OK;
}

static int split_word(struct ts_json *js, const char *p, struct ts_json_number_parts *parts)
{
	static const struct {
		const char *spelling;
		const char *word;
	} words[] = {
		{ "NaN", "NaN" },
		{ "nan", "NaN" },
		{ "Infinity", "Infinity" },
		{ "inf", "Infinity" },
	};
	const char *reason = parts->negative ? "expected a digit after '-'" : "expected a number";
	size_t i = 0, length;
	int rc;

	while (i < TS_ARRAY_SIZE(words) && *p != words[i].spelling[0])
		i++;
	if (i == TS_ARRAY_SIZE(words))
		return ts_json_bad(js, p, reason);
	length = strlen(words[i].spelling);
	rc = ts_json_match_word_(js, p, words[i].spelling, length);
	if (rc == TS_EFORMAT && js->error_at == p)
		return ts_json_bad(js, p, reason);
	if (rc)
		return rc;
	parts->word = words[i].word;
	parts->end = p + length;
	return check_end(js, parts->end);
}

/*
 * Digits at p, at least one. *ret_end is just after them; it may be js->end in the last buffer
 * only.
 */
static int split_digits(struct ts_json *js, const char *p, const char *reason, const char **ret_end)
{
	const char *end = ts_json_find_no_digit_(p, js->end);

	if (end == js->end && !js->last)
		return ts_json_cut(js);
	if (end == p)
		return p == js->end ? ts_json_cut(js) : ts_json_bad(js, p, reason);
	*ret_end = end;
	return TS_OK;
}

static int split_exponent(struct ts_json *js, const char *p, struct ts_json_number_parts *parts)
{
	const int64_t limit = 1000000000000000;
	bool negative = p < js->end && *p == '-';
	int64_t value = 0;
	int rc;

	if (p < js->end && (*p == '-' || *p == '+'))
		p++;
	rc = split_digits(js, p, "expected a digit in the exponent", &parts->end);
	if (rc)
		return rc;
	for (; p < parts->end && value < limit; p++)
		value = value * 10 + (*p - '0');
	value = TS_MIN(value, limit);
	parts->exponent = negative ? -value : value;
	parts->has_exponent = true;
	return TS_OK;
}

int ts_json_split_number_(struct ts_json *js, const char *from, struct ts_json_number_parts *parts)
{
	const char *p = from;
	int rc;

	*parts = (struct ts_json_number_parts){ .negative = p < js->end && *p == '-' };
	p += parts->negative;
	if (p == js->end)
		return ts_json_cut(js);
	if (!ts_json_is_digit_(*p))
		return split_word(js, p, parts);
	rc = split_digits(js, p, "", &parts->end);
	if (rc)
		return rc;
	if (*p == '0' && parts->end - p > 1)
		return ts_json_bad(js, p, "a number must not begin with 0");
	assert(parts->end);
	parts->integer = p;
	parts->integer_end = parts->fraction = parts->fraction_end = p = parts->end;
	if (p < js->end && *p == '.') {
		rc = split_digits(js, ++p, "expected a digit after '.'", &parts->end);
		if (rc)
			return rc;
		parts->has_fraction = true;
		parts->fraction = p;
		parts->fraction_end = p = parts->end;
	}
	if (p < js->end && (*p == 'e' || *p == 'E')) {
		rc = split_exponent(js, p + 1, parts);
		if (rc)
			return rc;
	}
	return check_end(js, parts->end);
}

/* ---- digits ---- */

/* Eight digits at once: pairs, then fours, then all, in parallel in one word. */
static inline uint64_t eight_digits(const char *p)
{
	uint64_t word;

	memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	word &= 0x0f0f0f0f0f0f0f0fu;
	word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ffu;
	word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffffu;
	return (word * 10000 + (word >> 32)) & 0xffffffffu;
}

/* Continues from `value`; the caller ensures at most 19 digits in total. */
static inline uint64_t more_digits(uint64_t value, const char *p, const char *end)
{
	for (; end - p >= 8; p += 8)
		value = value * 100000000 + eight_digits(p);
	for (; p < end; p++)
		value = value * 10 + (uint64_t)(*p - '0');
	return value;
}

/* The digits of integer and fraction as one sequence without leading zeros. */
struct digit_row {
	const struct ts_json_number_parts *parts;
	const char *next;
};

static int next_digit(struct digit_row *row)
{
	if (row->next == row->parts->integer_end)
		row->next = row->parts->fraction;
	return row->next == row->parts->fraction_end ? -1 : *row->next++ - '0';
}

/*
 * Starts a sequence. The value is then 0.DDDD... * 10^*ret_point with a nonzero first digit; false
 * if all digits are 0.
 */
static bool start_row(struct digit_row *row, const struct ts_json_number_parts *parts,
		      int64_t *ret_point)
{
	int digit;

	*row = (struct digit_row){ .parts = parts, .next = parts->integer };
	*ret_point = parts->integer_end - parts->integer + parts->exponent;
	while ((digit = next_digit(row)) == 0)
		--*ret_point;
	if (digit < 0)
		return false;
	row->next--;
	return true;
}

/* ---- doubles ---- */

/* Digits that can still affect rounding to a double; the rest counts as "more than 0". */
#define DECIDING_DIGITS 800

static double parse_with_libc(const struct ts_json_number_parts *parts)
{
	char text[DECIDING_DIGITS + 32];
	struct digit_row row;
	size_t at = 0;
	int64_t point;
	int digit;

	if (!start_row(&row, parts, &point))
		return parts->negative ? -0.0 : 0.0;
	if (parts->negative)
		text[at++] = '-';
	text[at++] = '.';
	while ((digit = next_digit(&row)) >= 0 && at < DECIDING_DIGITS)
		text[at++] = (char)('0' + digit);
	while (digit == 0)
		digit = next_digit(&row);
	if (digit > 0)
		text[at++] = '1';
	point = TS_MAX(TS_MIN(point, 100000), -100000);
	snprintf(text + at, sizeof(text) - at, "e%d", (int)point);
	return ts_real_parse(text);
}

static double to_double(const struct ts_json_number_parts *parts)
{
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	int64_t decimals = parts->fraction_end - parts->fraction;
	int64_t power = parts->exponent - decimals;
	uint64_t digits;
	double value;

	if (parts->integer_end - parts->integer + decimals > 19 || power < -22 || power > 22)
		return parse_with_libc(parts);
	digits = more_digits(0, parts->integer, parts->integer_end);
	digits = more_digits(digits, parts->fraction, parts->fraction_end);
	if (digits > (uint64_t)1 << 53)
		return parse_with_libc(parts);
	/* Two exact doubles and one operation: one rounding, so the nearest double. */
	value = power < 0 ? (double)digits / powers[-power] : (double)digits * powers[power];
	return parts->negative ? -value : value;
}

/* ---- numbers ---- */

/* An integer that fits; not -0, whose sign only a double keeps. */
static bool to_int64(const struct ts_json_number_parts *parts, int64_t *ret_value)
{
	uint64_t value;

	if (parts->has_fraction || parts->has_exponent || parts->integer_end - parts->integer > 19)
		return false;
	value = more_digits(0, parts->integer, parts->integer_end);
	if (value > (uint64_t)INT64_MAX + parts->negative || (value == 0 && parts->negative))
		return false;
	*ret_value = (int64_t)(parts->negative ? -value : value);
	return true;
}

int ts_json_scan_number_slow_(struct ts_json *js, const char *from, struct ts_json_number *ret)
{
	struct ts_json_number_parts parts;
	int rc = ts_json_split_number_(js, from, &parts);

	if (rc)
		return rc;
	*ret = (struct ts_json_number){ .text = from, .length = (size_t)(parts.end - from) };
	js->next = parts.end;
	if (parts.word) {
		ret->kind = TS_JSON_NONFINITE;
		ret->real = *parts.word == 'N' ? NAN : parts.negative ? -INFINITY : INFINITY;
		return TS_OK;
	}
	if (to_int64(&parts, &ret->integer)) {
		ret->kind = TS_JSON_INT;
		return TS_OK;
	}
	ret->real = to_double(&parts);
	ret->kind = parts.has_fraction || parts.has_exponent || ret->real == 0 ? TS_JSON_DOUBLE
									       : TS_JSON_BIG;
	return TS_OK;
}

/* ---- fixed-point decimals ---- */

/* General case: keeps the first `point` digits, the next one rounds. False: too large. */
static bool round_row(const struct ts_json_number_parts *parts, unsigned int places,
		      uint64_t *ret_magnitude)
{
	struct digit_row row;
	uint64_t value = 0;
	int64_t point;

	if (start_row(&row, parts, &point)) {
		point += places;
		if (point > 19)
			return false;
		for (; point > 0; point--) {
			int digit = next_digit(&row);

			value = value * 10 + (uint64_t)TS_MAX(digit, 0);
		}
		if (point == 0 && next_digit(&row) >= 5)
			value++;
	}
	*ret_magnitude = value;
	return true;
}

/* Common case: no exponent, at most 19 digits. */
static uint64_t round_short(const struct ts_json_number_parts *parts, unsigned int places)
{
	const char *cut = parts->fraction_end;
	uint64_t value = more_digits(0, parts->integer, parts->integer_end);

	if (cut - parts->fraction > (int64_t)places)
		cut = parts->fraction + places;
	value = more_digits(value, parts->fraction, cut);
	for (unsigned int taken = (unsigned int)(cut - parts->fraction); taken < places; taken++)
		value *= 10;
	return value + (cut < parts->fraction_end && *cut >= '5');
}

int ts_json_scan_decimal(struct ts_json *js, unsigned int places, int64_t *ret_value)
{
	const char *p = ts_json_find_token_(js->next, js->end);
	struct ts_json_number_parts parts;
	uint64_t magnitude;
	int rc;

	if (p == js->end)
		return ts_json_cut(js);
	rc = ts_json_split_number_(js, p, &parts);
	if (rc)
		return rc;
	if (parts.word)
		return ts_json_bad(js, p, "expected a finite number");
	if (TS_LIKELY(!parts.has_exponent &&
		      (uint64_t)(parts.integer_end - parts.integer) + places <= 19))
		magnitude = round_short(&parts, places);
	else if (!round_row(&parts, places, &magnitude))
		return ts_json_bad(js, p, "number is too large");
	if (magnitude > (uint64_t)INT64_MAX + parts.negative)
		return ts_json_bad(js, p, "number is too large");
	*ret_value = (int64_t)(parts.negative ? -magnitude : magnitude);
	js->next = parts.end;
	return TS_OK;
}

int ts_json_decimal_ns(const char *text, const char *end, int64_t *ret_ns)
{
	struct ts_json js = { .next = text, .end = end, .last = true };
	int64_t ns = 0;

	if (text == end || ts_json_is_space_(*text) || ts_json_scan_us(&js, &ns) || js.next != end)
		return TS_EFORMAT;
	*ret_ns = ns;
	return TS_OK;
}
