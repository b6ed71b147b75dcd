/* SPDX-License-Identifier: Apache-2.0 */
/* Draws values as one line of block characters. */
#include "cli/common/sparkline.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

#define LEVELS 8
#define MIDDLE 3

static const char *const levels[][LEVELS] = {
	[TS_SPARKLINE_ASCII] = { "_", ".", ":", "-", "=", "+", "*", "#" },
	[TS_SPARKLINE_BLOCKS] = { "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84",
				  "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88" },
};

/* The first of the three that is set decides, as for setlocale(). */
static const char *character_locale(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return value;
	}
	return "C";
}

enum ts_sparkline_style ts_sparkline_style(void)
{
	const char *at = strchr(character_locale(), '.');

	if (at && (!strncasecmp(at + 1, "UTF-8", 5) || !strncasecmp(at + 1, "UTF8", 4)))
		return TS_SPARKLINE_BLOCKS;
	return TS_SPARKLINE_ASCII;
}

static unsigned int level_of(double value, double low, double high)
{
	/* Halves, since the difference of two doubles may overflow. */
	double part = (value / 2 - low / 2) / (high / 2 - low / 2) * LEVELS;

	if (!(low < high))
		return value == 0 ? 0 : MIDDLE;
	if (part <= 0)
		return 0;
	return part >= LEVELS ? LEVELS - 1 : (unsigned int)part;
}

void ts_sparkline_append(struct ts_text *out, enum ts_sparkline_style style, const double *values,
			 size_t count, double low, double high)
{
	for (size_t i = 0; i < count; i++) {
		if (isnan(values[i]))
			ts_text_append_char(out, ' ');
		else
			ts_text_append_str(out, levels[style][level_of(values[i], low, high)]);
	}
}

bool ts_sparkline_range(const double *values, size_t count, double *ret_low, double *ret_high)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t i = 0; i < count; i++) {
		if (isnan(values[i]))
			continue;
		low = TS_MIN(low, values[i]);
		high = TS_MAX(high, values[i]);
	}
	if (low > high)
		return false;
	*ret_low = low;
	*ret_high = high;
	return true;
}
