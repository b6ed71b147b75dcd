/* SPDX-License-Identifier: Apache-2.0 */
/* Saturating time arithmetic. */
#include "base/ns.h"

#include "unit/runner.h"

TS_TEST(what_fits_is_exact)
{
	TS_CHECK_INT(ts_ns_add(3, -5), -2);
	TS_CHECK_INT(ts_ns_sub(3, -5), 8);
	TS_CHECK_INT(ts_ns_between(3, -5), -8);
	TS_CHECK_INT(ts_ns_add(INT64_MAX, INT64_MIN), -1);
	TS_CHECK_INT(ts_ns_sub(INT64_MIN, INT64_MIN), 0);
}

TS_TEST(what_does_not_fit_stays_at_the_limit)
{
	TS_CHECK_INT(ts_ns_add(INT64_MAX, 1), INT64_MAX);
	TS_CHECK_INT(ts_ns_add(-1, INT64_MIN), INT64_MIN);
	TS_CHECK_INT(ts_ns_sub(1, INT64_MIN), INT64_MAX);
	TS_CHECK_INT(ts_ns_sub(-2, INT64_MAX), INT64_MIN);
	TS_CHECK_INT(ts_ns_between(INT64_MIN, INT64_MAX), INT64_MAX);
	TS_CHECK_INT(ts_ns_between(INT64_MAX, INT64_MIN), INT64_MIN);
}
