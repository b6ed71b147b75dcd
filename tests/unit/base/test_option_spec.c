/* SPDX-License-Identifier: Apache-2.0 */
/* Option values as text: each type, and what the messages say. */
#include "base/option_spec.h"

#include <string.h>

#include "base/memory.h"
#include "unit/runner.h"

struct values {
	bool flag;
	const char *text;
	int64_t integer, time, choice;
};

static const char *const words[] = { "self", "total", "calls", NULL };

static const struct ts_option_spec specs[] = {
	{ .name = "flag", .type = TS_OPTION_SPEC_FLAG, .offset = offsetof(struct values, flag) },
	{ .name = "text",
	  .type = TS_OPTION_SPEC_TEXT,
	  .value = "TEXT",
	  .offset = offsetof(struct values, text) },
	{ .name = "integer",
	  .type = TS_OPTION_SPEC_INTEGER,
	  .value = "N",
	  .offset = offsetof(struct values, integer),
	  .minimum = 1,
	  .maximum = 10 },
	{ .name = "time",
	  .type = TS_OPTION_SPEC_TIME,
	  .value = "TIME",
	  .offset = offsetof(struct values, time) },
	{ .name = "sort",
	  .type = TS_OPTION_SPEC_CHOICE,
	  .value = "WORD",
	  .offset = offsetof(struct values, choice),
	  .words = words },
};

/* "": stored. */
static const char *store(struct values *values, const char *name, const char *text)
{
	static struct ts_error err;
	const struct ts_option_spec *spec = ts_option_spec_find(specs, TS_ARRAY_SIZE(specs), name);

	TS_CHECK(spec != NULL);
	return ts_option_spec_store(spec, text, values, &err) ? err.message : "";
}

TS_TEST(stores)
{
	struct values values = { 0 };

	TS_CHECK_STR(store(&values, "flag", NULL), "");
	TS_CHECK_STR(store(&values, "text", "x"), "");
	TS_CHECK_STR(store(&values, "integer", "10"), "");
	TS_CHECK_STR(store(&values, "time", "10us"), "");
	TS_CHECK_STR(store(&values, "sort", "calls"), "");
	TS_CHECK(values.flag);
	TS_CHECK_STR(values.text, "x");
	TS_CHECK_INT(values.integer, 10);
	TS_CHECK_INT(values.time, 10000);
	TS_CHECK_INT(values.choice, 2);
	TS_CHECK(!ts_option_spec_find(specs, TS_ARRAY_SIZE(specs), "none"));
}

TS_TEST(refuses)
{
	struct values values = { .integer = 3, .choice = 1 };

	TS_CHECK_STR(store(&values, "flag", "yes"), "option '--flag' takes no value");
	TS_CHECK_STR(store(&values, "text", NULL), "option '--text' needs a value: TEXT");
	TS_CHECK_STR(store(&values, "integer", "11"),
		     "option '--integer' is a number from 1 to 10, not '11'");
	TS_CHECK_STR(store(&values, "integer", "1x"),
		     "option '--integer' is a number from 1 to 10, not '1x'");
	TS_CHECK_STR(store(&values, "sort", "time"),
		     "option '--sort' is self, total or calls, not 'time'");
	TS_CHECK_INT(values.integer, 3);
	TS_CHECK_INT(values.choice, 1);
	TS_CHECK(!values.flag && !values.text);
}
