/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a running target, as a table (docs/live.md, section 2.4). To add one: a row here,
 * and an unused word of `config`.
 */
#include "live/config.h"

#include <assert.h>
#include <string.h>

#include <tracesmith/schema.h>

#include "base/text.h"
#include "live/local/live_layout.h"

#define FIELD(field)                                                 \
	.offset = (uint32_t)offsetof(struct ts_live_control, field), \
	.bytes = sizeof(((struct ts_live_control *)NULL)->field)

static const char *const off_on[] = { "off", "on", NULL };
/* Indexed by the bits of enum ts_config_stacks. */
static const char *const stacks[] = { "none", "native", "python", "all", NULL };
static const char *const modes[] = { "flight", "stream", NULL };

static const struct ts_config_key keys[] = {
	{
		.name = "sample_rate",
		.also = "probing.sample_rate",
		.doc = "seconds between metric samples, 0: none",
		FIELD(config[TS_CONFIG_SAMPLE_RATE]),
		.greatest = INT64_C(3600) * 1000000000,
		.scale = 1e9,
	},
	{
		.name = "enabled",
		.doc = "whether events are stored",
		FIELD(enabled),
		.greatest = 1,
		.scale = 1,
		.value_names = off_on,
	},
	{
		.name = "mode",
		.doc = "flight: keep the newest; stream: for a recorder",
		FIELD(mode),
		.greatest = TS_LIVE_STREAM,
		.scale = 1,
		.value_names = modes,
	},
	{
		.name = "max_steps",
		.doc = "close a window after this many steps, 0: no limit",
		FIELD(max_steps),
		.greatest = INT64_MAX,
		.scale = 1,
	},
	{
		.name = "redact",
		.doc = "whether string arguments are left out",
		FIELD(redact),
		.greatest = 1,
		.scale = 1,
		.value_names = off_on,
	},
	{
		.name = "step_open",
		.doc = "step that opens a window",
		FIELD(step_open),
		.greatest = INT64_MAX,
		.scale = 1,
		.may_be_none = 1,
	},
	{
		.name = "step_close",
		.doc = "last step of the window",
		FIELD(step_close),
		.greatest = INT64_MAX,
		.scale = 1,
		.may_be_none = 1,
	},
	{
		.name = "python_marks",
		.doc = "Python stacks of marks (needs --python-on marks)",
		FIELD(config[TS_CONFIG_PYTHON_MARKS]),
		.greatest = 1,
		.scale = 1,
		.value_names = off_on,
	},
	{
		.name = "python_calls",
		.doc = "Python stacks of calls (needs --python-on calls)",
		FIELD(config[TS_CONFIG_PYTHON_CALLS]),
		.greatest = 1,
		.scale = 1,
		.value_names = off_on,
	},
	{
		.name = "stacks",
		.doc = "call stacks of launches and other driver calls",
		FIELD(config[TS_CONFIG_STACKS]),
		.greatest = TS_STACKS_NATIVE | TS_STACKS_PYTHON,
		.scale = 1,
		.value_names = stacks,
	},
	{
		.name = "python_interval",
		.doc = "seconds between sweeps of Python stacks, 0: none",
		FIELD(config[TS_CONFIG_PYTHON_INTERVAL]),
		.greatest = INT64_C(3600) * 1000000000,
		.scale = 1e9,
	},
	{
		.name = "python_sweep",
		.doc = "any new number takes Python stacks at once",
		FIELD(config[TS_CONFIG_PYTHON_SWEEP]),
		.greatest = INT64_MAX,
		.scale = 1,
	},
	{
		.name = "budget",
		.doc = "limit of shared memory",
		FIELD(budget),
		.scale = 1,
		.read_only = 1,
		.is_bytes = 1,
	},
	{
		.name = "allocated",
		.doc = "shared memory in use",
		FIELD(allocated),
		.scale = 1,
		.read_only = 1,
		.is_bytes = 1,
	},
	{
		.name = "rings",
		.doc = "rings allocated by threads",
		FIELD(rings),
		.scale = 1,
		.read_only = 1,
	},
	{
		.name = "step",
		.doc = "number of the last step",
		FIELD(step),
		.scale = 1,
		.read_only = 1,
	},
};

const struct ts_config_key *ts_config_list(size_t *ret_count)
{
	*ret_count = TS_ARRAY_SIZE(keys);
	return keys;
}

static bool is_called(const char *name, const char *text, size_t length)
{
	return name && strlen(name) == length && memcmp(name, text, length) == 0;
}

