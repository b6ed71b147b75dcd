/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `critical-path`: tables of the path of each window by category, by name and by segment, and
 * what-if.
 */
#include "analyze/critical_path/critical_path.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#define NAMES_SHOWN 15
#define NAMES_CHANGED 8 /* two changes each, four per pass: four passes */

/* More unconnected ranks than this share one window: a path for each would be useless. */
#define RANKS_ALONE 64

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for the critical path");
}

/* ---- tables ---- */

static const struct ts_result_column summary_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "window_start_ns", "start", TS_CELL_INSTANT },
	{ "window_us", "window", TS_CELL_TIME },
	{ "verdict", "verdict", TS_CELL_TEXT },
	{ "compute_pct", "compute", TS_CELL_PERCENT },
	{ "communication_pct", "communication", TS_CELL_PERCENT },
	{ "memory_pct", "memory", TS_CELL_PERCENT },
	{ "other_pct", NULL, TS_CELL_PERCENT },
	{ "launch_pct", "launch", TS_CELL_PERCENT },
	{ "host_pct", "host", TS_CELL_PERCENT },
	{ "gap_pct", "gap", TS_CELL_PERCENT },
	{ "unknown_pct", "unknown", TS_CELL_PERCENT },
	{ "compute_us", NULL, TS_CELL_TIME },
	{ "communication_us", NULL, TS_CELL_TIME },
	{ "memory_us", NULL, TS_CELL_TIME },
	{ "other_us", NULL, TS_CELL_TIME },
	{ "launch_us", NULL, TS_CELL_TIME },
	{ "host_us", NULL, TS_CELL_TIME },
	{ "gap_us", NULL, TS_CELL_TIME },
	{ "unknown_us", NULL, TS_CELL_TIME },
	{ "segments", NULL, TS_CELL_INTEGER },
};

static const struct ts_result_column names_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },          { "name", "name", TS_CELL_TEXT },
	{ "category", "category", TS_CELL_TEXT },     { "count", "segments", TS_CELL_INTEGER },
	{ "path_us", "on the path", TS_CELL_TIME },   { "path_pct", "share", TS_CELL_PERCENT },
	{ "off_path_us", "elsewhere", TS_CELL_TIME },
};

static const struct ts_result_column what_if_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },         { "name", "name", TS_CELL_TEXT },
	{ "category", "category", TS_CELL_TEXT },    { "change", "if it were", TS_CELL_TEXT },
	{ "window_us", "window", TS_CELL_TIME },     { "shorter_us", "shorter by", TS_CELL_TIME },
	{ "shorter_pct", "share", TS_CELL_PERCENT },
};

static const struct ts_result_column path_columns[] = {
	{ "start_ns", "start", TS_CELL_INSTANT }, { "duration_us", "duration", TS_CELL_TIME },
	{ "category", "category", TS_CELL_TEXT }, { "name", "name", TS_CELL_TEXT },
	{ "rank", "rank", TS_CELL_INTEGER },      { "stream", "stream", TS_CELL_INTEGER },
	{ "thread", "thread", TS_CELL_INTEGER },  { "correlation", NULL, TS_CELL_INTEGER },
	{ "via", "reached by", TS_CELL_TEXT },
};

/* The change that --what-if names. */
struct wanted {
	char *name; /* NULL: not given */
	double factor;
	uint8_t *marks; /* by name of the work: does it change? */
};

struct tables {
	struct ts_analyze_request *request;
	struct wanted wanted;
	struct ts_result *result;
	struct ts_result_table *summary, *names, *what_if, *path;
	size_t windows;
	uint64_t jumps;
};

static double share(int64_t part, int64_t total)
{
	return total > 0 ? 100.0 * (double)part / (double)total : NAN;
}

/* The path of one window. */
struct found {
	struct tables *tables;
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_path path;
	struct ts_path_sums sums;
	int64_t length;
	int64_t rank; /* rank number; TS_ABSENT: several ranks */
};

