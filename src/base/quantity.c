/* SPDX-License-Identifier: Apache-2.0 */
/* Parses times and sizes, exactly: without floating point. */
#include "base/quantity.h"

#include <string.h>

#include "base/text.h"

/* Significant decimals of a size. */
#define DECIMALS 9

static bool ends_in_digit(const char *text)
{
	size_t length = strlen(text);

	return length && text[length - 1] >= '0' && text[length - 1] <= '9';
}

static bool parse_time(const char *text, int64_t *ret_ns)
{
	return !ts_parse_duration_ns(text, strlen(text), ret_ns) && *ret_ns > 0;
}

/* The power of 1024 of a unit, or -1. Lower case only where it cannot be a time. */
static int power_of(const char *unit)
{
	static const char letters[] = "KMGT";
	const char *at;
	char first = *unit;

	if (!*unit || !strcmp(unit, "B"))
		return 0;
	if (first == 'k' || first == 'g' || first == 't')
		first = (char)(first - 'a' + 'A');
	at = strchr(letters, first);
	if (!at || (unit[1] && strcmp(unit + 1, "B") != 0 && strcmp(unit + 1, "iB") != 0))
		return -1;
	return (int)(at - letters) + 1;
}

/* Parses "12.5" as 12 and 500000000. Returns the rest of the text, or NULL. */
static const char *parse_decimal(const char *text, uint64_t *ret_integer, uint64_t *ret_fraction)
{
	int64_t integer, fraction = 0;
	size_t length = strspn(text, "0123456789"), decimals = 0;

	if (!length || ts_parse_int64(text, length, &integer))
		return NULL;
	text += length;
	if (*text == '.') {
		decimals = strspn(++text, "0123456789");
		if (!decimals || decimals > DECIMALS || ts_parse_int64(text, decimals, &fraction))
			return NULL;
		text += decimals;
	}
	for (; decimals < DECIMALS; decimals++)
		fraction *= 10;
	*ret_integer = (uint64_t)integer;
	*ret_fraction = (uint64_t)fraction;
	return text;
}

static bool parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t integer, fraction, billion = 1000000000;
	const char *unit = parse_decimal(text, &integer, &fraction);
	unsigned __int128 bytes;
	int power;

	if (!unit)
		return false;
	unit += *unit == ' ';
	power = power_of(unit);
	if (power < 0)
		return false;
	bytes = ((unsigned __int128)integer << (10 * power)) +
		((unsigned __int128)fraction << (10 * power)) / billion;
	*ret_bytes = (uint64_t)bytes;
	return bytes > 0 && bytes <= INT64_MAX;
}

/* Reads "10" as "10s". */
static bool is_seconds(const char *text, int64_t *ret_ns)
{
	TS_SCOPED(ts_text) with_unit = { 0 };

	ts_text_printf(&with_unit, "%ss", text);
	return ends_in_digit(text) &&
	       !ts_parse_duration_ns(ts_text_cstr(&with_unit), with_unit.length, ret_ns);
}

int ts_quantity_check_unit(const char *option, const char *text, struct ts_error *err)
{
	int64_t ns;

	if (!text || !is_seconds(text, &ns) || ns == 0)
		return TS_OK;
	return ts_error_set(err, TS_EINVAL,
			    "option '--%s': '%s' has no unit: write %ss, %sms or %sus", option,
			    text, text, text, text);
}

static int bad_time(const char *option, const char *text, struct ts_error *err)
{
	return ts_error_set(err, TS_EINVAL,
			    "option '--%s': '%s' is not a valid time, such as 500ms, 10s or 2m",
			    option, text);
}

int ts_quantity_time(const char *option, const char *text, int64_t *value_ns, struct ts_error *err)
{
	int64_t ns;

	if (!text)
		return TS_OK;
	if (ts_quantity_check_unit(option, text, err))
		return TS_EINVAL;
	if (!parse_time(text, &ns))
		return bad_time(option, text, err);
	*value_ns = ns;
	return TS_OK;
}

int ts_quantity_seconds(const char *option, const char *text, int64_t *value_ns,
			struct ts_error *err)
{
	int64_t ns;

	if (!text)
		return TS_OK;
	if (!(is_seconds(text, &ns) && ns > 0) && !parse_time(text, &ns))
		return bad_time(option, text, err);
	*value_ns = ns;
	return TS_OK;
}

int ts_quantity_size(const char *option, const char *text, uint64_t *value_bytes,
		     struct ts_error *err)
{
	uint64_t bytes;

	if (!text)
		return TS_OK;
	if (!parse_size(text, &bytes))
		return ts_error_set(
			err, TS_EINVAL,
			"option '--%s': '%s' is not a valid size, such as 512K, 64M or 1G", option,
			text);
	*value_bytes = bytes;
	return TS_OK;
}

int ts_quantity_time_or_size(const char *option, const char *text, int64_t *value_ns,
			     uint64_t *value_bytes, struct ts_error *err)
{
	int64_t ns;
	uint64_t bytes;

	if (!text)
		return TS_OK;
	if (!ends_in_digit(text) && parse_size(text, &bytes))
		*value_bytes = bytes;
	else if (!ends_in_digit(text) && parse_time(text, &ns))
		*value_ns = ns;
	else
		return ts_error_set(
			err, TS_EINVAL,
			"option '--%s': '%s' is neither a size such as 64M nor a time such as 10m",
			option, text);
	return TS_OK;
}

static int parse_instant(const char *option, const char *text, int64_t start, int64_t *value_ns,
			 struct ts_error *err)
{
	int64_t ns = 0;

	if (!text)
		return TS_OK;
	if (text[0] == '@') {
		if (ts_parse_int64(text + 1, strlen(text + 1), value_ns))
			return ts_error_set(err, TS_EINVAL,
					    "option '--%s': '%s' is not a valid time in ns", option,
					    text);
		return TS_OK;
	}
	if (ts_quantity_check_unit(option, text, err))
		return TS_EINVAL;
	if (strcmp(text, "0") != 0 && ts_parse_duration_ns(text, strlen(text), &ns))
		return ts_error_set(
			err, TS_EINVAL,
			"option '--%s': '%s' is not a valid time; write 1.5ms or @NANOSECONDS",
			option, text);
	if (__builtin_add_overflow(start, ns, value_ns))
		*value_ns = ns < 0 ? INT64_MIN : INT64_MAX;
	return TS_OK;
}

int ts_quantity_range(const struct ts_quantity_range *range, int64_t start, int64_t *from_ns,
		      int64_t *to_ns, struct ts_error *err)
{
	int rc = parse_instant("from", range->from, start, from_ns, err);

	if (!rc)
		rc = parse_instant("to", range->to, start, to_ns, err);
	if (rc || !range->from || !range->to || *from_ns < *to_ns ||
	    (*from_ns == *to_ns && range->may_be_instant))
		return rc;
	return ts_error_set(err, TS_EINVAL,
			    "the range is empty: '--to %s' is not after '--from %s'", range->to,
			    range->from);
}

int ts_quantity_range_check(const struct ts_quantity_range *range, struct ts_error *err)
{
	struct ts_quantity_range one = *range;
	int64_t from = 0, to = 0;

	/* Instants after the start and instants of trace time cannot be compared yet. */
	if (range->from && range->to && (range->from[0] == '@') != (range->to[0] == '@'))
		one.from = NULL;
	return ts_quantity_range(&one, 0, &from, &to, err);
}
