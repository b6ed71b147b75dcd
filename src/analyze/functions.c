/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `functions`: self and total time of functions from sampled stacks, and what each thread did.
 * docs/analyze.md defines the numbers.
 */
#include <stdlib.h>

#include "analyze/analyze.h"
#include "base/map.h"
#include "base/ns.h"
#include "trace/samples.h"
#include "trace/stack_lists.h"

#define SHOWN_ROWS 20

static const struct ts_result_column function_columns[] = {
	{ "own_us", "own", TS_CELL_TIME },
	{ "own_pct", "own %", TS_CELL_PERCENT },
	{ "total_us", "total", TS_CELL_TIME },
	{ "total_pct", "total %", TS_CELL_PERCENT },
	{ "own_samples", "samples", TS_CELL_INTEGER },
	{ "total_samples", NULL, TS_CELL_INTEGER },
	{ "function", "function", TS_CELL_TEXT },
	{ "file", "file", TS_CELL_TEXT },
	{ "frame_type", NULL, TS_CELL_TEXT },
};

static const struct ts_result_column thread_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "process", "process", TS_CELL_TEXT },
	{ "thread", "thread", TS_CELL_TEXT },
	{ "samples", "samples", TS_CELL_INTEGER },
	{ "time_us", "time", TS_CELL_TIME },
	{ "idle_pct", "idle %", TS_CELL_PERCENT },
	{ "waits_for_gil_pct", "waits for GIL %", TS_CELL_PERCENT },
	{ "function", "most in", TS_CELL_TEXT },
	{ "function_pct", "own %", TS_CELL_PERCENT },
};

/* Number of samples, and their time. */
struct amount {
	int64_t samples, weight;
};

struct function {
	int64_t frame; /* one of its frames */
	uint32_t trace;
	struct amount self, total;
	int64_t self_in_thread; /* samples in the current thread */
	size_t seen_in;         /* last stack that counted it, plus 1: recursion counts once */
};

/* Samples of one stack of one thread. */
struct tally {
	uint64_t thread; /* index */
	int64_t stack;
	struct amount amount;
};

struct thread {
	int64_t id;
	uint32_t trace;
	int64_t rank; /* TS_ABSENT: none, or one that is not selected */
	struct amount amount;
	int64_t idle, waits; /* samples */
	uint64_t most;       /* function with the most self samples, plus 1; 0: none */
	int64_t most_samples;
};

struct functions {
	struct ts_work *work;
	struct ts_error *err;
	int64_t from, to;
	uint32_t trace; /* the current trace, and its reader */
	struct ts_reader *reader;
	struct ts_map thread_indices;    /* of the current trace: id to index */
	struct ts_pairmap stack_indices; /* of the current trace: thread index and stack to tally */
	struct thread *threads;
	size_t thread_count, thread_capacity;
	struct tally *tallies; /* of the current trace */
	size_t tally_count, tally_capacity;
	struct ts_strmap names; /* function and file, over all traces, to index of a function */
	struct function *functions;
	size_t function_capacity;
	struct amount all;
	bool is_timed; /* all weights are times */
	struct ts_stack_list path;
	struct ts_text name;
};

static int no_memory(struct functions *f)
{
	return ts_error_set(f->err, TS_ENOMEM, "no memory");
}

static void add(struct amount *to, const struct amount *amount)
{
	to->samples = ts_ns_add(to->samples, amount->samples);
	to->weight = ts_ns_add(to->weight, amount->weight);
}

/* ---- counting ---- */

static int64_t rank_of(const struct functions *f, int64_t thread)
{
	const struct ts_thread_row *row = ts_reader_entity(f->reader, TS_TABLE_THREAD, thread);
	const struct ts_process_row *process =
		ts_reader_entity(f->reader, TS_TABLE_PROCESS, row ? row->process : 0);

	for (uint32_t i = 0; i < f->work->rank_count; i++) {
		const struct ts_work_rank *rank = &f->work->ranks[i];

		if (rank->trace == f->trace && process && rank->source == process->source)
			return rank->rank;
	}
	return TS_ABSENT;
}