static const char *verdict(const int64_t *sums, int64_t length)
{
	double device =
		share(ts_ns_add(sums[TS_PATH_COMPUTE],
				ts_ns_add(sums[TS_PATH_COMMUNICATION],
					  ts_ns_add(sums[TS_PATH_MEMORY], sums[TS_PATH_OTHER]))),
		      length);
	double host = share(ts_ns_add(sums[TS_PATH_HOST], sums[TS_PATH_LAUNCH]), length);

	if (share(sums[TS_PATH_UNKNOWN], length) >= 50)
		return "unknown";
	if (host >= 60)
		return "host-bound";
	if (device < 60)
		return "mixed";
	if (sums[TS_PATH_COMMUNICATION] > TS_MAX(sums[TS_PATH_COMPUTE], sums[TS_PATH_MEMORY]))
		return "device-bound: communication";
	if (sums[TS_PATH_MEMORY] > sums[TS_PATH_COMPUTE])
		return "device-bound: memory";
	return "device-bound: compute";
}

static void put_summary(const struct found *found)
{
	struct ts_result_table *table = found->tables->summary;
	int64_t sums[TS_PATH_CATEGORIES] = { 0 };

	for (size_t i = 0; i < found->path.count; i++) {
		const struct ts_path_segment *segment = &found->path.segments[i];

		sums[segment->category] =
			ts_ns_add(sums[segment->category], ts_ns_sub(segment->end, segment->start));
	}
	ts_cell_integer(table, found->rank);
	ts_cell_instant(table, found->window.from);
	ts_cell_time(table, found->length);
	ts_cell_text(table, verdict(sums, found->length));
	for (int category = 0; category < TS_PATH_CATEGORIES; category++)
		ts_cell_share(table, sums[category], found->length);
	for (int category = 0; category < TS_PATH_CATEGORIES; category++)
		ts_cell_time(table, sums[category]);
	ts_cell_integer(table, (int64_t)found->path.count);
}

static void put_names(const struct found *found)
{
	struct ts_result_table *table = found->tables->names;

	for (size_t i = 0; i < found->sums.count; i++) {
		const struct ts_path_sum *sum = &found->sums.sums[i];

		ts_cell_integer(table, found->rank);
		ts_cell_text(table, sum->text);
		ts_cell_text(table, ts_path_category_name(sum->category));
		ts_cell_integer(table, (int64_t)sum->count);
		ts_cell_time(table, sum->path_ns);
		ts_cell_share(table, sum->path_ns, found->length);
		if (sum->work)
			ts_cell_time(table, TS_MAX(ts_ns_sub(sum->total_ns, sum->path_ns), 0));
		else
			ts_cell_none(table);
	}
}

/* Puts where a segment ran: stream, thread, or none. */
static void put_location(struct ts_result_table *table, const struct ts_work *work,
			 const struct ts_path_segment *segment, const struct ts_graph *graph)
{
	uint32_t node = segment->node, call = node - work->command_count, thread;

	if (node == TS_WORK_NONE) {
		for (int i = 0; i < 4; i++)
			ts_cell_none(table);
		return;
	}
	ts_cell_integer(table, work->ranks[ts_graph_node_rank(graph, node)].rank);
	if (node < work->command_count) {
		ts_cell_integer(table, work->streams[work->commands[node].stream].number);
		ts_cell_none(table);
		ts_cell_integer(table, work->commands[node].correlation);
		return;
	}
	thread = call < work->call_count ? work->calls[call].thread
					 : graph->stretches[call - work->call_count].thread;
	ts_cell_none(table);
	ts_cell_integer(table, work->threads[thread].tid);
	ts_cell_integer(table, call < work->call_count ? work->calls[call].correlation : TS_ABSENT);
}

static void put_path(const struct found *found)
{
	const struct ts_graph *graph = found->model.graph;
	struct ts_result_table *table = found->tables->path;

	for (size_t i = 0; i < found->path.count; i++) {
		const struct ts_path_segment *segment = &found->path.segments[i];
		struct ts_path_sum name;

		ts_path_describe(graph, segment, &name);
		ts_cell_instant(table, segment->start);
		ts_cell_time(table, ts_ns_sub(segment->end, segment->start));
		ts_cell_text(table, ts_path_category_name(segment->category));
		ts_cell_text(table, name.text);
		put_location(table, graph->work, segment, graph);
		if (segment->kind == TS_PATH_NODE_TIME)
			ts_cell_none(table);
		else
			ts_cell_text(table, ts_edge_kind_name((enum ts_edge_kind)segment->kind));
	}
}

