/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of findings: one line, cut at a character, quoted for a shell. */
#include "base/finding.h"

#include <errno.h>
#include <string.h>

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

TS_TEST(words_are_quoted_where_they_need_it)
{
	char quoted[TS_QUOTED_BYTES], word[TS_QUOTED_BYTES];

	TS_CHECK_STR(ts_finding_quote("/dev/shm/tracesmith-0", quoted), "/dev/shm/tracesmith-0");
	TS_CHECK_STR(ts_finding_quote("/a b", quoted), "'/a b'");
	TS_CHECK_STR(ts_finding_quote("$(reboot)", quoted), "'$(reboot)'");
	TS_CHECK_STR(ts_finding_quote("it's", quoted), "'it'\\''s'");
	TS_CHECK_STR(ts_finding_quote("", quoted), "''");
	/* A name that is too long is not truncated into another. */
	memset(word, '\'', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	TS_CHECK_STR(ts_finding_quote(word, quoted), "PATH");
	memset(word, ' ', sizeof(word) - 1);
	TS_CHECK_STR(ts_finding_quote(word, quoted), "PATH");
	word[sizeof(word) - 16] = '\0';
	TS_CHECK_INT(strlen(ts_finding_quote(word, quoted)), sizeof(word) - 16 + 2);
}
