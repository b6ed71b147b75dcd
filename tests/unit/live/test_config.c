/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings, and parsing their values. */
#include "live/config.h"

#include <string.h>

#include <tracesmith/schema.h>

#include "live/local/live_layout.h"
#include "unit/runner.h"

static int64_t raw_value_of(const char *assignment)
{
	const struct ts_config_key *key;
	struct ts_error err;
	int64_t raw_value;

	if (ts_config_parse(assignment, &key, &raw_value, &err))
		ts_test_fail(__FILE__, __LINE__, "'%s': %s", assignment, err.message);
	return raw_value;
}

static void expect_refused(const char *assignment, const char *part)
{
	const struct ts_config_key *key = NULL;
	struct ts_error err = { 0 };
	int64_t raw_value = 77;

	TS_CHECK_INT(ts_config_parse(assignment, &key, &raw_value, &err), TS_EINVAL);
	TS_CHECK(key == NULL && raw_value == 77);
	if (!strstr(err.message, part))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err.message, part);
}

TS_TEST(values)
{
	TS_CHECK_INT(raw_value_of("enabled=on"), 1);
	TS_CHECK_INT(raw_value_of("enabled=false"), 0);
	TS_CHECK_INT(raw_value_of("enabled=0"), 0);
	TS_CHECK_INT(raw_value_of("redact=true"), 1);
	TS_CHECK_INT(raw_value_of("mode=flight"), TS_LIVE_FLIGHT);
	TS_CHECK_INT(raw_value_of("mode=stream"), TS_LIVE_STREAM);
	TS_CHECK_INT(raw_value_of("max_steps=9223372036854775807"), INT64_MAX);
	TS_CHECK_INT(raw_value_of("step_open=5"), 5);
	TS_CHECK_INT(raw_value_of("step_close=none"), TS_ABSENT);
	TS_CHECK_INT(raw_value_of("sample_rate=0.01"), 10000000);
	TS_CHECK_INT(raw_value_of("probing.sample_rate=2"), 2000000000);
	TS_CHECK_INT(raw_value_of("sample_rate=10ms"), 10000000);
	TS_CHECK_INT(raw_value_of("sample_rate=off"), 0);
	TS_CHECK_INT(raw_value_of("sample_rate=0.000000001"), 1);
}

TS_TEST(mistakes_are_explained)
{
	expect_refused("enabled", "key=value");
	expect_refused("enable=on", "sample_rate, enabled, mode");
	expect_refused("=1", "no setting ''");
	expect_refused("enabled=2", "off or on");
	expect_refused("enabled=", "off or on");
	expect_refused("mode=on", "flight or stream");
	expect_refused("max_steps=-1", "from 0");
	expect_refused("max_steps=1.5", "a number");
	expect_refused("max_steps=none", "a number");
	expect_refused("step_open=-9223372036854775808", "or none");
	expect_refused("sample_rate=3601", "0 to 3600");
	expect_refused("sample_rate=-1", "seconds");
	expect_refused("sample_rate=fast", "seconds");
	expect_refused("budget=1", "only be read");
}

/* No two keys share a word, and no writable key belongs to the target. */
TS_TEST(table_is_sound)
{
	size_t count;
	const struct ts_config_key *keys = ts_config_list(&count);

	for (size_t i = 0; i < count; i++) {
		TS_CHECK(keys[i].doc && keys[i].doc[0]);
		TS_CHECK(keys[i].bytes == 4 || keys[i].bytes == 8);
		TS_CHECK(
			keys[i].read_only ||
			(keys[i].offset >= offsetof(struct ts_live_control, enabled) &&
			 keys[i].offset + keys[i].bytes <= offsetof(struct ts_live_control, name)));
		TS_CHECK(ts_config_find(keys[i].name, strlen(keys[i].name)) == &keys[i]);
		for (size_t k = 0; k < i; k++)
			TS_CHECK(keys[k].offset != keys[i].offset);
	}
	TS_CHECK(ts_config_find("enabled_", 7) == ts_config_find("enabled", 7));
	TS_CHECK(ts_config_find("enabl", 5) == NULL);
}