/* ---- what if ---- */

#define TWICE_AS_FAST 0.5

struct question {
	const char *text, *category;
	struct ts_path_change change;
};

struct questions {
	struct question *items;
	size_t count;
	uint8_t *marks; /* storage of the changes' name sets */
};

/* Stored in the request for `advice`. */
static void keep_best(struct ts_analyze_request *request, const struct question *question,
		      int64_t shorter)
{
	const char *compute = ts_path_category_name(TS_PATH_COMPUTE);

	if (question->change.factor != TWICE_AS_FAST || !question->category ||
	    strcmp(question->category, compute) != 0 || shorter <= request->best_kernel.saves_ns)
		return;
	request->best_kernel.name = question->text;
	request->best_kernel.saves_ns = shorter;
}

static void put_answers(const struct found *found, const struct questions *questions,
			const int64_t *ends)
{
	struct ts_result_table *table = found->tables->what_if;

	for (size_t i = 0; i < questions->count; i++) {
		const struct question *question = &questions->items[i];
		int64_t shorter = TS_MAX(ts_ns_sub(found->window.to, ends[i]), 0);

		keep_best(found->tables->request, question, shorter);
		ts_cell_integer(table, found->rank);
		ts_cell_text(table, question->text);
		ts_cell_text(table, question->category);
		if (question->change.factor == TS_PATH_FREE)
			ts_cell_text(table, "free");
		else
			ts_cell_format(table, "%gx faster", 1.0 / question->change.factor);
		ts_cell_time(table, ts_ns_sub(found->length, shorter));
		ts_cell_time(table, shorter);
		ts_cell_share(table, shorter, found->length);
	}
}

/* Does each of several changes of the host shorten the window by the same time? */
static bool are_alike(const struct questions *questions, const int64_t *ends)
{
	for (size_t i = 0; i < questions->count; i++)
		if (!questions->items[i].change.host_names ||
		    questions->items[i].change.device_names || ends[i] != ends[0])
			return false;
	return questions->count > 2; /* two are about one name */
}

/* Why a host that is on the path can hardly shorten the window. */
static void note_host_limit(const struct found *found, int64_t end)
{
	const struct ts_work *work = found->model.graph->work;
	int64_t shorter = TS_MAX(ts_ns_sub(found->window.to, end), 0);
	char text[TS_FORMAT_BYTES];

	ts_result_note(
		found->tables->result,
		"no change of the host alone shortens the window by more than %s: the commands of devices end no sooner",
		ts_format_duration_ns(text, sizeof(text), shorter));
	if (work->commands_without_call)
		ts_result_note(
			found->tables->result,
			"the launch of %s is not in the trace: what-if keeps their distance from the command before",
			TS_COUNTED(work->commands_without_call, "command"));
}

/*
 * If changes of the host all give the same and a host without any work gives no more, one row says
 * so. *ret_is_limit: it has been put.
 */
static int put_host_limit(const struct found *found, int64_t end, bool *ret_is_limit,
			  struct ts_error *err)
{
	size_t names = (size_t)ts_strmap_count(&found->model.graph->work->names) + 1;
	TS_AUTO_FREE uint8_t *marks = malloc(names);
	struct question all = {
		.text = "(all host work)",
		.category = ts_path_category_name(TS_PATH_HOST),
		.change = { .host_names = marks, .factor = TS_PATH_FREE },
	};
	const struct questions one = { .items = &all, .count = 1 };
	int64_t limit;
	int rc;

	if (!marks)
		return no_memory(err);
	memset(marks, 1, names);
	rc = ts_path_what_if(&found->model, &found->window, &all.change, 1, &limit, err);
	*ret_is_limit = !rc && limit == end;
	if (*ret_is_limit) {
		put_answers(found, &one, &limit);
		note_host_limit(found, limit);
	}
	return rc;
}

