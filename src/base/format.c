/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Human-readable durations, sizes and counts. Integer arithmetic only, so that the last digit is
 * right.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text.h"

struct unit {
	const char *name;
	uint64_t size;
	uint64_t limit; /* in this unit: from this value on, use the next unit */
};

/*
 * Writes value / unit with `digits` significant digits, trailing zeros dropped ("4.56 s"). False if
 * rounding carries it to the unit's limit.
 */
static bool format_in_unit(char *buffer, size_t size, const char *sign, uint64_t value,
			   const struct unit *unit, unsigned int digits)
{
	uint64_t quotient = value / unit->size, scale = 1, scaled;
	unsigned int decimals = digits - 1;

	for (uint64_t rest = quotient; rest >= 10 && decimals > 0; rest /= 10)
		decimals--;
	for (unsigned int i = 0; i < decimals; i++)
		scale *= 10;
	scaled = (uint64_t)(((unsigned __int128)value * scale + unit->size / 2) / unit->size);
	if (unit->limit && scaled >= unit->limit * scale)
		return false;
	while (decimals > 0 && scaled % 10 == 0) {
		scaled /= 10;
		scale /= 10;
		decimals--;
	}
	if (decimals == 0)
		snprintf(buffer, size, "%s%" PRIu64 " %s", sign, scaled, unit->name);
	else
		snprintf(buffer, size, "%s%" PRIu64 ".%0*" PRIu64 " %s", sign, scaled / scale,
			 (int)decimals, scaled % scale, unit->name);
	return true;
}

const char *ts_format_duration_ns(char *buffer, size_t size, int64_t ns)
{
	static const struct unit units[] = {
		{ "ns", 1, 1000 },
		{ "us", 1000, 1000 },
		{ "ms", 1000 * 1000, 1000 },
		{ "s", 1000 * 1000 * 1000, 60 },
	};
	const uint64_t second = 1000 * 1000 * 1000, minute = 60 * second, hour = 60 * minute;
	uint64_t value = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, rounded;
	const char *sign = ns < 0 ? "-" : "";

	for (size_t i = 0; i < TS_ARRAY_SIZE(units); i++) {
		if (value < units[i].limit * units[i].size &&
		    format_in_unit(buffer, size, sign, value, &units[i], 4))
			return buffer;
	}
	rounded = (value + second / 2) / second;
	if (rounded < 3600) {
		snprintf(buffer, size, "%s%" PRIu64 " m %02" PRIu64 " s", sign, rounded / 60,
			 rounded % 60);
		return buffer;
	}
	rounded = (value + minute / 2) / minute;
	if (rounded < 24 * 60) {
		snprintf(buffer, size, "%s%" PRIu64 " h %02" PRIu64 " m", sign, rounded / 60,
			 rounded % 60);
		return buffer;
	}
	rounded = (value + hour / 2) / hour;
	snprintf(buffer, size, "%s%" PRIu64 " d %02" PRIu64 " h", sign, rounded / 24, rounded % 24);
	return buffer;
}

const char *ts_format_instant_ns(char *buffer, size_t size, int64_t ns)
{
	uint64_t value = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	snprintf(buffer, size, "%s%" PRIu64 ".%06" PRIu64 " ms", ns < 0 ? "-" : "", value / 1000000,
		 value % 1000000);
	return buffer;
}

const char *ts_format_bytes(char *buffer, size_t size, uint64_t bytes)
{
	static const struct unit units[] = {
		{ "B", 1, 1024 },
		{ "KiB", (uint64_t)1 << 10, 1024 },
		{ "MiB", (uint64_t)1 << 20, 1024 },
		{ "GiB", (uint64_t)1 << 30, 1024 },
		{ "TiB", (uint64_t)1 << 40, 1024 },
		{ "PiB", (uint64_t)1 << 50, 1024 },
		{ "EiB", (uint64_t)1 << 60, 0 },
	};
	size_t i = 0;

	while (units[i].limit && bytes / units[i].size >= units[i].limit)
		i++;
	if (!format_in_unit(buffer, size, "", bytes, &units[i], 3))
		format_in_unit(buffer, size, "", bytes, &units[i + 1], 3);
	return buffer;
}

const char *ts_format_count(char *buffer, size_t size, int64_t count)
{
	uint64_t value = count < 0 ? -(uint64_t)count : (uint64_t)count;
	char digits[TS_FORMAT_BYTES], *at = digits + sizeof(digits);
	unsigned int written = 0;

	*--at = '\0';
	do {
		if (written && written % 3 == 0)
			*--at = ',';
		*--at = (char)('0' + value % 10);
		value /= 10;
		written++;
	} while (value);
	if (count < 0)
		*--at = '-';
	snprintf(buffer, size, "%s", at);
	return buffer;
}

const char *ts_format_exit(char *buffer, size_t size, int wait_status)
{
	const char *name = WIFSIGNALED(wait_status) ? sigabbrev_np(WTERMSIG(wait_status)) : NULL;

	if (name)
		snprintf(buffer, size, "killed by SIG%s", name);
	else if (WIFSIGNALED(wait_status))
		snprintf(buffer, size, "killed by signal %d", WTERMSIG(wait_status));
	else
		snprintf(buffer, size, "exit code %d", WEXITSTATUS(wait_status));
	return buffer;
}

const char *ts_format_counted(char *buffer, size_t size, uint64_t count, const char *noun)
{
	char number[TS_FORMAT_BYTES];
	size_t length = strlen(noun);
	bool to_ies = count != 1 && length > 0 && noun[length - 1] == 'y';
	bool to_es = length > 0 && (noun[length - 1] == 'h' || noun[length - 1] == 's');

	ts_format_count(number, sizeof(number), (int64_t)TS_MIN(count, INT64_MAX));
	snprintf(buffer, size, "%s %.*s%s", number, (int)(length - to_ies), noun,
		 to_ies       ? "ies"
		 : count == 1 ? ""
		 : to_es      ? "es"
			      : "s");
	return buffer;
}
