/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith verify`: checks a trace completely. Prints one line per fault, and how to recover the
 * rest.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/common/trace_input.h"
#include "cli/verbs.h"
#include "sbt/sbt_layout.h"
#include "trace/trace_totals.h"

struct verify {
	struct ts_progress progress; /* first: both callbacks get the same context */
	const char *path;
	bool json;
	bool quiet;
	bool can_recover; /* `recover` leaves out, or mends, some of what was found */
	struct ts_trace_writer writer;
	struct ts_text findings; /* of this trace, as JSON */
};

/* A line, wrapped on a terminal. */
static void print_line(struct ts_text *line)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_wrapped(out, ts_text_cstr(line), 0, 2, ts_terminal_stdout_width());
	ts_text_append_char(out, '\n');
}

static void print_finding(const struct verify *verify, const struct ts_verify_finding *finding)
{
	bool is_complete_message = !strncmp(finding->message, "trace '", 7);
	TS_SCOPED(ts_text) line = { 0 };

	if (verify->quiet)
		return;
	if (!is_complete_message) {
		ts_text_printf(&line, "trace '%s': ", verify->path);
		if (finding->chunk != UINT64_MAX)
			ts_text_printf(&line, "chunk %" PRIu64 " at ", finding->chunk);
		ts_text_printf(&line, "byte %" PRIu64 ": ", finding->offset);
	}
	ts_text_append_str(&line, finding->message);
	print_line(&line);
}

static void add_finding_json(struct verify *verify, const struct ts_verify_finding *finding)
{
	struct ts_text *out = &verify->findings;

	ts_text_append_str(out, out->length ? ",{" : "{");
	if (finding->chunk != UINT64_MAX)
		ts_text_printf(out, "\"chunk\":%" PRIu64 ",", finding->chunk);
	ts_text_printf(out, "\"byte\":%" PRIu64 ",\"message\":", finding->offset);
	ts_text_append_json(out, finding->message, strlen(finding->message));
	ts_text_append_char(out, '}');
}

static void on_finding(void *context, const struct ts_verify_finding *finding)
{
	struct verify *verify = context;

	verify->can_recover |= !finding->is_kept;
	ts_progress_hide();
	if (verify->json)
		add_finding_json(verify, finding);
	else
		print_finding(verify, finding);
	ts_stdout_drain(NULL);
}

/* Does the file look like a trace: file magic, or chunk magic at the first chunk's offset? */
static bool is_trace(const char *path)
{
	TS_AUTO_FD int fd = ts_io_open(path, O_RDONLY, 0);
	char mark[SBT_MAGIC_BYTES];
	ssize_t bytes = fd < 0 ? -1 : pread(fd, mark, sizeof(mark), 0);

	if (bytes <= 0)
		return false;
	if (!memcmp(mark, SBT_FILE_MAGIC, (size_t)bytes))
		return true;
	bytes = pread(fd, mark, sizeof(mark), sizeof(struct sbt_file_header));
	return bytes == SBT_MAGIC_BYTES && !memcmp(mark, SBT_CHUNK_MAGIC, sizeof(mark));
}

/* Shorter than the file header: there is no chunk. */
static bool is_hopeless(const char *path)
{
	struct stat status;

	return !stat(path, &status) && status.st_size < (off_t)sizeof(struct sbt_file_header);
}

/* Is all that is wrong that the trace ends too early? */
static bool is_cut(const struct verify *verify)
{
	bool is_cut_off = verify->writer.writing == TS_TRACE_CUT_OFF;
	const struct ts_reader_state *state;
	TS_AUTO(ts_reader) reader = NULL;

	if (ts_reader_open(&reader, verify->path, NULL))
		return is_hopeless(verify->path);
	state = ts_reader_state(reader);
	return (!state->finished || is_cut_off) &&
	       (!state->damaged_ranges ||
		state->damaged_offset + state->damaged_bytes == state->file_bytes);
}

static void show_verdict_json(const struct verify *verify, int exit_code)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, verify->path, strlen(verify->path));
	ts_text_printf(out, ",\"whole\":%s", exit_code ? "false" : "true");
	if (verify->writer.recorder_pid)
		ts_text_printf(out, ",\"recorder_pid\":%" PRIu64, verify->writer.recorder_pid);
	ts_text_append_str(out, ",\"findings\":[");
	ts_text_append(out, verify->findings.data, verify->findings.length);
	ts_text_append_str(out, "]}\n");
}

static void show_verdict(const struct verify *verify, int exit_code)
{
	TS_SCOPED(ts_text) text = { 0 };

	if (verify->json) {
		show_verdict_json(verify, exit_code);
	} else if (verify->quiet || exit_code > TS_EXIT_NO) {
		return;
	} else if (verify->writer.writing == TS_TRACE_GROWING) {
		ts_trace_describe_writer(&text, verify->path, &verify->writer);
		ts_text_append_str(&text, exit_code ? ": verify it when it is finished"
						    : ", and complete so far");
	} else if (exit_code == TS_EXIT_DONE) {
		ts_text_printf(&text, "trace '%s': complete", verify->path);
	} else if (!verify->can_recover) {
		ts_text_printf(&text,
			       "trace '%s': wrong content, as its writer stored it: 'tracesmith "
			       "recover' cannot mend it",
			       verify->path);
	} else {
		ts_text_printf(&text, "trace '%s': %s; ", verify->path,
			       is_cut(verify) ? "incomplete" : "damaged");
		if (is_hopeless(verify->path) && verify->writer.writing != TS_TRACE_CUT_OFF) {
			ts_text_append_str(&text, "too short to recover anything");
		} else {
			ts_text_append_str(&text, "recover the rest with: ");
			ts_trace_append_recover(&text, verify->path);
		}
	}
	if (text.length)
		print_line(&text);
}

/* An unreadable file, or one that is not a trace, is an error instead of a verdict. */
static int refuse(struct verify *verify, const struct ts_error *err)
{
	struct ts_verify_finding finding = { .chunk = UINT64_MAX, .message = err->message };

	if (verify->json) {
		ts_text_clear(&verify->findings);
		add_finding_json(verify, &finding);
		show_verdict(verify, TS_EXIT_INPUT);
	}
	return ts_report_error(err);
}

/* Chunks and index may be right: what is missing is beside the trace. */
static void find_cut_off(struct verify *verify)
{
	struct ts_verify_finding finding = {
		.chunk = UINT64_MAX,
		.message =
			"the recording was cut off: the journal beside the trace may have more rows",
	};
	struct stat status;

	if (!stat(verify->path, &status))
		finding.offset = (uint64_t)status.st_size;
	on_finding(verify, &finding);
}

static int verify_trace(struct verify *verify)
{
	TS_AUTO(ts_reader) reader = NULL;
	TS_SCOPED(ts_text) label = { 0 };
	struct ts_error err;
	int rc, exit_code;

	ts_text_clear(&verify->findings);
	verify->can_recover = false;
	ts_trace_input_await(verify->path, &verify->writer);
	if (!is_trace(verify->path) && ts_reader_open(&reader, verify->path, &err))
		return refuse(verify, &err);
	ts_text_printf(&label, "verify %s", verify->path);
	ts_progress_start(&verify->progress, ts_text_cstr(&label), TS_PROGRESS_BYTES);
	rc = ts_verify(verify->path, on_finding, ts_progress_step, verify, &err);
	ts_progress_stop(&verify->progress);
	if (rc && rc != TS_EFORMAT)
		return refuse(verify, &err);
	if (verify->writer.writing == TS_TRACE_CUT_OFF) {
		find_cut_off(verify);
		rc = TS_EFORMAT;
	}
	exit_code = rc ? TS_EXIT_NO : TS_EXIT_DONE;
	show_verdict(verify, exit_code);
	return exit_code;
}

int ts_verb_verify(int argc, char **argv)
{
	struct verify verify = { .json = false };
	const struct ts_option options[] = {
		TS_OPTION_FLAG("json", 0, &verify.json, "one JSON object per trace"),
		TS_OPTION_FLAG("quiet", 'q', &verify.quiet,
			       "print nothing, only set the exit code"),
	};
	const struct ts_command command = {
		.verb = "verify",
		.operands = "TRACE...",
		.about = "Reads every byte of a trace and checks it: checksums, columns, bounds, "
			 "order and index. A trace that is unfinished, or whose recording was cut "
			 "off, counts as damaged.\n",
		.examples = "tracesmith verify run.sbt && echo ok",
		.exits =
			"0  all traces are intact\n1  a trace is damaged or unfinished\n2  usage error\n3  a file cannot be read, or is not a trace",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = -1,
	};
	int worst = TS_EXIT_DONE;

	if (!ts_command_parse(&command, &argc, argv, &worst))
		return worst;
	for (int i = 0; i < argc && worst < TS_EXIT_SIGNAL; i++) {
		int exit_code;

		verify.path = argv[i];
		exit_code = verify_trace(&verify);
		worst = TS_MAX(worst, exit_code);
	}
	ts_text_release(&verify.findings);
	return worst;
}