static int answer(const struct found *found, const struct questions *questions,
		  struct ts_error *err)
{
	bool is_limit = false;
	TS_AUTO_FREE struct ts_path_change *changes =
		ts_alloc_array(questions->count, sizeof(*changes));
	TS_AUTO_FREE int64_t *ends = ts_alloc_array(questions->count, sizeof(*ends));
	int rc;

	if (!changes || !ends)
		return no_memory(err);
	for (size_t i = 0; i < questions->count; i++)
		changes[i] = questions->items[i].change;
	rc = ts_path_what_if(&found->model, &found->window, changes, questions->count, ends, err);
	if (!rc && are_alike(questions, ends))
		rc = put_host_limit(found, ends[0], &is_limit, err);
	if (!rc && !is_limit)
		put_answers(found, questions, ends);
	return rc;
}

/* Asks for each of the names with the most time on the path, free and twice as fast. */
static int evaluate_top_names(const struct found *found, struct questions *questions,
			      struct ts_error *err)
{
	size_t names = (size_t)ts_strmap_count(&found->model.graph->work->names) + 1;

	questions->items = calloc(NAMES_CHANGED * 2, sizeof(*questions->items));
	questions->marks = calloc(NAMES_CHANGED, names);
	if (!questions->items || !questions->marks)
		return no_memory(err);
	for (size_t i = 0; i < found->sums.count && questions->count < NAMES_CHANGED * 2; i++) {
		const struct ts_path_sum *sum = &found->sums.sums[i];
		uint8_t *marks = questions->marks + questions->count / 2 * names;
		struct question question = {
			.text = sum->text,
			.category = ts_path_category_name(sum->category),
			.change = { .factor = TS_PATH_FREE },
		};

		if (!sum->work)
			continue;
		marks[sum->name.name] = 1;
		if (sum->name.device)
			question.change.device_names = marks;
		else
			question.change.host_names = marks;
		questions->items[questions->count++] = question;
		question.change.factor = TWICE_AS_FAST;
		questions->items[questions->count++] = question;
	}
	return TS_OK;
}

static bool parse_factor(const char *text, double *ret_factor)
{
	char *end = NULL;
	double speed;

	if (!strcmp(text, "free")) {
		*ret_factor = TS_PATH_FREE;
		return true;
	}
	speed = strtod(text, &end);
	if (end == text || (*end && strcmp(end, "x") != 0) || !(speed >= 1) || !isfinite(speed))
		return false;
	*ret_factor = 1.0 / speed;
	return true;
}

/* "NAME=free", "NAME=2": the name ends at the last '='. The caller frees it. */
static int parse_change(const char *text, char **ret_name, double *ret_factor, struct ts_error *err)
{
	const char *sign = strrchr(text, '=');

	if (!sign || sign == text || !parse_factor(sign + 1, ret_factor))
		return ts_error_set(
			err, TS_EINVAL,
			"what-if '%s': expected NAME=free, or NAME=2 for twice as fast (1 or more)",
			text);
	*ret_name = strndup(text, (size_t)(sign - text));
	return *ret_name ? TS_OK : no_memory(err);
}

/* Marks all names that equal `wanted` or match it as a pattern; false: none. */
static bool mark_names(const struct ts_work *work, const char *wanted, uint8_t *marks)
{
	uint32_t name = ts_work_find_text(work, wanted);

	if (name) {
		marks[name] = 1;
		return true;
	}
	for (uint32_t id = 1; id < ts_strmap_count(&work->names); id++) {
		const char *text = ts_work_text(work, id);

		marks[id] = ts_glob_match(wanted, text, strlen(text));
		name |= marks[id];
	}
	return name;
}

/*
 * Parses --what-if, if given; the caller releases *wanted even on failure. An answer about a name
 * that nothing has would look like one about a name that does not matter.
 */
static int find_wanted(struct wanted *wanted, const struct ts_work *work, const char *text,
		       struct ts_error *err)
{
	int rc = text ? parse_change(text, &wanted->name, &wanted->factor, err) : TS_OK;

