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
	unsigned int mantissa_bits, exponent_bits; /* of floats; 0: an integer */
	bool is_signed;
};

/* NULL if there is no type of that name. */
const struct ts_value_type *ts_value_type_find(const char *name);
/* "f16, f32 ..." for messages. */
const char *ts_value_type_names(void);

#define TS_VALUE_BYTES 40
/*
 * Formats the value at `data` with enough digits to distinguish it from its neighbours; returns
 * `to`.
 */
const char *ts_value_format(const struct ts_value_type *type, const void *data,
			    char to[TS_VALUE_BYTES]);

/* At most `ulp` representable values apart; NaNs are equal to each other. */
bool ts_value_is_near(const struct ts_value_type *type, const void *a, const void *b, uint64_t ulp);

/* The difference between two byte arrays. */
struct ts_value_difference {
	uint64_t first_byte,
		bytes; /* offset of the first, and number of differing bytes; bytes 0: equal */
	uint64_t first_value; /* index of the first differing value, if a type is given */
};

/*
 * `type` may be NULL: compares bytes. Bytes after the last complete value are compared as bytes,
 * too.
 */
struct ts_value_difference ts_value_compare(const struct ts_value_type *type, uint64_t ulp,
					    const void *a, const void *b, uint64_t bytes);

#endif
