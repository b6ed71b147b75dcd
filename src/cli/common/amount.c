/* SPDX-License-Identifier: Apache-2.0 */
/* Reports what base/quantity.h finds wrong with the value of an option. */
#include "cli/common/amount.h"

#include "cli/common/report.h"

static int report(int rc, const struct ts_error *err)
{
	return rc ? ts_report_usage("%s", err->message) : TS_EXIT_DONE;
}

int ts_amount_check_unit(const char *option, const char *text)
{
	struct ts_error err;

	return report(ts_quantity_check_unit(option, text, &err), &err);
}

int ts_amount_time(const char *option, const char *text, int64_t *value_ns)
{
	struct ts_error err;

	return report(ts_quantity_time(option, text, value_ns, &err), &err);
}

int ts_amount_seconds(const char *option, const char *text, int64_t *value_ns)
{
	struct ts_error err;

	return report(ts_quantity_seconds(option, text, value_ns, &err), &err);
}

int ts_amount_size(const char *option, const char *text, uint64_t *value_bytes)
{
	struct ts_error err;

	return report(ts_quantity_size(option, text, value_bytes, &err), &err);
}

int ts_amount_time_or_size(const char *option, const char *text, int64_t *value_ns,
			   uint64_t *value_bytes)
{
	struct ts_error err;

	return report(ts_quantity_time_or_size(option, text, value_ns, value_bytes, &err), &err);
}

int ts_amount_range(const struct ts_quantity_range *range, int64_t start, int64_t *from_ns,
		    int64_t *to_ns)
{
	struct ts_error err;

	return report(ts_quantity_range(range, start, from_ns, to_ns, &err), &err);
}

int ts_amount_range_check(const struct ts_quantity_range *range)
{
	struct ts_error err;

	return report(ts_quantity_range_check(range, &err), &err);
}
