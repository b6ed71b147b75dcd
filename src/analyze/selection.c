/* SPDX-License-Identifier: Apache-2.0 */
/* Steps, ranks and times of a selection as options of the work; alignment of clocks. */
#include "analyze/selection.h"

#include <inttypes.h>
#include <string.h>

#include "base/quantity.h"

struct ts_selection ts_selection_complete(const struct ts_selection *selection)
{
	struct ts_selection complete = { .size = sizeof(complete) };

	if (selection)
		memcpy(&complete, selection, TS_MIN(selection->size, sizeof(complete)));
	complete.size = sizeof(complete);
	return complete;
}

/* ---- options ---- */

/* "3", "3-5" or "all". */
static int parse_steps(const char *text, struct ts_work_options *options, struct ts_error *err)
{
	const char *dash;
	size_t length;

	if (!text)
		return TS_OK;
	if (!strcmp(text, "all")) {
		options->all = true;
		return TS_OK;
	}
	/* The first character may be a sign. */
	dash = *text ? strchr(text + 1, '-') : NULL;
	length = dash ? (size_t)(dash - text) : strlen(text);
	if (ts_parse_int64(text, length, &options->from_step) ||
	    (dash && ts_parse_int64(dash + 1, strlen(dash + 1), &options->to_step)))
		return ts_error_set(err, TS_EINVAL,
				    "option '--steps': '%s' is neither a step, nor steps such "
				    "as 3-5, nor all",
				    text);
	if (!dash)
		options->to_step = options->from_step;
	if (options->to_step < options->from_step)
		return ts_error_set(err, TS_EINVAL, "option '--steps': '%s' ends before it begins",
				    text);
	return TS_OK;
}

static int parse_rounding(const char *text, struct ts_work_options *options, struct ts_error *err)
{
	if (!text || !strcmp(text, "exact"))
		return TS_OK;
	if (strcmp(text, "hta") != 0)
		return ts_error_set(err, TS_EINVAL, "option '--rounding' is exact or hta, not '%s'",
				    text);
	options->rounding = TS_ROUNDING_HTA;
	return TS_OK;
}

/* All but the times. */
static int parse(const struct ts_selection *selection, struct ts_work_options *options,
		 struct ts_error *err)
{
	bool all = selection->flags & TS_SELECT_ALL;
	int rc = parse_steps(selection->steps, options, err);

	if (!rc && selection->steps && all && !options->all)
		rc = ts_error_set(err, TS_EINVAL, "'--all' and '--steps %s' cannot be combined",
				  selection->steps);
	if (!rc && selection->step_span && !*selection->step_span)
		rc = ts_error_set(err, TS_EINVAL, "option '--step-span' needs the name of a span");
	options->all |= all;
	options->step_span = selection->step_span;
	options->short_names = selection->flags & TS_SELECT_SHORT_NAMES;
	options->ranks = selection->ranks;
	options->rank_count = selection->rank_count;
	return rc ? rc : parse_rounding(selection->rounding, options, err);
}

int ts_selection_check(const struct ts_selection *selection, struct ts_error *err)
{
	const struct ts_quantity_range range = { .from = selection->from, .to = selection->to };
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	int rc = parse(selection, &options, err);

	return rc ? rc : ts_quantity_range_check(&range, err);
}

int ts_selection_options(const struct ts_selection *selection, int64_t start,
			 struct ts_work_options *ret_options, struct ts_error *err)
{
	const struct ts_quantity_range range = { .from = selection->from, .to = selection->to };
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	int rc = parse(selection, &options, err);

	if (!rc)
		rc = ts_quantity_range(&range, start, &options.from, &options.to, err);
	if (!rc)
		*ret_options = options;
	return rc;
}

/* ---- what was found ---- */

static uint64_t count_steps(const struct ts_work *work)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < work->rank_count; i++)
		count += work->ranks[i].steps_in_trace;
	return count;
}

