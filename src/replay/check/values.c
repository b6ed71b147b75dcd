/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and compares numbers in memory. */
#include "replay/check/values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static const struct ts_value_type types[] = {
	{ "f16", 2, 10, 5, true },  { "bf16", 2, 7, 8, true }, { "f32", 4, 23, 8, true },
	{ "f64", 8, 52, 11, true }, { "i8", 1, 0, 0, true },   { "i16", 2, 0, 0, true },
	{ "i32", 4, 0, 0, true },   { "i64", 8, 0, 0, true },  { "u8", 1, 0, 0, false },
	{ "u16", 2, 0, 0, false },  { "u32", 4, 0, 0, false }, { "u64", 8, 0, 0, false },
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
	return "f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64";
}

/* ---- one value ---- */

static uint64_t load(const struct ts_value_type *type, const void *data)
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

	if (exponent == most)
		value = fraction ? NAN : INFINITY;
	else if (exponent == 0)
		value = ldexp((double)fraction, scale + 1);
	else
		value = ldexp((double)(fraction | UINT64_C(1) << type->mantissa_bits), scale);
	return bits >> (8 * type->bytes - 1) ? -value : value;
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

const char *ts_value_format(const struct ts_value_type *type, const void *data,
			    char to[TS_VALUE_BYTES])
{
	uint64_t bits = load(type, data);

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

bool ts_value_is_near(const struct ts_value_type *type, const void *a, const void *b, uint64_t ulp)
{
	uint64_t x = load(type, a), y = load(type, b);

	if (x == y)
		return true;
	if (is_nan(type, x) || is_nan(type, y))
		return is_nan(type, x) && is_nan(type, y);
	x = rank_of(type, x);
	y = rank_of(type, y);
	return (x > y ? x - y : y - x) <= ulp;
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

struct ts_value_difference ts_value_compare(const struct ts_value_type *type, uint64_t ulp,
					    const void *a, const void *b, uint64_t bytes)
{
	const unsigned char *x = a, *y = b;
	struct ts_value_difference difference = { 0 };
	uint64_t step = type ? type->bytes : 1, complete_bytes = bytes - bytes % step;

	for (uint64_t i = 0; i < complete_bytes; i += step) {
		if (!memcmp(x + i, y + i, step) ||
		    (type && ulp && ts_value_is_near(type, x + i, y + i, ulp)))
			continue;
		differ(&difference, x, y, i, i + step);
	}
	differ(&difference, x, y, complete_bytes, bytes);
	difference.first_value = difference.first_byte / step;
	return difference;
}
