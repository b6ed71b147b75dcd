/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doubles and decimal text. Short decimals, the common case in traces, take an exact integer path.
 * The rest goes to libc with the C locale, since the host program (a Python interpreter, say) may
 * have set another.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strtod_l() */
#endif
#include "base/real.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

/* Created once and kept for the life of the process; 0 if out of memory. */
static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double ts_real_parse(const char *text)
{
	pthread_once(&c_locale_once, make_c_locale);
	return c_locale ? strtod_l(text, NULL, c_locale) : strtod(text, NULL);
}

static size_t format_with_libc(char buffer[TS_REAL_BYTES], double value)
{
	locale_t before = (locale_t)0;
	int length = 0;

	pthread_once(&c_locale_once, make_c_locale);
	if (c_locale)
		before = uselocale(c_locale);
	for (int digits = 15; digits <= 17; digits++) {
		length = snprintf(buffer, TS_REAL_BYTES, "%.*g", digits, value);
		if (ts_real_parse(buffer) == value)
			break;
	}
	if (c_locale)
		uselocale(before);
	if (!memchr(buffer, '.', (size_t)length) && !memchr(buffer, 'e', (size_t)length)) {
		buffer[length++] = '.';
		buffer[length++] = '0';
	}
	return (size_t)length;
}

static size_t put_digits(char *at, uint64_t value, unsigned int digits)
{
	for (unsigned int i = digits; i-- > 0; value /= 10)
		at[i] = (char)('0' + value % 10);
	return digits;
}

static unsigned int count_digits(uint64_t value)
{
	unsigned int digits = 1;

	while (value >= 10) {
		value /= 10;
		digits++;
	}
	return digits;
}

size_t ts_real_format(char buffer[TS_REAL_BYTES], double value)
{
	double magnitude = fabs(value), power = 1;
	uint64_t whole_power = 1;
	size_t at = 0;

	if (magnitude != 0 && (magnitude < 1e-5 || magnitude >= 1e15))
		return format_with_libc(buffer, value);
	/*
	 * Whether the value is n / 10^places. Both are exact doubles, below 2^53 and 10^22, so
	 * their quotient is the double nearest to that decimal: if it equals the value, the decimal
	 * reads back as it.
	 */
	for (unsigned int places = 0; places <= 19; places++, power *= 10, whole_power *= 10) {
		double scaled = magnitude * power;
		uint64_t n;

		if (scaled >= 1e15)
			break;
		n = (uint64_t)(scaled + 0.5);
		if ((double)n / power != magnitude)
			continue;
		if (signbit(value))
			buffer[at++] = '-';
		at += put_digits(buffer + at, n / whole_power, count_digits(n / whole_power));
		buffer[at++] = '.';
		if (places == 0)
			buffer[at++] = '0';
		return at + put_digits(buffer + at, n % whole_power, places);
	}
	return format_with_libc(buffer, value);
}
