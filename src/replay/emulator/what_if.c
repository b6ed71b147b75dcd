/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses what-if changes. Each kind declares the units it takes, so that errors can list what is
 * valid.
 */
#include "replay/emulator/what_if.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define UNIT(unit) (1u << TS_WHAT_IF_##unit)

static const struct keyword {
	const char *keyword;
	enum ts_what_if_kind kind;
	unsigned int units; /* accepted units */
	bool named;         /* has a glob */
	bool divides;       /* 0x is invalid: it would take infinitely long */
	const char *values; /* for messages */
} keywords[] = {
	{ "kernel", TS_WHAT_IF_KERNEL, UNIT(TIMES) | UNIT(NS), true, false, "0.5x or 12us" },
	{ "copy", TS_WHAT_IF_COPY, UNIT(TIMES) | UNIT(NS), true, false, "0.5x or 12us" },
	{ "device-speed", TS_WHAT_IF_DEVICE_SPEED, UNIT(TIMES), false, true, "2x" },
	{ "copy-bandwidth", TS_WHAT_IF_COPY_BANDWIDTH, UNIT(TIMES) | UNIT(BYTES_S), false, true,
	  "2x or 25GB/s" },
	{ "latency", TS_WHAT_IF_LATENCY, UNIT(TIMES) | UNIT(NS), false, false, "2us or 0.5x" },
	{ "host-speed", TS_WHAT_IF_HOST_SPEED, UNIT(TIMES), false, true, "2x" },
	{ "streams", TS_WHAT_IF_STREAMS, UNIT(COUNT), false, true, "a number from 1 to 65536" },
	{ "concurrency", TS_WHAT_IF_CONCURRENCY, UNIT(COUNT), false, true,
	  "a number from 1 to 65536" },
	{ "policy", TS_WHAT_IF_POLICY, UNIT(NAME), false, false, "fifo, priority or shortest" },
};

#define MOST_STREAMS 65536
#define MOST_DIGITS 15 /* in total: products with a time stay far below 128 bits */

/* ---- numbers ---- */

/* Parses an unsigned decimal number; returns the text after it, or NULL. */
static const char *parse_decimal(const char *text, int64_t *ret_numerator, int64_t *ret_denominator)
{
	int64_t numerator = 0, denominator = 1;
	int digits = 0;
	bool point = false;

	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		if (++digits > MOST_DIGITS)
			return NULL;
		numerator = numerator * 10 + (*text - '0');
		denominator *= point ? 10 : 1;
	}
	*ret_numerator = numerator;
	*ret_denominator = denominator;
	return digits ? text : NULL;
}

/* "25GB/s": bytes per second; 0: invalid unit, or overflow. */
static int64_t bandwidth_of(const char *unit, int64_t numerator, int64_t denominator)
{
	static const struct {
		const char *unit;
		int64_t bytes;
	} units[] = {
		{ "B/s", 1 },         { "kB/s", 1000 },       { "KB/s", 1000 },
		{ "MB/s", 1000000 },  { "GB/s", 1000000000 }, { "TB/s", INT64_C(1000000000000) },
		{ "KiB/s", 1 << 10 }, { "MiB/s", 1 << 20 },   { "GiB/s", 1 << 30 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(units); i++) {
		int64_t product;

		if (strcmp(unit, units[i].unit) != 0)
			continue;
		if (__builtin_mul_overflow(numerator, units[i].bytes, &product))
			return 0;
		return product / denominator;
	}
	return 0;
}

static int parse_keyword(const char *text, struct ts_what_if_change *change)
{
	static const char *const policies[] = {
		[TS_EMULATOR_FIFO] = "fifo",
		[TS_EMULATOR_PRIORITY] = "priority",
		[TS_EMULATOR_SHORTEST] = "shortest",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(policies); i++) {
		if (strcmp(text, policies[i]) != 0)
			continue;
		change->unit = TS_WHAT_IF_NAME;
		change->numerator = (int64_t)i;
		return TS_OK;
	}
	return TS_EFORMAT;
}

/* The value's suffix determines its unit: x, a time, a bandwidth, none. */
static int parse_value(const char *text, unsigned int units, struct ts_what_if_change *change)
{
	const char *rest = parse_decimal(text, &change->numerator, &change->denominator);
	int64_t ns;

	if (!rest)
		return parse_keyword(text, change);
	if (!strcmp(rest, "x")) {
		change->unit = TS_WHAT_IF_TIMES;
	} else if (units & UNIT(BYTES_S)) {
		change->unit = TS_WHAT_IF_BYTES_S;
		change->numerator = bandwidth_of(rest, change->numerator, change->denominator);
		return change->numerator > 0 ? TS_OK : TS_EFORMAT;
	} else if (units & UNIT(COUNT)) {
		change->unit = TS_WHAT_IF_COUNT;
		return *rest || change->denominator != 1 || change->numerator > MOST_STREAMS
			       ? TS_EFORMAT
			       : TS_OK;
	} else {
		/* A bare number would mean ns and is most likely a mistake. */
		if (!*rest || ts_parse_duration_ns(text, strlen(text), &ns))
			return TS_EFORMAT;
		change->unit = TS_WHAT_IF_NS;
		change->numerator = ns;
	}
	return TS_OK;
}

/* ---- changes ---- */

static const struct keyword *find_keyword(const char *text, size_t length)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(keywords); i++)
		if (strlen(keywords[i].keyword) == length &&
		    !memcmp(keywords[i].keyword, text, length))
			return &keywords[i];
	return NULL;
}