	if (rc || !text)
		return rc;
	wanted->marks = calloc((size_t)ts_strmap_count(&work->names) + 1, 1);
	if (!wanted->marks)
		return no_memory(err);
	if (!mark_names(work, wanted->name, wanted->marks))
		return ts_error_set(err, TS_ENOTFOUND,
				    "what-if '%s': nothing is named '%s' ('*' matches any text)",
				    text, wanted->name);
	return TS_OK;
}

static void release_wanted(struct wanted *wanted)
{
	free(wanted->name);
	free(wanted->marks);
}

static int evaluate_wanted(const struct wanted *wanted, struct questions *questions,
			   struct ts_error *err)
{
	questions->items = calloc(1, sizeof(*questions->items));
	if (!questions->items)
		return no_memory(err);
	questions->items[0] = (struct question){
		.text = wanted->name,
		.change = { .device_names = wanted->marks,
			    .host_names = wanted->marks,
			    .factor = wanted->factor },
	};
	questions->count = 1;
	return TS_OK;
}

static int put_what_if(const struct found *found, struct ts_error *err)
{
	const struct wanted *wanted = &found->tables->wanted;
	struct questions questions = { 0 };
	int rc = wanted->name ? evaluate_wanted(wanted, &questions, err)
			      : evaluate_top_names(found, &questions, err);

	if (!rc && questions.count)
		rc = answer(found, &questions, err);
	free(questions.items);
	free(questions.marks);
	return rc;
}

/* ---- windows ---- */

static int find(struct found *found, const struct ts_graph *graph, uint32_t rank,
		struct ts_error *err)
{
	const struct ts_analysis_options *options = &found->tables->request->options;
	int rc = ts_path_model_init(&found->model, graph, rank, err);

	if (!rc)
		rc = ts_path_window_init(&found->window, &found->model, options->annotation,
					 options->instance, err);
	if (!rc)
		rc = ts_path_walk(&found->path, &found->model, &found->window, err);
	if (!rc && ts_path_sum_names(&found->sums, &found->model, &found->window, &found->path))
		rc = no_memory(err);
	found->length = TS_MAX(ts_ns_sub(found->window.to, found->window.from), 0);
	return rc;
}

/* Adds the path of a rank (TS_WORK_NONE: of all ranks together) to the tables. */
static int add_window(struct tables *tables, const struct ts_graph *graph, uint32_t rank,
		      struct ts_error *err)
{
	const struct ts_work *work = graph->work;
	struct found found = { .tables = tables };
	int rc = find(&found, graph, rank, err);

	found.rank = rank == TS_WORK_NONE
			     ? (work->rank_count == 1 ? work->ranks[0].rank : TS_ABSENT)
			     : work->ranks[rank].rank;
	if (!rc && found.window.last != TS_WORK_NONE) {
		put_summary(&found);
		put_names(&found);
		put_path(&found);
		rc = put_what_if(&found, err);
		tables->windows++;
		tables->jumps += found.path.jumps;
	}
	ts_path_sums_release(&found.sums);
	ts_path_release(&found.path);
	ts_path_window_release(&found.window);
	ts_path_model_release(&found.model);
	return rc;
}

/* Notes ranks that lack the annotation; an error if all do. */
static int add_ranks(struct tables *tables, const struct ts_graph *graph, struct ts_error *err)
{
	for (uint32_t rank = 0; rank < graph->work->rank_count; rank++) {
		struct ts_error problem;
		int rc = add_window(tables, graph, rank, &problem);

		if (rc == TS_ENOTFOUND && (tables->windows || rank + 1 < graph->work->rank_count)) {
			ts_result_note(tables->result, "rank %lld: %s",
				       (long long)graph->work->ranks[rank].rank, problem.message);
			continue;
		}
		if (rc)
			return ts_error_set(err, rc, "%s", problem.message);
	}
	return TS_OK;
}

static void note_clocks(struct ts_result *result, const struct ts_work *work)
{
	int64_t worst = 0;

	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		if (work->ranks[rank].uncertainty_ns == TS_ABSENT) {
			ts_result_note(
				result,
				"the clocks of the ranks are not aligned: where the path crosses ranks, times may be wrong");
			return;
		}
		worst = TS_MAX(worst, work->ranks[rank].uncertainty_ns);
	}
	ts_result_note(
		result,
		"rank clocks are known to within %.3f us: smaller differences are not meaningful",
		(double)worst / 1000);
}

