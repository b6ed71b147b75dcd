/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and compares numbers in memory. */
#include "replay/check/values.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

static const struct ts_value_type types[] = {
	{ "f16", 2, 10, 5, true, false },  { "bf16", 2, 7, 8, true, false },
	{ "f32", 4, 23, 8, true, false },  { "f64", 8, 52, 11, true, false },
	{ "f8e4m3", 1, 3, 4, true, true }, { "f8e5m2", 1, 2, 5, true, false },
	{ "i8", 1, 0, 0, true, false },    { "i16", 2, 0, 0, true, false },
	{ "i32", 4, 0, 0, true, false },   { "i64", 8, 0, 0, true, false },
	{ "u8", 1, 0, 0, false, false },   { "u16", 2, 0, 0, false, false },
	{ "u32", 4, 0, 0, false, false },  { "u64", 8, 0, 0, false, false },
};

const struct ts_value_type *ts_value_type_find(const char *name)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

const char *ts_value_type_names(void)
{
	return "f16, bf16, f32, f64, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, u16, u32, u64";
}

/* ---- one value ---- */

uint64_t ts_value_bits(const struct ts_value_type *type, const void *data)
{
	const unsigned char *bytes = data;
	uint64_t value = 0;

	for (unsigned int i = 0; i < type->bytes; i++)
		value |= (uint64_t)bytes[i] << (8 * i);
	return value;
}

static int64_t extend(const struct ts_value_type *type, uint64_t bits)
{
	unsigned int shift = 64 - 8 * type->bytes;

	return (int64_t)(bits << shift) >> shift;
}

static double real_of(const struct ts_value_type *type, uint64_t bits)
{
	uint64_t fraction = bits & ((UINT64_C(1) << type->mantissa_bits) - 1);
	uint64_t most = (UINT64_C(1) << type->exponent_bits) - 1;
	uint64_t exponent = bits >> type->mantissa_bits & most;
	int bias = (int)(most / 2), scale = (int)exponent - bias - (int)type->mantissa_bits;
	double value;

	if (exponent == most && type->is_finite &&
	    fraction + 1 != UINT64_C(1) << type->mantissa_bits)
		value = ldexp((double)(fraction | UINT64_C(1) << type->mantissa_bits), scale);
	else if (exponent == most)
		value = fraction ? NAN : INFINITY;
	else if (exponent == 0)
		value = ldexp((double)fraction, scale + 1);
	else
		value = ldexp((double)(fraction | UINT64_C(1) << type->mantissa_bits), scale);
	return bits >> (8 * type->bytes - 1) ? -value : value;
}

double ts_value_real(const struct ts_value_type *type, const void *data)
{
	uint64_t bits = ts_value_bits(type, data);

	if (type->mantissa_bits)
		return real_of(type, bits);
	return type->is_signed ? (double)extend(type, bits) : (double)bits;
}

/* Digits needed to read back any value of the type. */
static int digits_of(const struct ts_value_type *type)
{
	return (int)((type->mantissa_bits + 1) * 30103 / 100000) + 2;
}

static bool is_nan(const struct ts_value_type *type, uint64_t bits)
{
	return type->mantissa_bits && isnan(real_of(type, bits));
}

unsigned int ts_value_width(const struct ts_value_type *type)
{
	/* Sign, point, and an exponent such as e-38 or e-308. */
	if (type->mantissa_bits)
		return (unsigned int)digits_of(type) + (type->exponent_bits > 8 ? 7 : 6);
	return (8 * type->bytes - type->is_signed) * 30103 / 100000 + 1 + type->is_signed;
}

const char *ts_value_format(const struct ts_value_type *type, const void *data,
			    char to[TS_VALUE_BYTES])
{
	uint64_t bits = ts_value_bits(type, data);

	if (is_nan(type, bits))
		snprintf(to, TS_VALUE_BYTES, "nan");
	else if (type->mantissa_bits)
		/* Never more than 17 digits; TS_MIN tells the compiler. */
		snprintf(to, TS_VALUE_BYTES, "%.*g", TS_MIN(digits_of(type), 17),
			 real_of(type, bits));
	else if (type->is_signed)
		snprintf(to, TS_VALUE_BYTES, "%" PRId64, extend(type, bits));
	else
		snprintf(to, TS_VALUE_BYTES, "%" PRIu64, bits);
	return to;
}

void ts_value_append_json(const struct ts_value_type *type, const void *data, struct ts_text *out)
{
	char value[TS_VALUE_BYTES];
	bool is_number;

	ts_value_format(type, data, value);
	is_number = isdigit((unsigned char)value[value[0] == '-']);
	ts_text_printf(out, is_number ? "%s" : "\"%s\"", value);
}

