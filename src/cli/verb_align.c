/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith align`: how the clocks of a job's ranks and devices stand to each other, shown and
 * stored in the traces.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/result_show.h"
#include "cli/common/terminal.h"
#include "cli/common/trace_input.h"
#include "cli/common/work_input.h"
#include "cli/verbs.h"
#include "state/clocks/clock_store.h"
#include "trace/trace_totals.h"

struct align {
	const char *output;
	bool dry_run, json, quiet;
	int path_count;
	char **paths;
	struct ts_work_input input;
	struct ts_collectives *collectives;
	struct ts_clock_alignment *clocks;
};

static const struct ts_result_column rank_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "offset_us", "offset", TS_CELL_TIME },
	{ "drift_ppm", "drift ppm", TS_CELL_REAL },
	{ "uncertainty_us", "uncertainty", TS_CELL_TIME },
	{ "bound_us", "at most", TS_CELL_TIME },
	{ "points", "points", TS_CELL_INTEGER },
	{ "outliers", "outliers", TS_CELL_INTEGER },
	{ "method", "method", TS_CELL_TEXT },
	{ "reference", "to rank", TS_CELL_INTEGER },
	{ "at_ns", NULL, TS_CELL_INSTANT },
	{ "source", "source", TS_CELL_TEXT },
};

static const struct ts_result_column device_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },     { "device", "device", TS_CELL_INTEGER },
	{ "offset_us", "offset", TS_CELL_TIME }, { "uncertainty_us", "uncertainty", TS_CELL_TIME },
	{ "points", "points", TS_CELL_INTEGER }, { "outliers", "outliers", TS_CELL_INTEGER },
	{ "method", "method", TS_CELL_TEXT },
};

/* ---- what is shown ---- */

static void show_rank(const struct align *align, struct ts_result_table *table, uint32_t index)
{
	const struct ts_work *work = align->input.work;
	const struct ts_clock_estimate *estimate = &align->clocks->ranks[index];

	ts_cell_integer(table, work->ranks[index].rank);
	ts_cell_time(table, estimate->known ? estimate->offset_ns : TS_ABSENT);
	if (estimate->known)
		ts_cell_real(table, estimate->drift_ppb / 1000);
	else
		ts_cell_none(table);
	ts_cell_time(table, estimate->known ? estimate->uncertainty_ns : TS_ABSENT);
	ts_cell_time(table, estimate->known ? estimate->bound_ns : TS_ABSENT);
	ts_cell_integer(table, (int64_t)estimate->points);
	ts_cell_integer(table, (int64_t)estimate->outliers);
	ts_cell_text(table, estimate->method);
	ts_cell_integer(table, estimate->known ? work->ranks[estimate->reference].rank : TS_ABSENT);
	ts_cell_instant(table, estimate->points ? estimate->epoch : TS_ABSENT);
	ts_cell_text(table, ts_work_text(work, work->ranks[index].name));
}

static void show_device(const struct align *align, struct ts_result_table *table, uint32_t index)
{
	const struct ts_work *work = align->input.work;
	const struct ts_clock_estimate *estimate = &align->clocks->devices[index];

	ts_cell_integer(table, work->ranks[work->devices[index].rank].rank);
	ts_cell_integer(table, work->devices[index].number);
	ts_cell_time(table, estimate->known ? estimate->offset_ns : TS_ABSENT);
	ts_cell_time(table, estimate->known ? estimate->uncertainty_ns : TS_ABSENT);
	ts_cell_integer(table, (int64_t)estimate->points);
	ts_cell_integer(table, (int64_t)estimate->outliers);
	ts_cell_text(table, estimate->method);
}

static void note_moved(const struct align *align, struct ts_result *result)
{
	uint32_t moved = 0;

	for (uint32_t i = 0; i < align->input.work->device_count; i++)
		moved += align->clocks->devices[i].offset_ns != 0;
	if (moved)
		ts_result_note(
			result,
			"clocks that contradict the host's, of %s: shifted by the minimum that puts causes before effects (not stored)",
			TS_COUNTED(moved, "device"));
}

static void note_untied(const struct align *align, struct ts_result *result)
{
	const struct ts_work *work = align->input.work;
	uint32_t untied = 0;

	if (work->rank_count < 2) {
		ts_result_note(result, "only one rank: there is no other clock to align with");
		return;
	}
	for (uint32_t i = 0; i < work->rank_count; i++)
		untied += !align->clocks->ranks[i].known ||
			  align->clocks->ranks[i].reference != align->clocks->reference;
	if (!align->collectives->match_count)
		ts_result_note(
			result,
			"no collective was found on more than one rank: the clocks cannot be "
			"aligned");
	else if (untied)
		ts_result_note(result,
			       "cannot align the clocks of %s to that of rank %" PRId64
			       ": times there stay unchanged",
			       TS_COUNTED(untied, "rank"),
			       work->ranks[align->clocks->reference].rank);
	if (align->collectives->unmatched)
		ts_result_note(result, "left out: %s without a counterpart on another rank",
			       TS_COUNTED(align->collectives->unmatched, "collective command"));
}

static void fill(const struct align *align, struct ts_result *result)
{
	struct ts_result_table *ranks =
		ts_result_table(result, "ranks", rank_columns, TS_ARRAY_SIZE(rank_columns));
	struct ts_result_table *devices =
		ts_result_table(result, "devices", device_columns, TS_ARRAY_SIZE(device_columns));

	for (uint32_t i = 0; i < align->input.work->rank_count; i++)
		show_rank(align, ranks, i);
	for (uint32_t i = 0; i < align->input.work->device_count; i++)
		show_device(align, devices, i);
	note_untied(align, result);
	note_moved(align, result);
}

static int show(const struct align *align)
{
	struct ts_result result;
	struct ts_error err;
	int rc;

	ts_result_init(&result, ts_job_start(align->input.job));
	fill(align, &result);
	rc = ts_result_status(&result, &err);
	if (!rc && align->json) {
		rc = ts_result_show_json(&result, &err);
		ts_text_append_char(ts_stdout(), '\n');
		if (!align->quiet)
			ts_result_print_notes(&result);
	} else if (!rc) {
		rc = ts_result_show_text(&result, 0, &err);
	}
	ts_result_release(&result);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

/* ---- what is stored ---- */

/* Clocks of a trace that are tied to the reference; several ranks may share one. */
static size_t clocks_of(const struct align *align, uint32_t trace,
			struct ts_clock_store_entry *clocks)
{
	const struct ts_work *work = align->input.work;
	const struct ts_clock_estimate *ranks = align->clocks->ranks;
	uint32_t reference = align->clocks->reference;
	struct ts_map met;
	size_t count = 0;

	ts_map_init(&met);
	for (uint32_t i = 0; i < work->rank_count; i++) {
		bool is_new = true;

		if (work->ranks[i].trace != trace || !ranks[i].known ||
		    ranks[i].domain == ranks[reference].domain || ranks[i].reference != reference ||
		    !ts_map_insert(&met, work->ranks[i].clock, &is_new) || !is_new)
			continue;
		clocks[count++] = (struct ts_clock_store_entry){ .clock = work->ranks[i].clock,
								 .estimate = ranks[i] };
	}
	ts_map_release(&met);
	return count;
}

static void report_stored(const struct align *align, const char *path, size_t count, size_t stored)
{
	int64_t rank = align->input.work->ranks[align->clocks->reference].rank;

	if (align->quiet)
		return;
	if (stored)
		ts_report_note("%s: %zu clock%s moved to the time of rank %" PRId64, path, stored,
			       stored == 1 ? "" : "s", rank);
	else if (count)
		ts_report_note("%s: already aligned, nothing to store", path);
	else
		ts_report_note("%s: nothing to store", path);
}

/* `name` is how the user knows the file at `path`. */
static int store_one(const struct align *align, uint32_t trace, const char *path, const char *name,
		     struct ts_error *err)
{
	TS_AUTO_FREE struct ts_clock_store_entry *clocks =
		ts_alloc_array(align->input.work->rank_count, sizeof(*clocks));
	size_t count, stored = 0;
	int rc = TS_OK;

	if (!clocks)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	count = clocks_of(align, trace, clocks);
	if (count)
		rc = ts_clock_store_append(path, ts_job_reader(align->input.job, trace), clocks,
					   count, &stored, err);
	if (!rc)
		report_stored(align, name, count, stored);
	return rc;
}

static int store_in_place(const struct align *align, struct ts_error *err)
{
	int rc = TS_OK;

	for (int i = 0; i < align->path_count && !rc; i++) {
		rc = store_one(align, (uint32_t)i, align->paths[i], align->paths[i], err);
		if (rc && i)
			ts_report_warning(
				"the clocks of %d other traces were already stored: align all again",
				i);
	}
	return rc;
}

static int store_copy(const struct align *align, struct ts_error *err)
{
	struct ts_output_part part;
	int rc = ts_output_part_init(&part, align->output, err);

	if (!rc)
		rc = ts_clock_store_copy(align->paths[0], part.path, ts_stop_signal, err);
	if (!rc)
		rc = store_one(align, 0, part.path, align->output, err);
	if (!rc)
		rc = ts_output_part_commit(&part, err);
	ts_output_part_release(&part);
	return rc;
}

static int store(const struct align *align)
{
	struct ts_progress progress;
	struct ts_error err;
	int rc = TS_OK;

	/* From here on Ctrl-C only asks us to stop. */
	ts_progress_start(&progress, "align", TS_PROGRESS_BYTES);
	if (ts_stop_signal())
		rc = ts_error_set(&err, TS_ECANCELED, "stopped");
	else
		rc = align->output ? store_copy(align, &err) : store_in_place(align, &err);
	ts_progress_stop(&progress);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

/* ---- the verb ---- */

static int check_paths(const struct align *align)
{
	if (align->output && align->path_count > 1)
		return ts_report_usage(
			"'-o' takes one trace: with several, rows are appended to each");
	if (align->output && align->dry_run)
		return ts_report_usage("'-o' and '--dry-run' cannot be combined");
	if (align->output && ts_output_is_input(align->output, align->paths[0]))
		return ts_report_usage(
			"'-o' names the trace itself: omit it to append rows to the trace");
	if (align->output)
		return ts_output_check_trace(align->output);
	for (int i = 0; i < align->path_count && !align->dry_run; i++) {
		int exit_code = ts_trace_input_check_end(align->paths[i]);

		if (exit_code)
			return exit_code;
	}
	return TS_EXIT_DONE;
}

/* Before anything is computed or written. */
static int check_writable(const struct align *align)
{
	struct ts_error err;

	for (int i = 0; i < align->path_count && !align->dry_run; i++)
		if (ts_clock_store_check(align->paths[i],
					 ts_job_reader(align->input.job, (size_t)i), !align->output,
					 &err))
			return ts_report_error(&err);
	if (align->output && ts_output_check(align->output, &err))
		return ts_report_error(&err);
	return TS_EXIT_DONE;
}

static int run(struct align *align)
{
	const struct ts_work_choice choice = { .all = true };
	struct ts_error err;
	int exit_code = check_paths(align), stored;

	/* Then no file is at stake: a reader that goes away may end us quietly. */
	if (align->dry_run)
		signal(SIGPIPE, SIG_DFL);
	if (!exit_code)
		exit_code = ts_work_input_open(&align->input, &choice, TS_WORK_DETAILS,
					       align->path_count, align->paths);
	if (!exit_code)
		exit_code = check_writable(align);
	if (exit_code)
		return exit_code;
	if (ts_collectives_new(&align->collectives, align->input.work, &err) ||
	    ts_clock_alignment_new(&align->clocks, align->input.work, align->collectives, &err))
		return ts_report_error(&err);
	exit_code = show(align);
	/* What store() says on stderr follows the tables. */
	if (!exit_code && ts_stdout_flush(&err))
		exit_code = ts_report_error(&err);
	stored = align->dry_run ? TS_EXIT_DONE : store(align);
	return stored ? stored : exit_code;
}

int ts_verb_align(int argc, char **argv)
{
	struct align align = { 0 };
	const struct ts_option options[] = {
		TS_OPTION_TEXT("output", 'o', "TRACE", &align.output,
			       "write a new trace and leave the input unchanged"),
		TS_OPTION_MODE,
		TS_OPTION_FLAG("dry-run", 0, &align.dry_run, "show the result, store nothing"),
		TS_TERMINAL_WIDTH_OPTION,
		TS_OPTION_FLAG("json", 0, &align.json, "tables as JSON on standard output"),
		TS_OPTION_FLAG("quiet", 'q', &align.quiet, "only tables, warnings and errors"),
	};
	const struct ts_command command = {
		.verb = "align",
		.operands = "TRACE...",
		.about = "Measures the clock offsets between the ranks of a job from collectives, "
			 "which end on all ranks at nearly the same time, and the offsets of "
			 "device clocks from launches and synchronizations. Appends the offsets "
			 "of the ranks to each trace as clock_sync rows; from then on, all times "
			 "are in the clock of the lowest rank. Existing rows do not change.\n",
		.examples = "tracesmith align job.sbt\n"
			    "tracesmith align rank0.sbt rank1.sbt --dry-run --json",
		.exits =
			"0  done, even if there was nothing to align\n2  usage error\n3  a file cannot be read or written, is not a trace or is unfinished",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = -1,
	};
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	align.path_count = argc;
	align.paths = argv;
	exit_code = run(&align);
	ts_clock_alignment_free(align.clocks);
	ts_collectives_free(align.collectives);
	ts_work_input_release(&align.input);
	return exit_code;
}
