/* SPDX-License-Identifier: Apache-2.0 */
/* Values of kernel arguments: by the type's name if it is known, else what the bytes look like. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/check/values.h"
#include "replay/describe/describe.h"

/* What an unknown value may be: larger ones are more likely something else. */
#define LIKELY_INT32 (INT64_C(1) << 24)
#define LIKELY_INT64 (INT64_C(1) << 48)
#define LIKELY_REAL 1e12

static const struct {
	const char *name, *type;
} type_names[] = {
	{ "char", "i8" },           { "signed char", "i8" },
	{ "uchar", "u8" },          { "unsigned char", "u8" },
	{ "bool", "u8" },           { "short", "i16" },
	{ "ushort", "u16" },        { "unsigned short", "u16" },
	{ "int", "i32" },           { "uint", "u32" },
	{ "unsigned int", "u32" },  { "unsigned", "u32" },
	{ "long", "i64" },          { "ulong", "u64" },
	{ "unsigned long", "u64" }, { "size_t", "u64" },
	{ "ptrdiff_t", "i64" },     { "half", "f16" },
	{ "float", "f32" },         { "double", "f64" },
};

/* Splits "float4"; 0: not a width of vectors. */
static unsigned int split_width(const char *type, size_t *ret_length)
{
	size_t length = strlen(type), digits = 0;
	unsigned int width = 0;

	while (digits < length && type[length - digits - 1] >= '0' &&
	       type[length - digits - 1] <= '9')
		digits++;
	*ret_length = length - digits;
	if (!digits)
		return 1;
	for (size_t i = length - digits; i < length && width < 100; i++)
		width = width * 10 + (unsigned int)(type[i] - '0');
	return width == 2 || width == 3 || width == 4 || width == 8 || width == 16 ? width : 0;
}

struct ts_replay_scalar ts_replay_scalar_of(const char *type, uint64_t bytes)
{
	struct ts_replay_scalar scalar = { NULL, 1 };
	size_t length;

	scalar.width = split_width(type, &length);
	for (size_t i = 0; scalar.width && i < TS_ARRAY_SIZE(type_names); i++) {
		const struct ts_value_type *one;

		if (strlen(type_names[i].name) != length ||
		    memcmp(type_names[i].name, type, length) != 0)
			continue;
		one = ts_value_type_find(type_names[i].type);
		/* A vector of three has the size of one of four. */
		if (bytes == (uint64_t)one->bytes * (scalar.width == 3 ? 4 : scalar.width))
			scalar.type = one;
	}
	return scalar;
}

void ts_replay_describe_hex(const void *data, size_t bytes, struct ts_text *out)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < bytes; i++)
		ts_text_printf(out, "%02x", at[i]);
}

/* The fewest digits that read back as the same value: 0.1, not 0.100000001. */
static void format_real(const struct ts_value_type *type, const void *data,
			char value[TS_VALUE_BYTES])
{
	float single = 0;
	double real = 0;

	memcpy(type->bytes == 4 ? (void *)&single : (void *)&real, data, type->bytes);
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(value, TS_VALUE_BYTES, "%.*g", digits,
			 type->bytes == 4 ? (double)single : real);
		if (type->bytes == 4 ? strtof(value, NULL) == single : strtod(value, NULL) == real)
			return;
	}
	ts_value_format(type, data, value); /* NaN */
}

/* "3" of a float is "3.0f", so that it differs from an integer. */
static void append_one(const struct ts_value_type *type, const void *data, struct ts_text *out)
{
	char value[TS_VALUE_BYTES];

	if (type->mantissa_bits && type->bytes >= 4)
		format_real(type, data, value);
	else
		ts_value_format(type, data, value);
	ts_text_append_str(out, value);
	if (!type->mantissa_bits || strpbrk(value, "ni"))
		return;
	if (!strpbrk(value, ".e"))
		ts_text_append_str(out, ".0");
	if (type->bytes == 4)
		ts_text_append_char(out, 'f');
}