/* Maps adjacent values to adjacent integers: floats are sign and magnitude. */
static uint64_t rank_of(const struct ts_value_type *type, uint64_t bits)
{
	const uint64_t middle = UINT64_C(1) << 63;
	uint64_t sign = UINT64_C(1) << (8 * type->bytes - 1);

	if (!type->is_signed)
		return bits;
	if (!type->mantissa_bits)
		return (uint64_t)extend(type, bits) + middle;
	return bits & sign ? middle - (bits & ~sign) : middle + bits;
}

/* ---- tolerance ---- */

static int bad_tolerance(const char *text, struct ts_error *err)
{
	return ts_error_set(
		err, TS_EINVAL,
		"'%s' is not a tolerance; use ulp=N, abs=X, rel=X or several, separated by commas",
		text);
}

/* A finite number that is not negative, at the end of the text or before a comma. */
static bool parse_bound(const char *text, size_t length, struct ts_json_number *ret_number)
{
	struct ts_json js;

	*ret_number = (struct ts_json_number){ 0 };
	ts_json_init(&js, text, length, true);
	if (!length || ts_json_scan_number(&js, ret_number) || js.next != text + length)
		return false;
	if (ret_number->kind == TS_JSON_INT)
		ret_number->real = (double)ret_number->integer;
	return isfinite(ret_number->real) && ret_number->real >= 0;
}

int ts_value_tolerance_parse(struct ts_value_tolerance *ret_tolerance, const char *text,
			     struct ts_error *err)
{
	struct ts_value_tolerance tolerance = { .text = text };

	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		struct ts_json_number number;

		if (length < 4 || !parse_bound(at + 4, length - 4, &number))
			return bad_tolerance(text, err);
		if (!strncmp(at, "ulp=", 4) && number.kind == TS_JSON_INT)
			tolerance.ulp = (uint64_t)number.integer;
		else if (!strncmp(at, "abs=", 4))
			tolerance.absolute = number.real;
		else if (!strncmp(at, "rel=", 4))
			tolerance.relative = number.real;
		else
			return bad_tolerance(text, err);
		at += length;
		if (!*at)
			break;
	}
	*ret_tolerance = tolerance;
	return TS_OK;
}

bool ts_value_tolerance_is_set(const struct ts_value_tolerance *tolerance)
{
	return tolerance->ulp || tolerance->absolute > 0 || tolerance->relative > 0;
}

bool ts_value_is_near(const struct ts_value_type *type, const struct ts_value_tolerance *tolerance,
		      const void *a, const void *b)
{
	uint64_t x = ts_value_bits(type, a), y = ts_value_bits(type, b), distance;
	double real_x, real_y, apart;

	if (x == y)
		return true;
	if (is_nan(type, x) || is_nan(type, y))
		return is_nan(type, x) && is_nan(type, y);
	real_x = ts_value_real(type, a);
	real_y = ts_value_real(type, b);
	x = rank_of(type, x);
	y = rank_of(type, y);
	distance = x > y ? x - y : y - x;
	if (distance <= tolerance->ulp)
		return true;
	if (isinf(real_x) || isinf(real_y))
		return false;
	/* Large integers are not exact as double; their distance is. */
	apart = type->mantissa_bits ? fabs(real_x - real_y) : (double)distance;
	return apart <= tolerance->absolute ||
	       apart <= tolerance->relative * fmax(fabs(real_x), fabs(real_y));
}

/* ---- arrays of values ---- */

static void differ(struct ts_value_difference *difference, const unsigned char *a,
		   const unsigned char *b, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		if (a[i] == b[i])
			continue;
		if (!difference->bytes)
			difference->first_byte = i;
		difference->bytes++;
	}
}

struct ts_value_difference ts_value_compare(const struct ts_value_type *type,
					    const struct ts_value_tolerance *tolerance,
					    const void *a, const void *b, uint64_t bytes)
{
	const unsigned char *x = a, *y = b;
	struct ts_value_difference difference = { 0 };
	uint64_t step = type ? type->bytes : 1, complete_bytes = bytes - bytes % step;
	bool has_tolerance = type && tolerance && ts_value_tolerance_is_set(tolerance);

	for (uint64_t i = 0; i < complete_bytes; i += step) {
		if (!memcmp(x + i, y + i, step) ||
		    (has_tolerance && ts_value_is_near(type, tolerance, x + i, y + i)))
			continue;
		differ(&difference, x, y, i, i + step);
	}
	differ(&difference, x, y, complete_bytes, bytes);
	difference.first_value = difference.first_byte / step;
	return difference;
}
