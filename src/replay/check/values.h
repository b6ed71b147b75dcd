/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as numbers, for --as: f8e4m3 .. f64, i8 .. i64, u8 .. u64. Little-endian. */
#ifndef TS_REPLAY_CHECK_VALUES_H
#define TS_REPLAY_CHECK_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/text.h"

struct ts_value_type {
	const char *name;
	unsigned int bytes;
	unsigned int mantissa_bits, exponent_bits; /* of floats; 0: an integer */
	bool is_signed;
	/* A float without infinities: only the greatest number of all bits is no number. */
	bool is_finite;
};

/* NULL if there is no type of that name. */
const struct ts_value_type *ts_value_type_find(const char *name);
/* "f16, f32 ..." for messages. */
const char *ts_value_type_names(void);

/* The bits of the value at `data`, and its value; large integers are rounded. */
uint64_t ts_value_bits(const struct ts_value_type *type, const void *data);
double ts_value_real(const struct ts_value_type *type, const void *data);

#define TS_VALUE_BYTES 40
/*
 * Formats the value at `data` with enough digits to distinguish it from its neighbours; returns
 * `to`.
 */
const char *ts_value_format(const struct ts_value_type *type, const void *data,
			    char to[TS_VALUE_BYTES]);

/* Columns of the longest value that ts_value_format() returns. */
unsigned int ts_value_width(const struct ts_value_type *type);

/* Appends a number, or a string for NaN and infinities, which JSON has no numbers for. */
void ts_value_append_json(const struct ts_value_type *type, const void *data, struct ts_text *out);

/* How far apart equal values may be: each number that is not 0 is a bound, and one must hold. */
struct ts_value_tolerance {
	uint64_t ulp;     /* representable values from one to the other */
	double absolute;  /* |a - b| */
	double relative;  /* |a - b| as a share of the greater of |a| and |b| */
	const char *text; /* as given, for messages; NULL: none */
};

/* "ulp=4", "abs=1e-5,rel=1e-6". Borrows the text. */
int ts_value_tolerance_parse(struct ts_value_tolerance *ret_tolerance, const char *text,
			     struct ts_error *err);
bool ts_value_tolerance_is_set(const struct ts_value_tolerance *tolerance);

/*
 * NaNs are equal to each other, as are zeros of both signs. An infinity has no absolute or relative
 * distance from other values; its neighbour is the greatest finite value.
 */
bool ts_value_is_near(const struct ts_value_type *type, const struct ts_value_tolerance *tolerance,
		      const void *a, const void *b);

/* The difference between two byte arrays. */
struct ts_value_difference {
	uint64_t first_byte,
		bytes; /* offset of the first, and number of differing bytes; bytes 0: equal */
	uint64_t first_value; /* index of the first differing value, if a type is given */
};

/*
 * `type` and `tolerance` may be NULL: compares bytes. Bytes after the last complete value are
 * compared as bytes, too.
 */
struct ts_value_difference ts_value_compare(const struct ts_value_type *type,
					    const struct ts_value_tolerance *tolerance,
					    const void *a, const void *b, uint64_t bytes);

#endif