int ts_selection_check_found(const struct ts_selection *selection, const struct ts_work *work,
			     const char *path, struct ts_error *err)
{
	if (selection->rank_count && work->rank_count == 0)
		return ts_error_set(err, TS_ENOTFOUND, "no trace has rank %" PRId64,
				    selection->ranks[0]);
	if (selection->step_span && !count_steps(work))
		return ts_error_set(
			err, TS_ENOTFOUND,
			"no span '%s' in '%s'; 'tracesmith analyze %s annotations' lists the "
			"names of spans",
			selection->step_span, path, TS_SHELL(path));
	if (work->options.from_step != TS_ABSENT && work->step_count == 0)
		return ts_error_set(
			err, TS_ENOTFOUND,
			"no step %s in '%s'; 'tracesmith analyze --all %s steps' lists the "
			"steps",
			selection->steps, path, TS_SHELL(path));
	return TS_OK;
}

/* ---- as text ---- */

/* After this many bytes of trace names, the rest is omitted. */
#define ARGUMENTS_BYTES 2000

static void append_option(struct ts_text *out, const char *option, const char *value)
{
	if (!value)
		return;
	ts_text_printf(out, " --%s ", option);
	ts_text_append_shell(out, value);
}

void ts_selection_append_arguments(const struct ts_selection *selection, const char *const *paths,
				   size_t count, struct ts_text *out)
{
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			ts_text_append_char(out, ' ');
		if (i > 0 && out->length > ARGUMENTS_BYTES) {
			ts_text_append_str(out, "...");
			break;
		}
		ts_text_append_shell(out, paths[i]);
	}
	append_option(out, "steps", selection->steps);
	append_option(out, "step-span", selection->step_span);
	if (selection->flags & TS_SELECT_ALL)
		ts_text_append_str(out, " --all");
	append_option(out, "from", selection->from);
	append_option(out, "to", selection->to);
	for (size_t i = 0; i < selection->rank_count; i++)
		ts_text_printf(out, " --rank %" PRId64, selection->ranks[i]);
	if (selection->flags & TS_SELECT_NO_ALIGN)
		ts_text_append_str(out, " --no-align");
	if (selection->flags & TS_SELECT_SHORT_NAMES)
		ts_text_append_str(out, " --short-names");
	append_option(out, "rounding", selection->rounding);
}

/* ---- clocks ---- */

int ts_selection_align(const struct ts_selection *selection, struct ts_analyze_request *request,
		       const struct ts_clock_alignment **ret_clocks, struct ts_error *err)
{
	const struct ts_collectives *collectives;
	struct ts_error unused = { 0 };

	err = err ? err : &unused;
	*ret_clocks = NULL;
	/* HTA does not align clocks. */
	if (request->work->rank_count < 2 || selection->flags & TS_SELECT_NO_ALIGN ||
	    request->work->options.rounding == TS_ROUNDING_HTA)
		return TS_OK;
	collectives = ts_analyze_collectives(request, err);
	if (!collectives)
		return err->code;
	if (collectives->match_count == 0)
		return TS_OK;
	*ret_clocks = ts_analyze_align(request, err);
	return *ret_clocks ? TS_OK : err->code;
}

void ts_selection_describe_clocks(const struct ts_work *work,
				  const struct ts_clock_alignment *clocks, struct ts_text *aligned,
				  struct ts_text *not_aligned)
{
	char moved[TS_FORMAT_BYTES], uncertain[TS_FORMAT_BYTES];
	uint64_t most = 0;
	int64_t worst = 0;
	uint32_t known = 0;

	for (uint32_t i = 0; i < work->rank_count; i++) {
		const struct ts_clock_estimate *rank = &clocks->ranks[i];
		uint64_t offset = rank->offset_ns < 0 ? -(uint64_t)rank->offset_ns
						      : (uint64_t)rank->offset_ns;

		if (!rank->known)
			continue;
		known++;
		most = TS_MAX(most, offset);
		worst = TS_MAX(worst, rank->uncertainty_ns);
	}
	most = TS_MIN(most, (uint64_t)INT64_MAX);
	ts_text_printf(aligned,
		       "aligned the clocks of %" PRIu32
		       " ranks by their collectives: shifted by up "
		       "to %s, uncertainty %s ('tracesmith align' lists them)",
		       known, ts_format_duration_ns(moved, sizeof(moved), (int64_t)most),
		       ts_format_duration_ns(uncertain, sizeof(uncertain), worst));
	if (known < work->rank_count)
		ts_text_printf(not_aligned,
			       "cannot align the clocks of %s: no collective shared with the "
			       "other ranks",
			       TS_COUNTED(work->rank_count - known, "rank"));
}