static void put_notes(const struct tables *tables, const struct ts_graph *graph, bool joined)
{
	if (joined)
		note_clocks(tables->result, graph->work);
	if (graph->backward_count)
		ts_result_note(tables->result, "left out: %s pointing back in time",
			       TS_COUNTED(graph->backward_count, "dependency"));
	if (tables->jumps)
		ts_result_note(
			tables->result,
			"in %s the trace does not say what was waited for: the path continues with what ended last before",
			TS_COUNTED(tables->jumps, "place"));
	if (tables->windows)
		ts_result_note(
			tables->result,
			"what-if keeps all other durations and recorded dependencies; it does not model contention or unrecorded work");
}

static int add_windows(struct tables *tables, struct ts_error *err)
{
	const struct ts_work *work = tables->request->work;
	const struct ts_graph *graph = ts_analyze_host_graph(tables->request, err);
	bool joined;
	int rc;

	if (!graph)
		return err ? err->code : TS_ENOMEM;
	joined = work->rank_count > 1 && graph->kind_count[TS_EDGE_COLLECTIVE] > 0;
	if (joined || work->rank_count == 1 || work->rank_count > RANKS_ALONE)
		rc = add_window(tables, graph, TS_WORK_NONE, err);
	else
		rc = add_ranks(tables, graph, err);
	put_notes(tables, graph, joined);
	return rc;
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct tables tables = { .request = request, .result = result };
	size_t shown = request->options.top > 0 ? (size_t)request->options.top : NAMES_SHOWN;
	int rc;

	if (request->options.rounding == TS_ROUNDING_HTA)
		return ts_critical_path_hta(request, result, err);
	tables.summary =
		ts_result_table(result, "summary", summary_columns, TS_ARRAY_SIZE(summary_columns));
	tables.names =
		ts_result_table(result, "names", names_columns, TS_ARRAY_SIZE(names_columns));
	tables.what_if =
		ts_result_table(result, "what_if", what_if_columns, TS_ARRAY_SIZE(what_if_columns));
	tables.path = ts_result_table(result, "path", path_columns, TS_ARRAY_SIZE(path_columns));
	tables.names->shown_rows = tables.path->shown_rows = shown;
	tables.summary->details = "window_start_ns unknown_pct gap_pct memory_pct";
	tables.names->details = "off_path_us category";
	tables.what_if->details = "window_us category";
	tables.path->details = "thread stream";
	if (!request->work->command_count) {
		ts_result_note(result, "no device commands: there is no path to follow");
		return TS_OK;
	}
	rc = find_wanted(&tables.wanted, request->work, request->options.what_if, err);
	if (!rc)
		rc = add_windows(&tables, err);
	release_wanted(&tables.wanted);
	request->best_kernel.known = !rc && !request->options.annotation &&
				     !request->options.what_if;
	return rc;
}

static const struct ts_option_spec options[] = {
	{
		.name = "annotation",
		.type = TS_OPTION_SPEC_TEXT,
		.value = "NAME",
		.doc = "only within this annotation",
		.offset = offsetof(struct ts_analysis_options, annotation),
	},
	{
		.name = "instance",
		.type = TS_OPTION_SPEC_INTEGER,
		.value = "N",
		.doc = "only within its Nth instance, from 0; default 0",
		.offset = offsetof(struct ts_analysis_options, instance),
		.minimum = 0,
		.maximum = INT64_MAX,
	},
	{
		.name = "what-if",
		.type = TS_OPTION_SPEC_TEXT,
		.value = "NAME=HOW",
		.doc = "how long the path would be if NAME were free ('gemm*=free') or twice as fast ('gemm*=2')",
		.offset = offsetof(struct ts_analysis_options, what_if),
	},
};

const struct ts_analysis ts_analysis_critical_path = {
	.name = "critical-path",
	.summary = "what determined the length of the window; what-if",
	.load_flags = TS_WORK_SLICES | TS_WORK_FLOWS | TS_WORK_DETAILS,
	.flags = TS_ANALYSIS_ALIGNED,
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.run = run,
};
