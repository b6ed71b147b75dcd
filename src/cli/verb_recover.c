/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith recover`: makes a finished trace of what is left. Of a damaged or unfinished trace:
 * every intact chunk. If the recorder was killed: also its journal and what its targets still hold.
 * Of a process: what is in its live area.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/symbolize_report.h"
#include "cli/record/record.h"
#include "cli/verbs.h"
#include "record/recording/salvage.h"
#include "trace/trace_totals.h"

struct recover {
	const char *from;
	const char *output;
	bool json;
	bool quiet;
};

/* ---- a trace ---- */

static void report(const struct recover *recover, const struct ts_recovery *result)
{
	char chunks[TS_FORMAT_BYTES], rows[TS_FORMAT_BYTES], damaged[TS_FORMAT_BYTES];

	if (recover->quiet)
		return;
	ts_report_note("%s: %s chunks with %s rows", recover->output,
		       ts_format_count(chunks, sizeof(chunks), (int64_t)result->chunks),
		       ts_format_count(rows, sizeof(rows), (int64_t)result->rows));
	if (result->damaged_bytes || result->damaged_chunks)
		ts_report_note(
			"skipped: %s damaged bytes (%" PRIu64
			" chunks); the trace has a loss row for them",
			ts_format_count(damaged, sizeof(damaged), (int64_t)result->damaged_bytes),
			result->damaged_chunks);
	ts_symbolize_advise(recover->output);
}

static void show_json(const struct recover *recover, const struct ts_recovery *result)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, recover->output, strlen(recover->output));
	ts_text_printf(out,
		       ",\"chunks\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"damaged_chunks\":%" PRIu64
		       ",\"damaged_bytes\":%" PRIu64 "}\n",
		       result->chunks, result->rows, result->damaged_chunks, result->damaged_bytes);
}

static int recover_trace(const struct recover *recover)
{
	struct ts_output_file file;
	struct ts_progress progress;
	struct ts_recovery result = { 0 };
	struct ts_error err;
	int rc;

	ts_output_file_init(&file, recover->output);
	ts_progress_start(&progress, "recover", TS_PROGRESS_BYTES);
	rc = ts_recover(recover->from, recover->output, ts_progress_step, &progress, &result, &err);
	ts_progress_stop(&progress);
	if (rc) {
		ts_output_file_discard(&file);
		return ts_report_error(&err);
	}
	report(recover, &result);
	if (recover->json)
		show_json(recover, &result);
	return TS_EXIT_DONE;
}

/* ---- events: of a journal, or of live areas ---- */

struct events {
	uint64_t saved, lost, areas;
	uint64_t samples;    /* stacks; not among the events */
	uint64_t torn_bytes; /* of a journal, after its last complete block */
	uint64_t damaged;    /* rings */
};

static void print_events(const struct recover *recover, const struct events *events)
{
	char saved[TS_FORMAT_BYTES], lost[TS_FORMAT_BYTES], torn[TS_FORMAT_BYTES];
	char samples[TS_FORMAT_BYTES];

	if (recover->quiet)
		return;
	ts_format_count(samples, sizeof(samples), (int64_t)events->samples);
	ts_report_note("%s: %s event%s, %s%s%s lost", recover->output,
		       ts_format_count(saved, sizeof(saved), (int64_t)events->saved),
		       events->saved == 1 ? "" : "s", events->samples ? samples : "",
		       events->samples > 1    ? " stacks, "
		       : events->samples == 1 ? " stack, "
					      : "",
		       events->lost ? ts_format_count(lost, sizeof(lost), (int64_t)events->lost)
				    : "nothing");
	if (events->lost)
		ts_report_note("  when and why: tracesmith view %s --table loss", recover->output);
	if (events->torn_bytes)
		ts_report_note("skipped: %s incomplete bytes at the end of the journal",
			       ts_format_count(torn, sizeof(torn), (int64_t)events->torn_bytes));
	if (events->damaged)
		ts_report_note("damaged: %" PRIu64 " ring%s of the process", events->damaged,
			       events->damaged == 1 ? "" : "s");
	ts_symbolize_advise(recover->output);
}

static void show_events_json(const struct recover *recover, const struct events *events)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, recover->output, strlen(recover->output));
	ts_text_printf(out,
		       ",\"events\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"lost\":%" PRIu64
		       ",\"areas\":%" PRIu64 ",\"torn_bytes\":%" PRIu64
		       ",\"damaged_rings\":%" PRIu64 "}\n",
		       events->saved, events->samples, events->lost, events->areas,
		       events->torn_bytes, events->damaged);
}

static int report_events(const struct recover *recover, const struct events *events)
{
	print_events(recover, events);
	if (recover->json)
		show_events_json(recover, events);
	return TS_EXIT_DONE;
}

/* The output is another file than the input, and nobody writes it. */
static int check_output(const struct recover *recover, struct ts_error *err)
{
	struct ts_output_file file;

	ts_output_file_init(&file, recover->output);
	if (ts_output_file_is(&file, recover->from))
		return ts_error_set(err, TS_EINVAL,
				    "cannot recover '%s' into itself: name another output file",
				    recover->from);
	return ts_record_settle(recover->output, err);
}

static int recover_recording(const struct recover *recover, const char *trace)
{
	struct ts_salvage_session session = { 0 };
	struct ts_recording_recovery recovery = { 0 };
	struct ts_error err;
	int rc = check_output(recover, &err);

	if (!rc && ts_record_is_held(trace))
		rc = ts_error_set(&err, TS_EIO, "a recorder is writing '%s' and will finish it",
				  trace);
	if (!rc)
		rc = ts_salvage_read_session(trace, &session.session, &err);
	if (!rc)
		rc = ts_recording_recover(trace, recover->output, ts_salvage_session, &session,
					  &recovery, &err);
	if (rc)
		return ts_report_error(&err);
	return report_events(recover, &(struct events){ .saved = recovery.events,
							.samples = recovery.samples,
							.lost = recovery.lost,
							.areas = session.areas,
							.torn_bytes = recovery.torn_bytes,
							.damaged = session.salvage.damaged });
}

/* ---- live areas ---- */

/* Those of a live directory that are wanted: by name, or by process. */
struct search {
	const char *name; /* NULL: any */
	int64_t pid;      /* 0: any */
	struct ts_area_info *areas;
	size_t count, capacity;
	bool failed;
};

static void on_area(void *context, const struct ts_area_info *info)
{
	struct search *search = context;

	if (info->unfinished || (search->name && strcmp(search->name, info->name) != 0) ||
	    (search->pid && search->pid != (info->alive ? info->pid : (pid_t)info->control.pid)))
		return;
	if (ts_grow_array((void **)&search->areas, &search->capacity, search->count + 1,
			  sizeof(*info)))
		search->failed = true;
	else
		search->areas[search->count++] = *info;
}

/* Saves what the search finds; TS_ENOTFOUND: nothing. */
static int recover_found(const struct recover *recover, int directory_fd, struct search *search,
			 struct ts_error *err)
{
	struct ts_salvage salvage = { 0 };
	int rc = ts_areas_list(directory_fd, 0, on_area, NULL, search, err);

	if (!rc && search->failed)
		rc = ts_error_set(err, TS_ENOMEM, "no memory");
	if (!rc && !search->count)
		rc = ts_error_set(err, TS_ENOTFOUND, "no live area of '%s'", recover->from);
	if (!rc)
		rc = check_output(recover, err);
	if (!rc)
		rc = ts_salvage_areas(directory_fd, search->areas, search->count, recover->output,
				      &salvage, err);
	if (rc)
		return rc;
	report_events(recover, &(struct events){ .saved = salvage.events,
						 .lost = salvage.lost,
						 .areas = search->count,
						 .damaged = salvage.damaged });
	return TS_OK;
}

static int recover_search(const struct recover *recover, int directory_fd, struct search search,
			  struct ts_error *err)
{
	int rc = recover_found(recover, directory_fd, &search, err);

	free(search.areas);
	return rc;
}

static int recover_area_file(const struct recover *recover)
{
	TS_AUTO_FREE char *folder = strdup(recover->from);
	TS_AUTO_FREE char *path = strdup(recover->from);
	TS_AUTO(ts_area) area = NULL;
	TS_AUTO_FD int fd = -1;
	struct search search = { 0 };
	struct ts_error err;
	int rc;

	if (!folder || !path) {
		ts_error_set(&err, TS_ENOMEM, "no memory");
		return ts_report_error(&err);
	}
	fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	search.name = basename(path);
	/* Says what is wrong with it; a list only passes it over. */
	rc = ts_area_open(&area, fd, search.name, false, &err);
	if (!rc)
		rc = recover_search(recover, fd, search, &err);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

/* A pid, or the name of an area of the user's live directory. */
static int recover_process(const struct recover *recover, int64_t pid, struct ts_error *err)
{
	struct search search = { .pid = pid, .name = pid ? NULL : recover->from };
	TS_AUTO_FD int fd = -1;
	int rc = ts_live_directory_open(geteuid(), 0, &fd, err);

	if (!rc)
		rc = recover_search(recover, fd, search, err);
	return rc;
}

/* ---- which of them it is ---- */

static bool is_area_file(const char *path)
{
	TS_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char magic[sizeof(TS_LIVE_MAGIC) - 1];

	return fd >= 0 && read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
	       !memcmp(magic, TS_LIVE_MAGIC, sizeof(magic));
}

static int recover_named(const struct recover *recover)
{
	struct ts_error err;
	int64_t pid = 0;
	int rc;

	if (!ts_parse_int64(recover->from, strlen(recover->from), &pid) &&
	    (pid < 1 || pid > INT32_MAX))
		pid = 0;
	rc = recover_process(recover, pid, &err);
	if (rc == TS_ENOTFOUND && pid) {
		ts_error_set(
			&err, rc,
			"neither a file '%s' nor a live area of process %s exists; 'tracesmith ps' lists live areas",
			recover->from, recover->from);
		return ts_report_error(&err);
	}
	/* A file that is not there says so itself. */
	if (rc == TS_ENOTFOUND)
		return recover_trace(recover);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

static int run(const struct recover *recover)
{
	char trace[PATH_MAX];

	ts_record_trace_path(recover->from, trace, sizeof(trace));
	if (ts_record_is_unfinished(recover->from))
		return recover_recording(recover, recover->from);
	if (ts_record_is_unfinished(trace))
		return recover_recording(recover, trace);
	if (is_area_file(recover->from))
		return recover_area_file(recover);
	return access(recover->from, F_OK) ? recover_named(recover) : recover_trace(recover);
}

int ts_verb_recover(int argc, char **argv)
{
	struct recover recover = { 0 };
	const struct ts_option options[] = {
		TS_OPTION_TEXT("output", 'o', "TRACE", &recover.output, "output trace (required)"),
		TS_OPTION_FLAG("json", 0, &recover.json, "print a summary as JSON"),
		TS_OPTION_FLAG("quiet", 'q', &recover.quiet, "print only errors"),
	};
	const struct ts_command command = {
		.verb = "recover",
		.operands = "TRACE|PID",
		.about = "Writes a finished trace from a truncated or damaged one: all intact "
			 "chunks, and a row in "
			 "table 'loss' for what is missing. If the recorder was killed, also "
			 "recovers its journal "
			 "and the events that the recorded processes still hold in shared memory. "
			 "Of a process, "
			 "dead or alive, recovers those events. Never changes its input.\n",
		.examples = "tracesmith recover cut.sbt -o good.sbt\n"
			    "tracesmith recover 4711 -o crash.sbt",
		.exits =
			"0  done\n2  usage error\n3  nothing to recover, or the output cannot be written",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = 1,
	};
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	recover.from = argv[0];
	if (!recover.output)
		return ts_report_usage("give the output: tracesmith recover %s -o good.sbt",
				       recover.from);
	return run(&recover);
}
