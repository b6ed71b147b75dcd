/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith record --detached`: the recorder that an agent starts for TRACESMITH_OUT
 * (docs/live.md, section 5). Nobody reads its messages: they go to OUT.log. If OUT cannot be
 * written, it records to a file in the folder for temporary files, and the program says so at exit.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/output.h"
#include "base/temporary.h"
#include "base/text.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "live/area.h"
#include "live/discover.h"

/* A longer path of the folder would not leave space for the reason in the target's notice. */
#define FOLDER_BYTES 96
#define STEM_BYTES 32

struct detached {
	struct ts_record record;
	const char *area; /* name of the target's live area */
	const char *output;
	bool makes_folders;                           /* the output was named by a pattern */
	struct ts_error why;                          /* the output cannot be written */
	char instead[FOLDER_BYTES + STEM_BYTES + 32]; /* the trace that is written instead */
};

/* ---- messages ---- */

/* Redirects standard error to memory; at the end it is written to a file if not empty. */
static void keep_messages(void)
{
	TS_AUTO_FD int fd = memfd_create("messages", MFD_CLOEXEC);

	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
}

/* False: the file cannot be created. */
static bool append_messages(const char *path)
{
	TS_AUTO_FD int fd = -1;
	char buffer[4096];
	ssize_t got;

	if (ts_output_open(path, TS_OUTPUT_APPEND, &fd, NULL))
		return false;
	lseek(STDERR_FILENO, 0, SEEK_SET);
	while ((got = read(STDERR_FILENO, buffer, sizeof(buffer))) > 0)
		if (ts_write_all(fd, buffer, (size_t)got, NULL))
			return false;
	return true;
}

static void save_messages(const struct detached *detached)
{
	char path[PATH_MAX];
	struct stat status;

	fflush(stderr);
	if (fstat(STDERR_FILENO, &status) || !S_ISREG(status.st_mode) || !status.st_size)
		return;
	snprintf(path, sizeof(path), "%s.log", detached->output);
	if (append_messages(path) || !detached->instead[0])
		return;
	snprintf(path, sizeof(path), "%s.log", detached->instead);
	append_messages(path);
}

/* ---- the target ---- */

static int open_area(const char *name, bool writable, struct ts_area **ret_area,
		     struct ts_error *err)
{
	TS_AUTO_FD int directory = -1;
	int rc = ts_live_directory_open(geteuid(), 0, &directory, err);

	return rc ? rc : ts_area_open(ret_area, directory, name, writable, err);
}

/* Reads the session of the target that started this recorder. */
static int read_area(const char *name, struct ts_recorder_options *options, struct ts_error *err)
{
	TS_AUTO(ts_area) area = NULL;
	const struct ts_live_control *control;
	int rc = open_area(name, false, &area, err);

	if (rc)
		return rc;
	control = ts_area_control(area);
	options->area = control->area_id;
	options->area_created_ns = control->created.monotonic_ns;
	options->session = control->session;
	options->redact = control->redact != 0 || control->always_redact != 0;
	if (ts_rank_is_valid(&control->rank))
		options->rank = control->rank;
	options->max_steps = control->max_steps;
	return TS_OK;
}

/*
 * What the target prints at exit. Only the one that started this recorder: others of the session
 * would repeat it.
 */
static void notify(const struct detached *detached, bool is_recording)
{
	TS_SCOPED(ts_text) text = { 0 };
	TS_AUTO(ts_area) area = NULL;

	if (open_area(detached->area, true, &area, NULL))
		return;
	if (is_recording)
		ts_text_printf(&text, "trace written to '%s' instead: %s", detached->instead,
			       detached->why.message);
	else
		ts_text_printf(
			&text,
			"no trace is written (get the events from memory: tracesmith recover "
			"%u -o FILE): %s",
			ts_area_control(area)->pid, detached->why.message);
	ts_area_notify(area, ts_text_cstr(&text));
}

/* ---- the output ---- */

/*
 * Processes that share an output have one session and one recorder, so the name depends on the
 * session: "q-1a2b3c4d.sbt" for "q.sbt".
 */
static int choose_instead(struct detached *detached, struct ts_error *err)
{
	const char *slash = strrchr(detached->output, '/');
	const char *name = slash ? slash + 1 : detached->output;
	const char *ending = strrchr(name, '.');
	char folder[FOLDER_BYTES];
	int stem, rc = ts_temporary_folder(folder, sizeof(folder), err);

	if (rc)
		return rc;
	stem = ending ? (int)(ending - name) : (int)strlen(name);
	snprintf(detached->instead, sizeof(detached->instead), "%s/%.*s-%08" PRIx32 "%.8s", folder,
		 TS_MIN(stem, STEM_BYTES), name, (uint32_t)detached->record.options.session,
		 ending ? ending : "");
	return TS_OK;
}

/* Records to a file. *ret_taken: another recorder of the session does that already. */
static int record_to(struct ts_record *record, const char *output, bool *ret_taken)
{
	enum ts_record_holder holder;
	char trace[PATH_MAX];
	int code;

	record->options.output = output;
	record->open_error.code = TS_OK;
	ts_record_trace_path(output, trace, sizeof(trace));
	holder = ts_record_wait_for(trace, record->options.session);
	*ret_taken = holder == TS_HOLDER_SESSION;
	if (*ret_taken)
		return TS_EXIT_DONE;
	if (holder)
		return ts_report_exit_code(ts_error_set(&record->open_error, TS_EBUSY,
							"another process has locked '%s'", trace));
	record->options.resume = ts_record_is_unfinished(trace);
	code = ts_record_run(record);
	/* Another target may have started a recorder at the same time. */
	if (record->open_error.code == TS_EBUSY)
		*ret_taken = ts_record_wait_for(trace, record->options.session) ==
			     TS_HOLDER_SESSION;
	return *ret_taken ? TS_EXIT_DONE : code;
}

/* Not before: another recorder of the session may have it, and has said so. */
static void on_opened(struct ts_record *record)
{
	notify(record->context, true);
}

static int record_instead(struct detached *detached)
{
	struct ts_record *record = &detached->record;
	bool taken;
	int code;

	detached->why = record->open_error;
	ts_report_error(&detached->why);
	if (choose_instead(detached, &record->open_error)) {
		notify(detached, false);
		return ts_report_error(&record->open_error);
	}
	ts_report_note("recording to '%s' instead", detached->instead);
	record->opened = on_opened;
	record->context = detached;
	code = record_to(record, detached->instead, &taken);
	if (!record->open_error.code || taken)
		return code;
	notify(detached, false);
	return ts_report_error(&record->open_error);
}

/* The recorder of another target has recorded the area, removed it, and finished. */
static bool is_recorded(const char *output)
{
	char trace[PATH_MAX];

	ts_record_trace_path(output, trace, sizeof(trace));
	return !access(trace, F_OK) || !access(output, F_OK);
}

static int run(struct detached *detached)
{
	struct ts_record *record = &detached->record;
	struct ts_error err;
	bool taken;
	int code, rc = read_area(detached->area, &record->options, &err);

	if (rc == TS_ENOTFOUND && is_recorded(detached->output))
		return TS_EXIT_DONE;
	if (rc)
		return ts_report_error(&err);
	/* A failure shows when the file is made. */
	if (detached->makes_folders)
		ts_output_make_parents(detached->output, NULL);
	code = record_to(record, detached->output, &taken);
	return record->open_error.code && !taken ? record_instead(detached) : code;
}

int ts_record_detached(int argc, char **argv)
{
	struct detached detached = { .record = { .quiet = true,
						 .options = {
							 .detached = true,
							 .note = ts_record_note,
							 .context = &detached.record,
							 .export_text = ts_record_export_text,
						 } } };
	const struct ts_option options[] = {
		TS_OPTION_TEXT("area", 0, "NAME", &detached.area,
			       "live area of the process that starts it (required)"),
		TS_OPTION_TEXT("output", 'o', "PATH", &detached.output,
			       "the trace to write (required)"),
		TS_OPTION_FLAG("make-folders", 0, &detached.makes_folders,
			       "create the folders of the trace"),
	};
	const struct ts_command command = {
		.verb = "record",
		.operands = "--detached",
		.about = "Records the processes of one session until they exit. Started by "
			 "agents.\n",
		.examples = "TRACESMITH_OUT=t.sbt ./program",
		.exits = "0  done\n3  no output can be written; OUT.log says why",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
	};
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	if (!detached.area || !detached.output)
		return ts_report_usage("'--area' and '--output' are required");
	keep_messages();
	exit_code = run(&detached);
	save_messages(&detached);
	return exit_code;
}