static struct thread *thread_of(struct functions *f, int64_t id, uint64_t *ret_index)
{
	bool is_new = false;
	uint64_t *position = ts_map_insert(&f->thread_indices, (uint64_t)id, &is_new);

	if (!position || (is_new && ts_grow_array((void **)&f->threads, &f->thread_capacity,
						  f->thread_count + 1, sizeof(*f->threads))))
		return NULL;
	if (is_new) {
		*position = f->thread_count++;
		f->threads[*position] =
			(struct thread){ .id = id, .trace = f->trace, .rank = rank_of(f, id) };
	}
	*ret_index = *position;
	return &f->threads[*position];
}

static int count(void *context, const struct ts_stack_sample *seen)
{
	struct functions *f = context;
	struct amount amount = { seen->count, seen->weight };
	bool is_new = false;
	struct thread *thread;
	uint64_t index, *position;

	/* Device samples are not a thread's time. */
	if (!seen->count || seen->is_on_device || seen->start < f->from || seen->start > f->to)
		return TS_OK;
	thread = thread_of(f, seen->thread, &index);
	if (!thread)
		return no_memory(f);
	if (thread->rank == TS_ABSENT && f->work->options.rank_count)
		return TS_OK;
	add(&thread->amount, &amount);
	add(&f->all, &amount);
	thread->idle += seen->state == TS_THREAD_IDLE ? seen->count : 0;
	thread->waits += seen->state == TS_THREAD_WAITS_FOR_GIL ? seen->count : 0;
	position = ts_pairmap_insert(&f->stack_indices, index, (uint64_t)seen->stack, &is_new);
	if (!position || (is_new && ts_grow_array((void **)&f->tallies, &f->tally_capacity,
						  f->tally_count + 1, sizeof(*f->tallies))))
		return no_memory(f);
	if (is_new) {
		*position = f->tally_count++;
		f->tallies[*position] = (struct tally){ .thread = index, .stack = seen->stack };
	}
	add(&f->tallies[*position].amount, &amount);
	return TS_OK;
}

static struct function *function_of(struct functions *f, int64_t frame)
{
	struct ts_string file = ts_frame_file(f->reader, frame);
	bool is_new = false;
	uint32_t index;

	ts_text_clear(&f->name);
	ts_frame_append_function(f->reader, &f->name, frame);
	ts_text_append_char(&f->name, '\0');
	ts_text_append(&f->name, file.data, file.length);
	if (ts_text_status(&f->name))
		return NULL;
	index = ts_strmap_intern(&f->names, f->name.data, f->name.length, &is_new);
	if (index == TS_STRMAP_NONE || ts_grow_array((void **)&f->functions, &f->function_capacity,
						     (size_t)index + 1, sizeof(*f->functions)))
		return NULL;
	if (is_new)
		f->functions[index] = (struct function){ .frame = frame, .trace = f->trace };
	return &f->functions[index];
}

static void note_most(struct thread *thread, const struct function *function, size_t index)
{
	if (function->self_in_thread > thread->most_samples) {
		thread->most = index + 1;
		thread->most_samples = function->self_in_thread;
	}
}

/* Innermost first: that function gets the self time. */
static int count_stack(struct functions *f, const struct tally *tally, size_t mark)
{
	if (ts_stack_list_load(&f->path, f->reader, tally->stack))
		return no_memory(f);
	for (size_t i = f->path.count; i-- > 0;) {
		struct function *function = function_of(f, f->path.frames[i]);

		if (!function)
			return no_memory(f);
		if (i + 1 == f->path.count) {
			add(&function->self, &tally->amount);
			function->self_in_thread += tally->amount.samples;
			note_most(&f->threads[tally->thread], function,
				  (size_t)(function - f->functions));
		}
		if (function->seen_in != mark)
			add(&function->total, &tally->amount);
		function->seen_in = mark;
	}
	return TS_OK;
}

