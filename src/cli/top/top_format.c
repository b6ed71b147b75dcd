/* SPDX-License-Identifier: Apache-2.0 */
/* Short numbers in the style of top. Unknown is "-", never 0. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/top/top.h"

/* "999", "1.2", "12.3", "123": three digits if scaled. */
static const char *format_scaled(char *buffer, size_t size, double value, double base,
				 const char *const *units, size_t count)
{
	size_t unit = 0;

	/* 999.5 would be shown as 1000. */
	while (unit + 1 < count && value >= (unit ? 999.5 : base)) {
		value /= base;
		unit++;
	}
	if (unit == 0)
		snprintf(buffer, size, "%.0f%s", value, units[0]);
	else
		snprintf(buffer, size, "%.*f%s", value < 99.95 ? 1 : 0, value, units[unit]);
	return buffer;
}

const char *ts_top_format_bytes(char *buffer, size_t size, double bytes)
{
	static const char *const units[] = { "B", "K", "M", "G", "T", "P" };

	if (isnan(bytes) || bytes < 0)
		snprintf(buffer, size, "-");
	else
		format_scaled(buffer, size, bytes, 1024, units, TS_ARRAY_SIZE(units));
	return buffer;
}

const char *ts_top_format_count(char *buffer, size_t size, double count)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };

	if (isnan(count) || count < 0)
		snprintf(buffer, size, "-");
	else if (count < 9999.5)
		snprintf(buffer, size, "%.0f", count);
	else
		format_scaled(buffer, size, count, 1000, units, TS_ARRAY_SIZE(units));
	return buffer;
}

const char *ts_top_format_percent(char *buffer, size_t size, double value)
{
	if (isnan(value))
		snprintf(buffer, size, "-");
	else
		snprintf(buffer, size, "%.*f", value < 999.95 ? 1 : 0, value);
	return buffer;
}

const char *ts_top_format_time(char *buffer, size_t size, double seconds)
{
	unsigned long long hundredths;

	if (!(seconds >= 0 && seconds < 1e12)) {
		snprintf(buffer, size, "-");
		return buffer;
	}
	hundredths = (unsigned long long)(seconds * 100 + 0.5);
	if (hundredths < 360000)
		snprintf(buffer, size, "%llu:%02llu.%02llu", hundredths / 6000,
			 hundredths / 100 % 60, hundredths % 100);
	else
		snprintf(buffer, size, "%llu:%02llu:%02llu", hundredths / 360000,
			 hundredths / 6000 % 60, hundredths / 100 % 60);
	return buffer;
}

const char *ts_top_format_unit(char *buffer, size_t size, double value, const char *unit)
{
	if (isnan(value))
		snprintf(buffer, size, "-");
	else
		snprintf(buffer, size, "%.0f%s", value, unit);
	return buffer;
}
