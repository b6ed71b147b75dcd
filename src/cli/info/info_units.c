/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the unit of a counter from the end of its name, and formats values with it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/info/info_counters.h"

/* Longer endings come before their own suffixes. */
static const struct {
	const char *ending;
	const char *unit;
	const char *shown; /* appended to a plain number; NULL: special formatting */
} endings[] = {
	{ "bytes_per_s", "bytes_per_s", NULL },
	{ "per_s", "per_s", "/s" },
	{ "bytes", "bytes", NULL },
	{ "percent", "percent", " %" },
	{ "ns", "ns", NULL },
	{ "us", "us", NULL },
	{ "ms", "ms", NULL },
	{ "s", "s", NULL },
	{ "W", "W", " W" },
	{ "J", "J", " J" },
	{ "V", "V", " V" },
	{ "mV", "mV", " mV" },
	{ "C", "C", " C" },
	{ "MHz", "MHz", " MHz" },
	{ "rpm", "rpm", " rpm" },
};

/* Requires an underscore, so that "threads" has no unit. */
static bool ends_in(const char *name, size_t length, const char *ending)
{
	size_t bytes = strlen(ending);

	return length > bytes + 1 && name[length - bytes - 1] == '_' &&
	       !memcmp(name + length - bytes, ending, bytes);
}

const char *ts_counter_unit(const char *name, size_t length)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(endings); i++) {
		if (ends_in(name, length, endings[i].ending))
			return endings[i].unit;
	}
	return "";
}

/* Four significant digits, or all digits before the point. */
static void append_number(struct ts_text *out, double value)
{
	char text[TS_FORMAT_BYTES];
	double size = fabs(value);

	if (size >= 1e15 || (size > 0 && size < 1e-4))
		ts_text_printf(out, "%.2e", value);
	else if (size >= 1000)
		ts_text_append_str(out, ts_format_count(text, sizeof(text), llround(value)));
	else
		ts_text_printf(out, "%.4g", value);
}

static void append_bytes(struct ts_text *out, double value, const char *behind)
{
	char text[TS_FORMAT_BYTES];
	double size = fabs(value);

	if (size >= 0x1p63) {
		append_number(out, value);
		ts_text_append_str(out, " B");
	} else {
		ts_text_append_str(out, value < 0 ? "-" : "");
		ts_text_append_str(out,
				   ts_format_bytes(text, sizeof(text), (uint64_t)llround(size)));
	}
	ts_text_append_str(out, behind);
}

static bool append_duration(struct ts_text *out, const char *unit, double value)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char text[TS_FORMAT_BYTES];

	for (size_t i = 0; i < TS_ARRAY_SIZE(units); i++) {
		if (strcmp(units[i].unit, unit) || fabs(value * units[i].ns) >= 0x1p63)
			continue;
		ts_text_append_str(out, ts_format_duration_ns(text, sizeof(text),
							      llround(value * units[i].ns)));
		return true;
	}
	return false;
}

void ts_counter_append_value(struct ts_text *out, const char *unit, double value)
{
	if (!strcmp(unit, "bytes")) {
		append_bytes(out, value, "");
		return;
	}
	if (!strcmp(unit, "bytes_per_s")) {
		append_bytes(out, value, "/s");
		return;
	}
	if (append_duration(out, unit, value))
		return;
	append_number(out, value);
	for (size_t i = 0; i < TS_ARRAY_SIZE(endings); i++) {
		if (!strcmp(endings[i].unit, unit) && endings[i].shown)
			ts_text_append_str(out, endings[i].shown);
	}
}
