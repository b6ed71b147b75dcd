/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of findings: one line, cut at a character. */
#include "base/finding.h"

#include <errno.h>

#include "unit/runner.h"

TS_TEST(texts_are_filled_in)
{
	struct ts_finding finding = { 0 };

	ts_finding_set(&finding, TS_CHECK_LIMITED, "scope %d", 7);
	ts_finding_fix(&finding, "do\n%s", "this");
	ts_finding_note(&finding, "note");
	TS_CHECK_INT(finding.state, TS_CHECK_LIMITED);
	TS_CHECK_STR(finding.text, "scope 7");
	TS_CHECK_STR(finding.fix, "do this");
	TS_CHECK_STR(finding.note, "note");
	TS_CHECK_STR(ts_check_state_name(finding.state), "limited");
	TS_CHECK_STR(ts_errno_name(EPERM), "EPERM");
	TS_CHECK_STR(ts_errno_name(4711), "error 4711");
}