/* Names of kernels may contain '=': the value follows the last one. */
static int parse_change(struct ts_what_if *what_if, const char *text,
			struct ts_what_if_change *change, struct ts_error *err)
{
	const char *value = strrchr(text, '=');
	size_t length = value ? (size_t)(value - text) : strlen(text);
	const char *colon = memchr(text, ':', length);
	const struct keyword *keyword = find_keyword(text, colon ? (size_t)(colon - text) : length);

	if (!value || !keyword || (keyword->named && !colon) || (!keyword->named && colon))
		return ts_error_set(err, TS_EINVAL,
				    "unknown what-if '%s'; expected " TS_WHAT_IF_CHANGES, text);
	change->text = text;
	change->kind = keyword->kind;
	if (keyword->named) {
		change->glob = ts_arena_strdup_len(&what_if->arena, colon + 1,
						   length - (size_t)(colon + 1 - text));
		if (!change->glob)
			return ts_error_set(err, TS_ENOMEM, "no memory for a what-if");
	}
	if (parse_value(value + 1, keyword->units, change) ||
	    !(keyword->units & 1u << change->unit) || (keyword->divides && change->numerator == 0))
		return ts_error_set(err, TS_EINVAL, "what-if '%s': '%s' takes %s, not '%s'", text,
				    keyword->keyword, keyword->values, value + 1);
	return TS_OK;
}

int ts_what_if_parse(struct ts_what_if *what_if, const char *const *texts, size_t count,
		     struct ts_error *err)
{
	*what_if = (struct ts_what_if){ 0 };
	ts_arena_init(&what_if->arena);
	what_if->changes = calloc(count + 1, sizeof(*what_if->changes));
	if (!what_if->changes)
		return ts_error_set(err, TS_ENOMEM, "no memory for a what-if");
	for (size_t i = 0; i < count; i++) {
		int rc = parse_change(what_if, texts[i], &what_if->changes[i], err);

		if (rc)
			return rc;
		what_if->count++;
	}
	return TS_OK;
}

void ts_what_if_release(struct ts_what_if *what_if)
{
	free(what_if->changes);
	ts_arena_release(&what_if->arena);
	*what_if = (struct ts_what_if){ 0 };
}

/* ---- queries ---- */

/* The last change of a kind wins. */
static const struct ts_what_if_change *last_of(const struct ts_what_if *what_if,
					       enum ts_what_if_kind kind)
{
	for (size_t i = what_if->count; i-- > 0;)
		if (what_if->changes[i].kind == kind)
			return &what_if->changes[i];
	return NULL;
}

struct ts_emulator_shape ts_what_if_shape(const struct ts_what_if *what_if)
{
	const struct ts_what_if_change *streams = last_of(what_if, TS_WHAT_IF_STREAMS);

	return (struct ts_emulator_shape){ .streams = streams ? (uint32_t)streams->numerator : 0 };
}

enum ts_emulator_policy ts_what_if_policy(const struct ts_what_if *what_if)
{
	const struct ts_what_if_change *policy = last_of(what_if, TS_WHAT_IF_POLICY);

	return policy ? (enum ts_emulator_policy)policy->numerator : TS_EMULATOR_FIFO;
}

void ts_what_if_describe(const struct ts_what_if *what_if, char *buffer, size_t bytes)
{
	size_t used = 0;

	buffer[0] = '\0';
	for (size_t i = 0; i < what_if->count && used < bytes; i++) {
		const struct ts_what_if_change *change = &what_if->changes[i];
		int length =
			snprintf(buffer + used, bytes - used, "%s%s", i ? ", " : "", change->text);

		used += length < 0 ? 0 : (size_t)length;
		if (!change->changed || used >= bytes)
			continue;
		length = snprintf(buffer + used, bytes - used, " (%llu command%s)",
				  (unsigned long long)change->changed,
				  change->changed == 1 ? "" : "s");
		used += length < 0 ? 0 : (size_t)length;
	}
}
