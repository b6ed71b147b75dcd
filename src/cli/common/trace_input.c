/* SPDX-License-Identifier: Apache-2.0 */
/* See trace_input.h. */
#include "cli/common/trace_input.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"

struct input {
	struct ts_progress progress;
	struct ts_text label; /* of the progress bar */
	struct ts_text note;
	const char *path; /* being imported, or NULL */
};

static void on_warning(void *context, const char *text)
{
	(void)context;
	ts_report_warning("%s", text);
}

/* A person would wonder why nothing happens. */
static void on_waiting(void *context, const char *text)
{
	(void)context;
	if (isatty(STDERR_FILENO))
		ts_report_note("%s", text);
}

/* Printed after the error that it explains. */
static void on_note(void *context, const char *text)
{
	struct input *input = context;

	ts_text_append_str(&input->note, text);
}

static void stop_bar(struct input *input)
{
	if (input->path)
		ts_progress_stop(&input->progress);
	input->path = NULL;
}

static int on_progress(void *context, const char *path, uint64_t done, uint64_t total)
{
	struct input *input = context;

	if (input->path != path) {
		stop_bar(input);
		ts_text_clear(&input->label);
		ts_text_printf(&input->label, "import %s", path);
		ts_progress_start(&input->progress, ts_text_cstr(&input->label), TS_PROGRESS_BYTES);
		input->path = path;
	}
	return ts_progress_step(&input->progress, done, total);
}

static struct ts_open_options options_of(struct input *input)
{
	return (struct ts_open_options){ .size = sizeof(struct ts_open_options),
					 .warning = on_warning,
					 .waiting = on_waiting,
					 .note = on_note,
					 .progress = on_progress,
					 .context = input };
}

/* Reports the error, if any. */
static int finish(struct input *input, int rc, const struct ts_error *err)
{
	int exit_code;

	stop_bar(input);
	exit_code = rc ? ts_report_error(err) : TS_EXIT_DONE;
	if (rc && input->note.length)
		ts_report_note("%s", ts_text_cstr(&input->note));
	ts_text_release(&input->label);
	ts_text_release(&input->note);
	return exit_code;
}

int ts_trace_input_open(struct ts_reader **ret_reader, const char *path)
{
	struct input input = { .path = NULL };
	struct ts_open_options options = options_of(&input);
	struct ts_error err;
	int rc = ts_open(ret_reader, path, &options, &err);

	return finish(&input, rc, &err);
}

int ts_trace_input_open_job(struct ts_job **ret_job, const char *const *paths, size_t count)
{
	struct input input = { .path = NULL };
	struct ts_open_options options = options_of(&input);
	struct ts_error err;
	int rc = ts_job_open(ret_job, paths, count, &options, &err);

	return finish(&input, rc, &err);
}

/* ---- what is recorded of a process ---- */

pid_t ts_trace_input_pid(const char *text)
{
	int64_t pid;

	return !ts_parse_int64(text, strlen(text), &pid) && pid > 0 && pid <= INT32_MAX ? (pid_t)pid
											: 0;
}

pid_t ts_trace_input_live_pid(int operands, const struct ts_string_list *processes)
{
	return !operands && processes->count == 1 ? ts_trace_input_pid(processes->items[0]) : 0;
}

const char *ts_trace_input_live_name(pid_t pid, char name[TS_TRACE_INPUT_NAME_BYTES])
{
	snprintf(name, TS_TRACE_INPUT_NAME_BYTES, "process %d", (int)pid);
	return name;
}

int ts_trace_input_open_live(struct ts_reader **ret_reader, pid_t pid)
{
	struct input input = { .path = NULL };
	struct ts_open_options options = options_of(&input);
	struct ts_error err;
	int rc = ts_open_pid(ret_reader, pid, &options, &err);

	return finish(&input, rc, &err);
}

int ts_trace_input_add_live(struct ts_job *job, pid_t pid)
{
	struct input input = { .path = NULL };
	struct ts_open_options options = options_of(&input);
	struct ts_error err;
	int rc = ts_job_add_pid(job, pid, &options, &err);

	return finish(&input, rc, &err);
}

int ts_trace_input_open_filtered(struct ts_reader **ret_reader, pid_t pid,
				 struct ts_string_list *processes)
{
	int exit_code = ts_trace_input_open_live(ret_reader, pid);
	const struct ts_process_row *process = NULL;
	size_t cursor = 0;
	int64_t id;

	if (exit_code)
		return exit_code;
	do {
		process = ts_reader_entity_next(*ret_reader, TS_TABLE_PROCESS, &cursor, &id);
	} while (process && process->pid != pid);
	if (!process)
		ts_string_list_release(processes);
	return TS_EXIT_DONE;
}

void ts_trace_input_await(const char *path, struct ts_trace_writer *ret_writer)
{
	const struct ts_open_options options = { .size = sizeof(options), .waiting = on_waiting };

	ts_trace_await(path, &options, ret_writer);
}

int ts_trace_input_check_end(const char *path)
{
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_trace_writer writer;
	struct ts_error err;

	ts_trace_input_await(path, &writer);
	if (writer.writing == TS_TRACE_AT_REST)
		return TS_EXIT_DONE;
	ts_trace_describe_writer(&text, path, &writer);
	if (writer.writing == TS_TRACE_CUT_OFF) {
		ts_text_append_str(&text, ": recover it first with: ");
		ts_trace_append_recover(&text, path);
	}
	ts_error_set(&err, TS_EBUSY, "%s", ts_text_cstr(&text));
	return ts_report_error(&err);
}
