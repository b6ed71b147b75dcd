/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as option values: what is accepted, and what the messages say. */
#include "base/quantity.h"

#include <string.h>

#include "unit/runner.h"

static int64_t time_of(const char *text)
{
	struct ts_error err;
	int64_t ns = -7;

	if (ts_quantity_time("wait", text, &ns, &err)) {
		TS_CHECK_INT(err.code, TS_EINVAL);
		TS_CHECK_INT(ns, -7);
		TS_CHECK(strstr(err.message, "option '--wait'") == err.message);
		return -1;
	}
	return ns;
}

TS_TEST(times)
{
	TS_CHECK_INT(time_of(NULL), -7);
	TS_CHECK_INT(time_of("10us"), 10000);
	TS_CHECK_INT(time_of("1.5ms"), 1500000);
	TS_CHECK_INT(time_of("2m"), INT64_C(120000000000));
	TS_CHECK_INT(time_of("10"), -1);
	TS_CHECK_INT(time_of("0"), -1);
	TS_CHECK_INT(time_of("-1us"), -1);
	TS_CHECK_INT(time_of("soon"), -1);
}

TS_TEST(seconds_need_no_unit)
{
	struct ts_error err;
	int64_t ns = 0;

	TS_CHECK_INT(ts_quantity_seconds("rate", "0.1", &ns, &err), 0);
	TS_CHECK_INT(ns, 100000000);
	TS_CHECK_INT(ts_quantity_seconds("rate", "5ms", &ns, &err), 0);
	TS_CHECK_INT(ns, 5000000);
	TS_CHECK_INT(ts_quantity_seconds("rate", "x", &ns, &err), TS_EINVAL);
}

TS_TEST(sizes_and_times)
{
	struct ts_error err;
	uint64_t bytes = 0;
	int64_t ns = 0;

	TS_CHECK_INT(ts_quantity_size("budget", "1.5K", &bytes, &err), 0);
	TS_CHECK_INT(bytes, 1536);
	TS_CHECK_INT(ts_quantity_size("budget", "12 MiB", &bytes, &err), 0);
	TS_CHECK_INT(bytes, 12 << 20);
	TS_CHECK_INT(ts_quantity_size("budget", "1m", &bytes, &err), TS_EINVAL);
	TS_CHECK_INT(ts_quantity_time_or_size("rotate", "10M", &ns, &bytes, &err), 0);
	TS_CHECK_INT(bytes, 10 << 20);
	TS_CHECK_INT(ns, 0);
	TS_CHECK_INT(ts_quantity_time_or_size("rotate", "10m", &ns, &bytes, &err), 0);
	TS_CHECK_INT(ns, INT64_C(600000000000));
	TS_CHECK_INT(ts_quantity_time_or_size("rotate", "10", &ns, &bytes, &err), TS_EINVAL);
}

TS_TEST(ranges)
{
	struct ts_quantity_range range = { .from = "1ms", .to = "@5000000" };
	struct ts_error err;
	int64_t from = 1, to = 2;

	TS_CHECK_INT(ts_quantity_range_check(&range, &err), 0);
	TS_CHECK_INT(ts_quantity_range(&range, 1000, &from, &to, &err), 0);
	TS_CHECK_INT(from, 1001000);
	TS_CHECK_INT(to, 5000000);
	/* Only with a start it is known that this is empty. */
	TS_CHECK_INT(ts_quantity_range(&range, 5000000, &from, &to, &err), TS_EINVAL);
	range.to = "1ms";
	TS_CHECK_INT(ts_quantity_range_check(&range, &err), TS_EINVAL);
	TS_CHECK(strstr(err.message, "the range is empty") != NULL);
	range.may_be_instant = true;
	TS_CHECK_INT(ts_quantity_range_check(&range, &err), 0);
	range.from = NULL;
	range.to = "9223372036854775807ns";
	TS_CHECK_INT(ts_quantity_range(&range, 1000, &from, &to, &err), 0);
	TS_CHECK_INT(to, INT64_MAX);
}
