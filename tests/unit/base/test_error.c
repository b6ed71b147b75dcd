/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages: codes, composition, and messages that are too long. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/error.h>

#include "unit/runner.h"

TS_TEST(set_and_name)
{
	struct ts_error err;

	TS_CHECK_INT(ts_error_set(&err, TS_EFORMAT, "trace '%s': chunk %d", "a.sbt", 12),
		     TS_EFORMAT);
	TS_CHECK_INT(err.code, TS_EFORMAT);
	TS_CHECK_STR(err.message, "trace 'a.sbt': chunk 12");
	TS_CHECK_INT(ts_error_set(NULL, TS_ECAP, "%s", "nobody listens"), TS_ECAP);

	TS_CHECK_STR(ts_error_name(TS_OK), "success");
	TS_CHECK_STR(ts_error_name(TS_EFORMAT), "bad input");
	TS_CHECK_STR(ts_error_name(TS_ECANCELED), "canceled");
	for (int code = TS_EBUSY; code <= TS_OK; code++)
		TS_CHECK(strcmp(ts_error_name(code), "unknown error") != 0);
	TS_CHECK_STR(ts_error_name(TS_EBUSY - 1), "unknown error");
	TS_CHECK_STR(ts_error_name(1), "unknown error");
	TS_CHECK_STR(ts_error_name(-2147483647 - 1), "unknown error");
	TS_CHECK_STR(ts_error_name(2147483647), "unknown error");
}

TS_TEST(errno_gives_code_and_text)
{
	static const struct {
		int errnum;
		int code;
	} cases[] = {
		{ ENOSPC, TS_ENOSPC }, { EDQUOT, TS_ENOSPC }, { ENOENT, TS_ENOTFOUND },
		{ ENOMEM, TS_ENOMEM }, { EACCES, TS_EIO },    { 123456, TS_EIO },
	};
	struct ts_error err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TS_CHECK_INT(ts_error_errno(&err, cases[i].errnum, "cannot open '%s'", "x"),
			     cases[i].code);
		TS_CHECK_INT(err.code, cases[i].code);
		TS_CHECK(strncmp(err.message, "cannot open 'x': ", 17) == 0);
		TS_CHECK(strlen(err.message) > 17);
		TS_CHECK_INT(ts_error_errno(NULL, cases[i].errnum, "x"), cases[i].code);
	}
	ts_error_errno(&err, ENOENT, "cannot open");
	TS_CHECK_STR(err.message, "cannot open: No such file or directory");
}

TS_TEST(errno_is_kept)
{
	struct ts_error err;

	errno = E2BIG;
	ts_error_set(&err, TS_EIO, "%s", "x");
	TS_CHECK_INT(errno, E2BIG);
	ts_error_errno(&err, 99999, "x");
	TS_CHECK_INT(errno, E2BIG);
	ts_error_prefix(&err, "y");
	TS_CHECK_INT(errno, E2BIG);
}

TS_TEST(prefix)
{
	struct ts_error err;

	ts_error_set(&err, TS_EIO, "checksum differs");
	TS_CHECK_INT(ts_error_prefix(&err, "chunk %d", 12), TS_EIO);
	TS_CHECK_INT(ts_error_prefix(&err, "trace '%s'", "a.sbt"), TS_EIO);
	TS_CHECK_STR(err.message, "trace 'a.sbt': chunk 12: checksum differs");
	TS_CHECK_INT(ts_error_prefix(NULL, "x"), TS_EINVAL);
	/* The arguments may be the message itself. */
	ts_error_set(&err, TS_EIO, "a");
	ts_error_set(&err, TS_EIO, "%s%s", err.message, err.message);
	ts_error_prefix(&err, "%s", err.message);
	TS_CHECK_STR(err.message, "aa: aa");
}

TS_TEST(long_messages_are_cut_and_marked)
{
	char text[2 * TS_ERROR_MESSAGE_BYTES];
	struct ts_error err;

	for (size_t length = TS_ERROR_MESSAGE_BYTES - 6; length < sizeof(text); length++) {
		memset(text, 'x', length);
		text[length] = '\0';
		memset(&err, 0x55, sizeof(err));
		ts_error_set(&err, TS_EIO, "%s", text);
		if (length < TS_ERROR_MESSAGE_BYTES) {
			TS_CHECK_STR(err.message, text);
			continue;
		}
		TS_CHECK_INT(strlen(err.message), TS_ERROR_MESSAGE_BYTES - 1);
		TS_CHECK_STR(err.message + TS_ERROR_MESSAGE_BYTES - 5, "x...");
	}
	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ts_error_set(&err, TS_EIO, "short");
	ts_error_prefix(&err, "%s", text);
	TS_CHECK_INT(strlen(err.message), TS_ERROR_MESSAGE_BYTES - 1);
	TS_CHECK_STR(err.message + TS_ERROR_MESSAGE_BYTES - 5, "y...");
	ts_error_errno(&err, ENOENT, "%s", text);
	TS_CHECK_STR(err.message + TS_ERROR_MESSAGE_BYTES - 5, "y...");
	/* The prefix fits, the old message no longer does. */
	text[TS_ERROR_MESSAGE_BYTES - 10] = '\0';
	ts_error_set(&err, TS_EIO, "abcdefghijkl");
	ts_error_prefix(&err, "%s", text);
	TS_CHECK_STR(err.message + TS_ERROR_MESSAGE_BYTES - 11, "y: abcd...");
}

TS_TEST(characters_are_not_cut_in_two)
{
	char text[TS_ERROR_MESSAGE_BYTES * 2];
	struct ts_error err;

	for (size_t shift = 0; shift < 4; shift++) {
		size_t at = shift;

		memset(text, 'x', shift);
		while (at + 4 < sizeof(text)) {
			memcpy(text + at, "\xf0\x9f\x9a\x80", 4);
			at += 4;
		}
		text[at] = '\0';
		ts_error_set(&err, TS_EIO, "%s", text);
		at = strlen(err.message);
		TS_CHECK(at >= TS_ERROR_MESSAGE_BYTES - 5);
		TS_CHECK_STR(err.message + at - 3, "...");
		TS_CHECK_INT((at - 3 - shift) % 4, 0);
	}
}
