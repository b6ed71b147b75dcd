/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with the agent and the library: it starts a recorder for itself, emits spans, stops the
 * recorder and reads its own trace. Then it records a command.
 *
 *	use_both FOLDER
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/emit.h>
#include <tracesmith/open.h>
#include <tracesmith/record.h>

#define SPANS 1000

static struct ts_error err;

static void check(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, ts_error_name(rc), err.message);
	exit(1);
}

/* Rows of a table in a trace, with that name. */
static uint64_t count_slices(const char *path, const char *name)
{
	struct ts_reader *reader = NULL;
	struct ts_batch *batch = NULL;
	uint64_t count = 0;

	check(ts_open(&reader, path, NULL, &err), "open");
	check(ts_batch_new(&batch, reader, &err), "batch");
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != TS_TABLE_SLICE)
			continue;
		check(ts_batch_read(batch, i, TS_MASK_OF(slice, name), &err), "read");
		for (uint32_t r = 0; r < batch->rows; r++) {
			int64_t id = batch->columns[TS_COLUMN_OF(slice, name)][r];

			count += !strcmp(ts_reader_string(reader, id).data, name);
		}
	}
	ts_batch_free(batch);
	ts_reader_close(reader);
	return count;
}

static void record_ourselves(const char *path)
{
	struct ts_record_session *session = NULL;
	struct ts_record_options options;
	struct ts_record_summary summary;
	pid_t pid = getpid();
	bool ended = true;

	memset(&options, 0, sizeof(options));
	memset(&summary, 0, sizeof(summary));
	options.size = sizeof(options);
	options.output = path;
	options.pids = &pid;
	options.pid_count = 1;
	options.backends = "none";
	summary.size = sizeof(summary);
	check(ts_record_start(&session, &options, &err), "record");
	/* The recorder is no child: nobody here can wait for it by mistake. */
	if (waitpid(-1, NULL, WNOHANG) != -1 || ts_record_pid(session) <= 0)
		exit(1);
	for (int i = 0; i < SPANS; i++)
		TS_SPAN_MS("work", "test", 0.001, TS_INT("number", i));
	check(ts_record_wait(session, 0, &ended, &err), "wait");
	if (ended)
		exit(1);
	check(ts_record_stop(session, &summary, &err), "stop");
	printf("events %" PRIu64 " lost %" PRIu64 " processes %" PRIu64 " spans %" PRIu64 "\n",
	       summary.events, summary.lost, summary.processes, count_slices(summary.file, "work"));
	if (strcmp(summary.file, path) || !strstr(summary.json, "\"events\":"))
		exit(1);
	ts_record_close(session);
}

static void record_command(const char *path)
{
	static const char *const command[] = { "/bin/sh", "-c", "echo recorded; exit 3", NULL };
	struct ts_record_session *session = NULL;
	struct ts_record_options options;
	struct ts_record_summary summary;
	bool ended = false;

	memset(&options, 0, sizeof(options));
	memset(&summary, 0, sizeof(summary));
	options.size = sizeof(options);
	options.output = path;
	options.command = command;
	summary.size = sizeof(summary);
	check(ts_record_start(&session, &options, &err), "record a command");
	check(ts_record_wait(session, -1, &ended, &err), "wait");
	check(ts_record_stop(session, &summary, &err), "stop");
	printf("exit %d, ended %d\n", WEXITSTATUS(summary.command_status), ended);
	ts_record_close(session);
}

static void fail_to_record(void)
{
	static const char *const command[] = { "/no/such/program", NULL };
	struct ts_record_session *session = NULL;
	struct ts_record_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.command = command;
	options.output = "none.sbt";
	if (ts_record_start(&session, &options, &err) != TS_ENOTFOUND ||
	    !strstr(err.message, "/no/such/program"))
		exit(1);
	printf("refused\n");
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc < 2)
		return 2;
	/* The agent becomes visible with the first event. */
	TS_INSTANT("ready", "test");
	snprintf(path, sizeof(path), "%s/self.sbt", argv[1]);
	record_ourselves(path);
	snprintf(path, sizeof(path), "%s/command.sbt", argv[1]);
	fflush(stdout);
	record_command(path);
	fail_to_record();
	return 0;
}
