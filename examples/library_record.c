/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses the library to record a command, and says what was recorded. Try
 *
 *	build/examples/library_record run.sbt build/examples/emit_spans --seconds 1
 *
 * After `make install`: cc library_record.c $(pkg-config --cflags --libs tracesmith)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <tracesmith/record.h>

static int fail(const struct ts_error *err)
{
	fprintf(stderr, "library_record: %s\n", err->message);
	return 1;
}

int main(int argc, char **argv)
{
	struct ts_record_options options = { .size = sizeof(options) };
	struct ts_record_summary summary = { .size = sizeof(summary) };
	struct ts_record_session *session;
	struct ts_error err;
	bool has_ended;
	int rc;

	if (argc < 3) {
		fprintf(stderr, "usage: library_record TRACE COMMAND [ARGUMENT...]\n");
		return 2;
	}
	options.output = argv[1];
	options.command = (const char *const *)argv + 2;
	if (ts_record_start(&session, &options, &err))
		return fail(&err);
	printf("recorded by process %d\n", (int)ts_record_pid(session));
	rc = ts_record_wait(session, -1, &has_ended, &err);
	if (!rc)
		rc = ts_record_stop(session, &summary, &err);
	if (rc)
		fail(&err);
	else
		printf("%s: %" PRIu64 " events, %" PRIu64 " lost, exit code %d\n", summary.file,
		       summary.events, summary.lost, WEXITSTATUS(summary.command_status));
	ts_record_close(session);
	return rc ? 1 : 0;
}
