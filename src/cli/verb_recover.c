/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith recover`: makes a finished trace of what is left. Of a damaged or unfinished trace:
 * every intact chunk. If the recorder was killed: also its journal and what its targets still hold.
 * Of a process: what is in its live area.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/lost_text.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/symbolize_report.h"
#include "cli/record/record.h"
#include "cli/verbs.h"
#include "open/trace_open.h"
#include "record/recording/salvage.h"
#include "sbt/recover.h"
#include "trace/trace_totals.h"

struct recover {
	const char *from;
	const char *output;
	struct ts_output_part part; /* of the output */
	bool json;
	bool quiet;
};

/* ---- the output ---- */

static int start_output(struct recover *recover, struct ts_error *err)
{
	if (ts_output_is_input(recover->output, recover->from))
		return ts_error_set(err, TS_EINVAL,
				    "cannot recover '%s' into itself: name another output file",
				    recover->from);
	return ts_output_part_init(&recover->part, recover->output, err);
}

/* The same, if no recorder writes the output or has left a journal beside it. */
static int start_recording(struct recover *recover, struct ts_error *err)
{
	int rc = ts_record_settle(recover->output, err);

	return rc ? rc : start_output(recover, err);
}

/* ---- a trace ---- */

static void print_damage(uint64_t bytes)
{
	if (bytes)
		ts_report_note(
			"skipped: %s, damaged or incomplete; the trace has a loss row for that",
			TS_COUNTED(bytes, "byte"));
}

static void report(const struct recover *recover, const struct ts_recovery *result)
{
	if (recover->quiet)
		return;
	ts_report_note("%s: %s with %s", recover->output, TS_COUNTED(result->chunks, "chunk"),
		       TS_COUNTED(result->rows, "row"));
	print_damage(result->damaged_bytes);
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

/* `lost`: why events are lost that the trace does not have; NULL: none are. */
static int recover_trace(struct recover *recover, const char *trace, const char *lost)
{
	struct ts_progress progress;
	struct sbt_recover_options options = { .lost = lost,
					       .progress = ts_progress_step,
					       .context = &progress };
	struct ts_recovery result = { 0 };
	struct ts_error err;
	int rc = start_output(recover, &err);

	if (rc)
		return ts_report_error(&err);
	ts_progress_start(&progress, "recover", TS_PROGRESS_BYTES);
	rc = sbt_recover(trace, recover->part.path, &options, &result, &err);
	ts_progress_stop(&progress);
	if (!rc)
		rc = ts_output_part_commit(&recover->part, &err);
	if (rc)
		return ts_report_error(&err);
	report(recover, &result);
	if (recover->json)
		show_json(recover, &result);
	return TS_EXIT_DONE;
}

/* ---- events: of a journal, or of live areas ---- */

struct events {
	uint64_t saved, lost, areas;
	uint64_t samples;                       /* stacks, which are events, too */
	uint64_t torn_bytes;                    /* of a journal, after its last complete block */
	uint64_t damaged;                       /* rings */
	uint64_t damaged_chunks, damaged_bytes; /* of the trace beside the journal */
};

/* Counts what is in the output, as `info` does: a begin and its end are one event. */
static void count_events(const struct recover *recover, struct events *events,
			 uint64_t *ret_unknown_losses)
{
	struct ts_trace_totals totals = { 0 };
	TS_AUTO(ts_reader) reader = NULL;

	if (ts_reader_open(&reader, recover->output, NULL) ||
	    ts_trace_totals(reader, &totals, NULL))
		return;
	events->saved = totals.events;
	events->lost = totals.lost.events;
	events->samples = ts_reader_rows(reader, TS_TABLE_SAMPLE);
	*ret_unknown_losses = totals.lost.unknown;
}

static void print_events(const struct recover *recover, const struct events *events,
			 uint64_t unknown)
{
	char samples[80] = "", lost[96];

	if (recover->quiet)
		return;
	if (events->samples)
		snprintf(samples, sizeof(samples), " (%s)", TS_COUNTED(events->samples, "stack"));
	ts_report_note("%s: %s%s, %s", recover->output, TS_COUNTED(events->saved, "event"), samples,
		       ts_lost_text(lost, sizeof(lost), events->lost, unknown, "event", "events"));
	if (events->lost || unknown)
		ts_report_note("  when and why: tracesmith view %s --table loss",
			       TS_SHELL(recover->output));
	if (events->torn_bytes)
		ts_report_note("skipped: %s at the end of the journal",
			       TS_COUNTED(events->torn_bytes, "incomplete byte"));
	print_damage(events->damaged_bytes);
	if (events->damaged)
		ts_report_note("damaged: %s of the process", TS_COUNTED(events->damaged, "ring"));
	ts_symbolize_advise(recover->output);
}

static void show_events_json(const struct recover *recover, const struct events *events,
			     uint64_t unknown)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, recover->output, strlen(recover->output));
	ts_text_printf(out,
		       ",\"events\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"lost\":%" PRIu64
		       ",\"unknown_losses\":%" PRIu64 ",\"areas\":%" PRIu64
		       ",\"torn_bytes\":%" PRIu64 ",\"damaged_rings\":%" PRIu64
		       ",\"damaged_chunks\":%" PRIu64 ",\"damaged_bytes\":%" PRIu64 "}\n",
		       events->saved, events->samples, events->lost, unknown, events->areas,
		       events->torn_bytes, events->damaged, events->damaged_chunks,
		       events->damaged_bytes);
}

static int report_events(const struct recover *recover, struct events *events)
{
	uint64_t unknown = 0;

	count_events(recover, events, &unknown);
	print_events(recover, events, unknown);
	if (recover->json)
		show_events_json(recover, events, unknown);
	return TS_EXIT_DONE;
}

/* Recovers the trace alone if its journal cannot be used; `why` says what is wrong with that. */
static int leave_journal(struct recover *recover, const char *trace, const struct ts_error *why)
{
	bool is_damaged = why->code == TS_EFORMAT;

	if (!recover->quiet)
		ts_report_warning("%s: recovering only the trace%s", why->message,
				  is_damaged ? "; what was not yet in it is lost" : "");
	return recover_trace(recover, trace, is_damaged ? "the journal is damaged" : NULL);
}

static int refuse_growing(const char *trace)
{
	struct ts_trace_writer writer = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_error err;

	ts_trace_look(trace, &writer);
	/* It has a writer, even if that has just gone. */
	writer.writing = TS_TRACE_GROWING;
	ts_trace_describe_writer(&text, trace, &writer);
	ts_error_set(&err, TS_EIO, "%s: it needs no recovery", ts_text_cstr(&text));
	return ts_report_error(&err);
}

static int recover_recording(struct recover *recover, const char *trace)
{
	struct ts_salvage_session session = { 0 };
	struct ts_recording_recovery recovery = { 0 };
	struct ts_error err;
	int rc;

	if (ts_record_wait_for(trace, 0) >= TS_HOLDER_WRITER)
		return refuse_growing(trace);
	rc = ts_recording_check_journal(trace, &err);
	if (rc == TS_EFORMAT || rc == TS_EINVAL)
		return leave_journal(recover, trace, &err);
	if (!rc)
		rc = start_recording(recover, &err);
	if (!rc)
		rc = ts_recording_recover(trace, recover->part.path, ts_salvage_session, &session,
					  &recovery, &err);
	if (!rc)
		rc = ts_output_part_commit(&recover->part, &err);
	if (rc)
		return ts_report_error(&err);
	return report_events(recover, &(struct events){ .saved = recovery.events,
							.samples = recovery.samples,
							.lost = recovery.lost,
							.areas = session.areas,
							.torn_bytes = recovery.torn_bytes,
							.damaged_chunks = recovery.damaged_chunks,
							.damaged_bytes = recovery.damaged_bytes,
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
static int recover_found(struct recover *recover, int directory_fd, struct search *search,
			 struct ts_error *err)
{
	struct ts_salvage salvage = { 0 };
	int rc = ts_areas_list(directory_fd, 0, on_area, NULL, search, err);

	if (!rc && search->failed)
		rc = ts_error_set(err, TS_ENOMEM, "no memory");
	if (!rc && !search->count)
		rc = ts_error_set(err, TS_ENOTFOUND, "no live area of '%s'", recover->from);
	if (!rc)
		rc = start_recording(recover, err);
	if (!rc)
		rc = ts_salvage_areas(directory_fd, search->areas, search->count,
				      recover->part.path, &salvage, err);
	if (!rc)
		rc = ts_output_part_commit(&recover->part, err);
	if (rc)
		return rc;
	report_events(recover, &(struct events){ .saved = salvage.events,
						 .lost = salvage.lost,
						 .areas = search->count,
						 .damaged = salvage.damaged });
	return TS_OK;
}

static int recover_search(struct recover *recover, int directory_fd, struct search search,
			  struct ts_error *err)
{
	int rc = recover_found(recover, directory_fd, &search, err);

	free(search.areas);
	return rc;
}

static int recover_area_file(struct recover *recover)
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
	fd = ts_io_open(dirname(folder), O_RDONLY | O_DIRECTORY, 0);
	search.name = basename(path);
	/* Says what is wrong with it; a list only passes it over. */
	rc = fd < 0 ? ts_error_errno(&err, errno, "cannot open '%s'", folder)
		    : ts_area_open(&area, fd, search.name, false, &err);
	if (!rc)
		rc = recover_search(recover, fd, search, &err);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

struct attempt {
	struct recover *recover;
	struct search search;
	struct ts_error *err;
	int rc;
};

static void try_directory(void *context, uid_t user)
{
	struct attempt *attempt = context;
	TS_AUTO_FD int fd = -1;
	int rc;

	if (attempt->rc != TS_ENOTFOUND)
		return;
	rc = ts_live_directory_open(user, 0, &fd, attempt->err);
	if (!rc)
		attempt->rc = recover_search(attempt->recover, fd, attempt->search, attempt->err);
	else if (user == geteuid())
		attempt->rc = rc;
}

/* A pid, or the name of an area of a live directory. */
static int recover_process(struct recover *recover, int64_t pid, struct ts_error *err)
{
	struct attempt attempt = { .recover = recover,
				   .search = { .pid = pid, .name = pid ? NULL : recover->from },
				   .err = err,
				   .rc = TS_ENOTFOUND };

	ts_live_directory_users(try_directory, &attempt);
	return attempt.rc;
}

/* ---- which of them it is ---- */

static bool is_area_file(const char *path)
{
	TS_AUTO_FD int fd = ts_io_open(path, O_RDONLY, 0);
	char magic[sizeof(TS_LIVE_MAGIC) - 1];

	return fd >= 0 && read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
	       !memcmp(magic, TS_LIVE_MAGIC, sizeof(magic));
}

static int recover_named(struct recover *recover)
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
		return recover_trace(recover, recover->from, NULL);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

static int run(struct recover *recover)
{
	struct ts_error err;
	char trace[PATH_MAX];

	ts_record_trace_path(recover->from, trace, sizeof(trace));
	if (ts_record_is_unfinished(recover->from))
		return recover_recording(recover, recover->from);
	if (ts_record_is_unfinished(trace))
		return recover_recording(recover, trace);
	if (is_area_file(recover->from))
		return recover_area_file(recover);
	if (access(recover->from, F_OK))
		return recover_named(recover);
	if (ts_record_check_begun(recover->from, &err))
		return ts_report_error(&err);
	return recover_trace(recover, recover->from, NULL);
}

int ts_verb_recover(int argc, char **argv)
{
	struct recover recover = { 0 };
	const struct ts_option options[] = {
		TS_OPTION_TEXT("output", 'o', "TRACE", &recover.output, "output trace (required)"),
		TS_OPTION_MODE,
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
				       TS_SHELL(recover.from));
	exit_code = ts_output_check_trace(recover.output);
	if (!exit_code)
		exit_code = run(&recover);
	ts_output_part_release(&recover.part);
	return exit_code;
}
