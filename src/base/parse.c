/* SPDX-License-Identifier: Apache-2.0 */
/* Parses integers and durations from command lines and settings; exact, never through a double. */
#include "base/text.h"

/* Consumes a leading sign; true for minus. */
static bool take_sign(const char **p, const char *end)
{
	if (*p < end && (**p == '-' || **p == '+'))
		return *(*p)++ == '-';
	return false;
}

/* Consumes digits into *value; TS_EFORMAT if there are none or they overflow. */
static int take_digits(const char **p, const char *end, uint64_t *value)
{
	const char *start = *p;

	*value = 0;
	while (*p < end && **p >= '0' && **p <= '9') {
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(**p - '0'), value))
			return TS_EFORMAT;
		(*p)++;
	}
	return *p == start ? TS_EFORMAT : TS_OK;
}

/* magnitude and sign as int64, or TS_EFORMAT. */
static int apply_sign(unsigned __int128 magnitude, bool negative, int64_t *ret_value)
{
	if (magnitude > (uint64_t)INT64_MAX + negative)
		return TS_EFORMAT;
	*ret_value = (int64_t)(negative ? -(uint64_t)magnitude : (uint64_t)magnitude);
	return TS_OK;
}

int ts_parse_int64(const char *text, size_t length, int64_t *ret_value)
{
	const char *p = text, *end = text + length;
	bool negative = take_sign(&p, end);
	uint64_t magnitude;

	if (take_digits(&p, end, &magnitude) || p != end)
		return TS_EFORMAT;
	return apply_sign(magnitude, negative, ret_value);
}

static uint64_t ns_of_unit(const char *unit, size_t length)
{
	static const struct {
		char name[3];
		uint64_t ns;
	} units[] = {
		{ "", 1 },
		{ "ns", 1 },
		{ "us", 1000 },
		{ "ms", 1000 * 1000 },
		{ "s", 1000 * 1000 * 1000 },
		{ "m", (uint64_t)60 * 1000 * 1000 * 1000 },
		{ "h", (uint64_t)3600 * 1000 * 1000 * 1000 },
		{ "d", (uint64_t)86400 * 1000 * 1000 * 1000 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) == length && !memcmp(units[i].name, unit, length))
			return units[i].ns;
	}
	return 0;
}

int ts_parse_duration_ns(const char *text, size_t length, int64_t *ret_ns)
{
	const char *p = text, *end = text + length;
	bool negative = take_sign(&p, end);
	uint64_t integer, fraction = 0, divisor = 1, unit;

	if (take_digits(&p, end, &integer))
		return TS_EFORMAT;
	if (p < end && *p == '.') {
		const char *decimals = ++p;

		if (take_digits(&p, end, &fraction) || p - decimals > 18)
			return TS_EFORMAT;
		for (; decimals < p; decimals++)
			divisor *= 10;
	}
	if (end - p >= 2 && *p == ' ')
		p++;
	unit = ns_of_unit(p, (size_t)(end - p));
	if (!unit)
		return TS_EFORMAT;
	/* Below 2^64 * 2^47 and 2^60 * 2^47: nothing overflows 128 bits. */
	return apply_sign((unsigned __int128)integer * unit +
				  ((unsigned __int128)fraction * unit + divisor / 2) / divisor,
			  negative, ret_ns);
}