const struct ts_config_key *ts_config_find(const char *name, size_t length)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(keys); i++) {
		if (is_called(keys[i].name, name, length) || is_called(keys[i].also, name, length))
			return &keys[i];
	}
	return NULL;
}

/* ---- values ---- */

/* Index of a text in `value_names`, or -1. */
static int find_value_name(const char *const *value_names, const char *text)
{
	for (int i = 0; value_names && value_names[i]; i++) {
		if (strcmp(text, value_names[i]) == 0)
			return i;
	}
	return -1;
}

/* Finds a value by name. */
static bool find_value(const struct ts_config_key *key, const char *text, int64_t *ret_raw_value)
{
	static const char *const false_true[] = { "false", "true", NULL };
	int index = find_value_name(key->value_names, text);

	if (index < 0 && key->value_names == off_on)
		index = find_value_name(false_true, text);
	if (index < 0 && key->scale != 1 && strcmp(text, "off") == 0)
		index = 0;
	if (index >= 0)
		*ret_raw_value = index;
	else if (key->may_be_none && strcmp(text, "none") == 0)
		*ret_raw_value = TS_ABSENT;
	else
		return false;
	return true;
}

/* Converts seconds to nanoseconds exactly: "0.01" or "10ms". */
static bool parse_seconds(const char *text, int64_t *ret_ns)
{
	TS_SCOPED(ts_text) with_unit = { .data = NULL };
	size_t length = strlen(text);
	bool has_unit = length && (text[length - 1] < '0' || text[length - 1] > '9');

	ts_text_append(&with_unit, text, length);
	if (!has_unit)
		ts_text_append_char(&with_unit, 's');
	return !with_unit.failed &&
	       ts_parse_duration_ns(with_unit.data, with_unit.length, ret_ns) == 0;
}

static bool parse_value(const struct ts_config_key *key, const char *text, int64_t *ret_raw_value)
{
	assert(key->scale == 1 || key->scale == 1e9);
	if (find_value(key, text, ret_raw_value))
		return true;
	if (key->scale == 1 ? ts_parse_int64(text, strlen(text), ret_raw_value) != 0
			    : !parse_seconds(text, ret_raw_value))
		return false;
	return *ret_raw_value >= key->least && *ret_raw_value <= key->greatest;
}

/* ---- messages ---- */

static int refuse_key(const char *name, int length, struct ts_error *err)
{
	TS_SCOPED(ts_text) names = { .data = NULL };

	for (size_t i = 0; i < TS_ARRAY_SIZE(keys); i++) {
		if (!keys[i].read_only)
			ts_text_printf(&names, "%s%s", names.length ? ", " : "", keys[i].name);
	}
	return ts_error_set(err, TS_EINVAL, "no setting '%.*s'; settings are: %s", length, name,
			    ts_text_cstr(&names));
}

static int refuse_value(const struct ts_config_key *key, const char *text, struct ts_error *err)
{
	TS_SCOPED(ts_text) allowed = { .data = NULL };

	for (int i = 0; key->value_names && key->value_names[i]; i++)
		ts_text_printf(&allowed, "%s%s", i ? " or " : "", key->value_names[i]);
	if (!key->value_names && key->scale != 1)
		ts_text_printf(&allowed, "seconds from %.15g to %.15g",
			       (double)key->least / key->scale, (double)key->greatest / key->scale);
	else if (!key->value_names)
		ts_text_printf(&allowed, "a number from %lld on%s", (long long)key->least,
			       key->may_be_none ? ", or none" : "");
	return ts_error_set(err, TS_EINVAL, "setting '%s' cannot be '%s' (give %s)", key->name,
			    text, ts_text_cstr(&allowed));
}

int ts_config_parse(const char *assignment, const struct ts_config_key **ret_key,
		    int64_t *ret_raw_value, struct ts_error *err)
{
	const char *equals = strchr(assignment, '=');
	const struct ts_config_key *key;
	int64_t raw_value;

	if (!equals)
		return ts_error_set(err, TS_EINVAL, "'%s' is not a setting (write key=value)",
				    assignment);
	key = ts_config_find(assignment, (size_t)(equals - assignment));
	if (!key)
		return refuse_key(assignment, (int)(equals - assignment), err);
	if (key->read_only)
		return ts_error_set(err, TS_EINVAL, "setting '%s' can only be read", key->name);
	if (!parse_value(key, equals + 1, &raw_value))
		return refuse_value(key, equals + 1, err);
	*ret_key = key;
	*ret_raw_value = raw_value;
	return TS_OK;
}