static int compare_tallies(const void *left, const void *right)
{
	const struct tally *a = left, *b = right;

	return a->thread != b->thread ? TS_COMPARE(a->thread, b->thread)
				      : TS_COMPARE(a->stack, b->stack);
}

static int count_stacks(struct functions *f, size_t *mark)
{
	int rc = TS_OK;

	ts_sort(f->tallies, f->tally_count, sizeof(*f->tallies), compare_tallies);
	for (size_t i = 0; !rc && i < f->tally_count; i++) {
		/* Reset self time for the next thread. */
		if (i && f->tallies[i].thread != f->tallies[i - 1].thread)
			for (uint32_t k = 0; k < ts_strmap_count(&f->names); k++)
				f->functions[k].self_in_thread = 0;
		rc = count_stack(f, &f->tallies[i], ++*mark);
	}
	for (uint32_t k = 0; !rc && k < ts_strmap_count(&f->names); k++)
		f->functions[k].self_in_thread = 0;
	return rc;
}

static int count_trace(struct functions *f, uint32_t trace, size_t *mark)
{
	struct ts_samples samples;
	int rc;

	f->trace = trace;
	f->reader = f->work->readers[trace];
	f->tally_count = 0;
	ts_map_clear(&f->thread_indices);
	ts_pairmap_clear(&f->stack_indices);
	rc = ts_samples_open(&samples, f->reader, NULL, f->err);
	if (!rc && samples.rows) {
		f->is_timed &= samples.are_timed;
		rc = ts_samples_walk(&samples, count, f);
	}
	ts_samples_release(&samples);
	return rc ? rc : count_stacks(f, mark);
}

/* ---- tables ---- */

static void put_time(struct ts_result_table *table, const struct functions *f,
		     const struct amount *amount)
{
	ts_cell_time(table, f->is_timed ? amount->weight : TS_ABSENT);
}

static void put_share(struct ts_result_table *table, const struct functions *f,
		      const struct amount *amount)
{
	if (f->is_timed)
		ts_cell_share(table, amount->weight, f->all.weight);
	else
		ts_cell_share(table, amount->samples, f->all.samples);
}

static int compare_functions(const void *left, const void *right)
{
	const struct function *a = *(const struct function *const *)left;
	const struct function *b = *(const struct function *const *)right;

	if (a->self.weight != b->self.weight)
		return TS_COMPARE(b->self.weight, a->self.weight);
	if (a->total.weight != b->total.weight)
		return TS_COMPARE(b->total.weight, a->total.weight);
	return TS_COMPARE(a, b);
}

static void put_function(struct ts_result_table *table, struct functions *f,
			 const struct function *function)
{
	struct ts_reader *reader = f->work->readers[function->trace];
	const struct ts_frame_row *frame = ts_frame_get(reader, function->frame);
	const char *kind = ts_enum_name("frame_kind", frame->kind);

	put_time(table, f, &function->self);
	put_share(table, f, &function->self);
	put_time(table, f, &function->total);
	put_share(table, f, &function->total);
	ts_cell_integer(table, function->self.samples);
	ts_cell_integer(table, function->total.samples);
	ts_text_clear(&f->name);
	ts_frame_append_function(reader, &f->name, function->frame);
	ts_cell_text(table, ts_text_cstr(&f->name));
	ts_cell_text(table, ts_frame_file(reader, function->frame).data);
	ts_cell_text(table, kind ? kind : "unknown");
}

static int put_functions(struct functions *f, struct ts_result *result, size_t shown_rows)
{
	struct ts_result_table *table = ts_result_table(result, "functions", function_columns,
							TS_ARRAY_SIZE(function_columns));
	size_t all = ts_strmap_count(&f->names);
	TS_AUTO_FREE const struct function **order = ts_alloc_array(all, sizeof(*order));

	if (!order)
		return no_memory(f);
	for (size_t i = 0; i < all; i++)
		order[i] = &f->functions[i];
	ts_sort(order, all, sizeof(*order), compare_functions);
	table->shown_rows = shown_rows;
	for (size_t i = 0; i < all; i++)
		put_function(table, f, order[i]);
	return TS_OK;
}