/* ---- unknown types ---- */

static uint64_t load(const unsigned char *data, uint64_t bytes)
{
	uint64_t value = 0;

	for (uint64_t i = 0; i < bytes; i++)
		value |= (uint64_t)data[i] << (8 * i);
	return value;
}

static bool is_likely_real(double value)
{
	return isfinite(value) && fabs(value) < LIKELY_REAL && fabs(value) > 1 / LIKELY_REAL;
}

/* What it looks like; NULL: nothing in particular. */
static const char *guess_type(const void *data, uint64_t bytes)
{
	uint64_t bits = load(data, bytes);
	int64_t value = bytes == 4 ? (int64_t)(int32_t)(uint32_t)bits : (int64_t)bits;
	int64_t likely = bytes == 4 ? LIKELY_INT32 : LIKELY_INT64;
	float single;
	double real;

	if (bytes < 4)
		return bytes == 1 ? "u8" : "u16";
	if (value > -likely && value < likely)
		return bytes == 4 ? "i32" : "i64";
	memcpy(&single, data, sizeof(single));
	if (bytes == 4)
		return is_likely_real((double)single) ? "f32" : NULL;
	memcpy(&real, data, sizeof(real));
	return is_likely_real(real) ? "f64" : NULL;
}

static bool is_number_size(uint64_t bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static void append_unknown(const void *data, uint64_t bytes, struct ts_text *out)
{
	size_t shown = (size_t)TS_MIN(bytes, (uint64_t)TS_REPLAY_VALUE_BYTES);
	const char *guess = is_number_size(bytes) ? guess_type(data, bytes) : NULL;

	if (is_number_size(bytes)) {
		ts_text_printf(out, "0x%0*" PRIx64, (int)bytes * 2, load(data, bytes));
	} else {
		ts_text_append_str(out, "bytes ");
		ts_replay_describe_hex(data, TS_MIN(shown, (size_t)32), out);
		if (bytes > 32)
			ts_text_printf(out, "... [%" PRIu64 " bytes]", bytes);
	}
	if (guess) {
		ts_text_append_str(out, " (");
		append_one(ts_value_type_find(guess), data, out);
		ts_text_append_str(out, "?)");
	}
}

/* ---- values ---- */

void ts_replay_describe_value(const char *type, const void *data, uint64_t bytes,
			      struct ts_text *out)
{
	struct ts_replay_scalar scalar = ts_replay_scalar_of(type, bytes);

	if (!scalar.type) {
		append_unknown(data, bytes, out);
		return;
	}
	ts_text_append_str(out, scalar.width > 1 ? "(" : "");
	for (unsigned int i = 0; i < scalar.width; i++) {
		ts_text_append_str(out, i ? ", " : "");
		append_one(scalar.type, (const char *)data + (size_t)i * scalar.type->bytes, out);
	}
	ts_text_append_str(out, scalar.width > 1 ? ")" : "");
}

void ts_replay_describe_value_json(const char *type, const void *data, uint64_t bytes,
				   struct ts_text *out)
{
	struct ts_replay_scalar scalar = ts_replay_scalar_of(type, bytes);

	if (scalar.type) {
		ts_text_append_str(out, scalar.width > 1 ? "\"value\":[" : "\"value\":");
		for (unsigned int i = 0; i < scalar.width; i++) {
			ts_text_append_str(out, i ? "," : "");
			ts_value_append_json(scalar.type,
					     (const char *)data + (size_t)i * scalar.type->bytes,
					     out);
		}
		ts_text_append_str(out, scalar.width > 1 ? "]," : ",");
	}
	ts_text_append_str(out, "\"hex\":\"");
	ts_replay_describe_hex(data, (size_t)TS_MIN(bytes, (uint64_t)TS_REPLAY_VALUE_BYTES), out);
	ts_text_append_str(out, "\",");
}
