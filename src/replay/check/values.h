/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as numbers, for --as: f16 bf16 f32 f64 i8 .. i64 u8 .. u64. Little-endian. */
#ifndef TS_REPLAY_CHECK_VALUES_H
#define TS_REPLAY_CHECK_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ts_value_type {
	const char *name;
	unsigned int bytes;
	unsigned int mantissa_bits, exponent_bits; /* of floats; 0: a whole number */
	bool is_signed;
};

/* NULL where there is no type of that name. */
const struct ts_value_type *ts_value_type_find(const char *name);
/* "f16, f32 ..." for messages. */
const char *ts_value_type_names(void);

#define TS_VALUE_BYTES 40
/* The value at `data` in the fewest digits that tell it from its neighbours; returns `to`. */
const char *ts_value_format(const struct ts_value_type *type, const void *data,
			    char to[TS_VALUE_BYTES]);

/* At most `ulp` representable values apart; NaNs are equal to each other. */
bool ts_value_is_near(const struct ts_value_type *type, const void *a, const void *b, uint64_t ulp);

/* What differs between two runs of bytes. */
struct ts_value_difference {
	uint64_t first_byte,
		bytes; /* where it begins, and how many bytes differ; bytes 0: nothing does */
	uint64_t first_value; /* index of the first value, where a type is given */
};

/*
 * `type` may be NULL: byte by byte. What is left behind the last whole value is compared so, too.
 */
struct ts_value_difference ts_value_compare(const struct ts_value_type *type, uint64_t ulp,
					    const void *a, const void *b, uint64_t bytes);

#endif