static void put_thread(struct ts_result_table *table, struct functions *f,
		       const struct thread *thread)
{
	struct ts_reader *reader = f->work->readers[thread->trace];
	const struct function *most = thread->most ? &f->functions[thread->most - 1] : NULL;

	ts_cell_integer(table, thread->rank);
	ts_text_clear(&f->name);
	ts_thread_append_process(reader, &f->name, thread->id);
	ts_cell_text(table, ts_text_cstr(&f->name));
	ts_text_clear(&f->name);
	ts_thread_append_name(reader, &f->name, thread->id);
	ts_cell_text(table, ts_text_cstr(&f->name));
	ts_cell_integer(table, thread->amount.samples);
	put_time(table, f, &thread->amount);
	ts_cell_share(table, thread->idle, thread->amount.samples);
	ts_cell_share(table, thread->waits, thread->amount.samples);
	ts_text_clear(&f->name);
	if (most)
		ts_frame_append_function(f->work->readers[most->trace], &f->name, most->frame);
	ts_cell_text(table, most ? ts_text_cstr(&f->name) : NULL);
	ts_cell_share(table, thread->most_samples, thread->amount.samples);
}

static int compare_threads(const void *left, const void *right)
{
	const struct thread *a = left, *b = right;

	if (a->amount.samples != b->amount.samples)
		return TS_COMPARE(b->amount.samples, a->amount.samples);
	return a->trace != b->trace ? TS_COMPARE(a->trace, b->trace) : TS_COMPARE(a->id, b->id);
}

static int put_tables(struct functions *f, struct ts_result *result, int64_t top)
{
	size_t shown_rows = top ? (size_t)top : SHOWN_ROWS;
	int rc = put_functions(f, result, shown_rows);
	struct ts_result_table *table =
		ts_result_table(result, "threads", thread_columns, TS_ARRAY_SIZE(thread_columns));

	ts_sort(f->threads, f->thread_count, sizeof(*f->threads), compare_threads);
	table->shown_rows = shown_rows;
	for (size_t i = 0; i < f->thread_count; i++)
		if (f->threads[i].amount.samples)
			put_thread(table, f, &f->threads[i]);
	if (!f->all.samples)
		ts_result_note(result, "the trace has no sampled stacks");
	return rc ? rc : ts_result_status(result, f->err);
}

/* ---- analysis ---- */

/* Selected steps are a time range here. */
static void choose_part(struct functions *f)
{
	const struct ts_work_options *options = &f->work->options;

	f->from = INT64_MIN;
	f->to = INT64_MAX;
	if (options->from_step != TS_ABSENT || options->to_step != TS_ABSENT) {
		f->from = INT64_MAX;
		f->to = INT64_MIN;
		for (uint32_t i = 0; i < f->work->step_count; i++) {
			f->from = TS_MIN(f->from, f->work->steps[i].start);
			f->to = TS_MAX(f->to, f->work->steps[i].end);
		}
	}
	if (options->from != TS_ABSENT)
		f->from = TS_MAX(f->from, options->from);
	if (options->to != TS_ABSENT)
		f->to = TS_MIN(f->to, options->to);
}

static void release(struct functions *f)
{
	ts_map_release(&f->thread_indices);
	ts_pairmap_release(&f->stack_indices);
	free(f->threads);
	free(f->tallies);
	ts_strmap_release(&f->names);
	free(f->functions);
	ts_stack_list_release(&f->path);
	ts_text_release(&f->name);
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct functions f = { .work = request->work, .err = err, .is_timed = true };
	size_t mark = 0;
	int rc = TS_OK;

	ts_strmap_init(&f.names, 0);
	choose_part(&f);
	for (uint32_t i = 0; !rc && i < f.work->trace_count; i++)
		rc = count_trace(&f, i, &mark);
	if (!rc)
		rc = put_tables(&f, result, request->options.top);
	release(&f);
	return rc;
}

const struct ts_analysis ts_analysis_functions = {
	.name = "functions",
	.summary = "self and total time of sampled functions; thread states",
	.run = run,
};
