/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `functions`: self and total time of functions from sampled stacks, and what each thread did.
 * docs/analyze.md defines the numbers.
 */
#include <stdlib.h>

#include "analyze/analyze.h"
#include "base/map.h"
#include "base/ns.h"
#include "model/short_name.h"
#include "trace/samples.h"
#include "trace/stack_lists.h"

#define SHOWN_ROWS 20
/*
 * A thread with at least this share of idle samples is idle: one other sample in a second of
 * sampling does not make it busy.
 */
#define IDLE_PERCENT 90

static const struct ts_result_column function_columns[] = {
	{ "own_us", "own", TS_CELL_TIME },
	{ "own_pct", "own %", TS_CELL_PERCENT },
	{ "running_us", "running", TS_CELL_TIME },
	{ "total_us", "total", TS_CELL_TIME },
	{ "total_pct", "total %", TS_CELL_PERCENT },
	{ "own_samples", "samples", TS_CELL_INTEGER },
	{ "total_samples", NULL, TS_CELL_INTEGER },
	{ "function", "function", TS_CELL_TEXT },
	{ "file", "file", TS_CELL_TEXT },
	{ "frame_type", NULL, TS_CELL_TEXT },
	{ "busiest_thread_us", NULL, TS_CELL_TIME },
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
	{ "idle_function", NULL, TS_CELL_TEXT },
	{ "is_main", NULL, TS_CELL_BOOL },
};

/* Number of samples, and their time. */
struct amount {
	int64_t samples, weight;
};

struct function {
	int64_t frame; /* one of its frames */
	uint32_t trace;
	struct amount self, total;
	struct amount running;  /* of self: the thread was neither idle nor waited for the GIL */
	int64_t self_in_thread; /* samples in the current thread */
	int64_t idle_in_thread; /* of these: it was idle */
	struct amount running_in_thread;
	struct amount busiest; /* the most `running` of one thread */
	size_t seen_in;        /* last stack that counted it, plus 1: recursion counts once */
};

/* Samples of one stack of one thread. */
struct tally {
	uint64_t thread; /* index */
	int64_t stack;
	struct amount amount, running, idle;
};

struct thread {
	int64_t id;
	uint32_t trace;
	int64_t rank; /* TS_ABSENT: none, or one that is not selected */
	struct amount amount, idle;
	int64_t waits;  /* samples */
	bool is_hidden; /* idle, and the user wants to see busy ones */
	uint64_t most;  /* function with the most self samples, plus 1; 0: none */
	int64_t most_samples;
	uint64_t most_idle; /* the same for samples in which it was idle */
	int64_t most_idle_samples;
};

struct functions {
	struct ts_work *work;
	struct ts_error *err;
	bool with_idle;   /* count idle time, too */
	bool counts_idle; /* of the current trace */
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
	int64_t hidden;       /* threads */
	int64_t hidden_times; /* idle samples of the others */
	bool is_timed;        /* all weights are times */
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

static struct amount without(const struct amount *all, const struct amount *part)
{
	return (struct amount){ all->samples - part->samples,
				ts_ns_sub(all->weight, part->weight) };
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
	if (seen->state == TS_THREAD_IDLE)
		add(&thread->idle, &amount);
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
	if (seen->state == TS_THREAD_IDLE)
		add(&f->tallies[*position].idle, &amount);
	if (seen->state == TS_THREAD_RUNS)
		add(&f->tallies[*position].running, &amount);
	return TS_OK;
}

/* The name of a function, into f->name. Python's names have no arguments, but may have "<...>". */
static void find_name(struct functions *f, struct ts_reader *reader, int64_t frame)
{
	TS_SCOPED(ts_text) full = { 0 };

	ts_text_clear(&f->name);
	if (!f->work->options.short_names || ts_frame_get(reader, frame)->kind == TS_FRAME_PYTHON) {
		ts_frame_append_function(reader, &f->name, frame);
		return;
	}
	ts_frame_append_function(reader, &full, frame);
	if (ts_text_reserve(&f->name, full.length + 1) && full.length)
		f->name.length = ts_short_name(full.data, full.length, f->name.data);
	f->name.failed |= full.failed;
}

static struct function *function_of(struct functions *f, int64_t frame)
{
	struct ts_string file = ts_frame_file(f->reader, frame);
	bool is_new = false;
	uint32_t index;

	find_name(f, f->reader, frame);
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
	if (function->idle_in_thread > thread->most_idle_samples) {
		thread->most_idle = index + 1;
		thread->most_idle_samples = function->idle_in_thread;
	}
}

static bool is_idle(const struct thread *thread)
{
	return thread->amount.samples && (__int128)thread->idle.samples * 100 >=
						 (__int128)thread->amount.samples * IDLE_PERCENT;
}

/*
 * Where threads wait would hide what they do. If all threads of the trace are idle, what they wait
 * for is the answer. `first`: the trace's first thread.
 */
static void hide_idle_time(struct functions *f, size_t first)
{
	bool any_busy = false;

	for (size_t i = first; i < f->thread_count; i++)
		any_busy |= f->threads[i].amount.samples && !is_idle(&f->threads[i]);
	f->counts_idle = f->with_idle || !any_busy;
	for (size_t i = first; i < f->thread_count; i++) {
		struct thread *thread = &f->threads[i];
		struct amount counted = f->counts_idle ? thread->amount
						       : without(&thread->amount, &thread->idle);

		thread->is_hidden = !f->counts_idle && is_idle(thread);
		f->hidden += thread->is_hidden;
		if (thread->is_hidden)
			continue;
		add(&f->all, &counted);
		f->hidden_times += thread->amount.samples - counted.samples;
	}
}

/* Innermost first: that function gets the self time. */
static int count_stack(struct functions *f, const struct tally *tally, size_t mark)
{
	struct amount counted = f->counts_idle ? tally->amount
					       : without(&tally->amount, &tally->idle);

	if (ts_stack_list_load(&f->path, f->reader, tally->stack))
		return no_memory(f);
	for (size_t i = f->path.count; i-- > 0;) {
		struct function *function = function_of(f, f->path.frames[i]);

		if (!function)
			return no_memory(f);
		if (i + 1 == f->path.count) {
			add(&function->self, &counted);
			add(&function->running, &tally->running);
			add(&function->running_in_thread, &tally->running);
			if (function->running_in_thread.weight > function->busiest.weight)
				function->busiest = function->running_in_thread;
			function->self_in_thread += tally->amount.samples;
			function->idle_in_thread += tally->idle.samples;
			note_most(&f->threads[tally->thread], function,
				  (size_t)(function - f->functions));
		}
		if (function->seen_in != mark)
			add(&function->total, &counted);
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

/* For the next thread. */
static void forget_thread(struct functions *f)
{
	for (uint32_t i = 0; i < ts_strmap_count(&f->names); i++) {
		f->functions[i].self_in_thread = f->functions[i].idle_in_thread = 0;
		f->functions[i].running_in_thread = (struct amount){ 0 };
	}
}

static int count_stacks(struct functions *f, size_t *mark)
{
	int rc = TS_OK;

	ts_sort(f->tallies, f->tally_count, sizeof(*f->tallies), compare_tallies);
	for (size_t i = 0; !rc && i < f->tally_count; i++) {
		if (i && f->tallies[i].thread != f->tallies[i - 1].thread)
			forget_thread(f);
		if (!f->threads[f->tallies[i].thread].is_hidden)
			rc = count_stack(f, &f->tallies[i], ++*mark);
	}
	forget_thread(f);
	return rc;
}

static int count_trace(struct functions *f, uint32_t trace, size_t *mark)
{
	size_t first_thread = f->thread_count;
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
	hide_idle_time(f, first_thread);
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

static int compare_running(const void *left, const void *right)
{
	const struct function *a = *(const struct function *const *)left;
	const struct function *b = *(const struct function *const *)right;

	if (a->running.weight != b->running.weight)
		return TS_COMPARE(b->running.weight, a->running.weight);
	return compare_functions(left, right);
}

static void put_function(struct ts_result_table *table, struct functions *f,
			 const struct function *function)
{
	struct ts_reader *reader = f->work->readers[function->trace];
	const struct ts_frame_row *frame = ts_frame_get(reader, function->frame);
	const char *kind = ts_enum_name("frame_kind", frame->kind);

	put_time(table, f, &function->self);
	put_share(table, f, &function->self);
	put_time(table, f, &function->running);
	put_time(table, f, &function->total);
	put_share(table, f, &function->total);
	ts_cell_integer(table, function->self.samples);
	ts_cell_integer(table, function->total.samples);
	find_name(f, reader, function->frame);
	ts_cell_text(table, ts_text_cstr(&f->name));
	ts_cell_text(table, ts_frame_file(reader, function->frame).data);
	ts_cell_text(table, kind ? kind : "unknown");
	put_time(table, f, &function->busiest);
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
	ts_sort(order, all, sizeof(*order), f->with_idle ? compare_functions : compare_running);
	table->shown_rows = shown_rows;
	table->details = "own_samples total_us own_us";
	for (size_t i = 0; i < all; i++)
		if (order[i]->total.samples)
			put_function(table, f, order[i]);
	return TS_OK;
}

/* The name of a function by its index plus 1; 0: none. */
static void put_name(struct ts_result_table *table, struct functions *f, uint64_t index)
{
	const struct function *function = index ? &f->functions[index - 1] : NULL;

	if (function)
		find_name(f, f->work->readers[function->trace], function->frame);
	ts_cell_text(table, function ? ts_text_cstr(&f->name) : NULL);
}

/* The tid of a main thread is its pid. */
static bool is_main(struct ts_reader *reader, int64_t thread)
{
	const struct ts_thread_row *row = ts_reader_entity(reader, TS_TABLE_THREAD, thread);
	const struct ts_process_row *process =
		ts_reader_entity(reader, TS_TABLE_PROCESS, row ? row->process : 0);

	return row && process && row->tid != TS_ABSENT && row->tid == process->pid;
}

static void put_thread(struct ts_result_table *table, struct functions *f,
		       const struct thread *thread)
{
	struct ts_reader *reader = f->work->readers[thread->trace];

	ts_cell_integer(table, thread->rank);
	ts_text_clear(&f->name);
	ts_thread_append_process(reader, &f->name, thread->id);
	ts_cell_text(table, ts_text_cstr(&f->name));
	ts_text_clear(&f->name);
	ts_thread_append_name(reader, &f->name, thread->id);
	ts_cell_text(table, ts_text_cstr(&f->name));
	ts_cell_integer(table, thread->amount.samples);
	put_time(table, f, &thread->amount);
	ts_cell_share(table, thread->idle.samples, thread->amount.samples);
	ts_cell_share(table, thread->waits, thread->amount.samples);
	put_name(table, f, thread->most);
	ts_cell_share(table, thread->most_samples, thread->amount.samples);
	put_name(table, f, thread->most_idle);
	ts_cell_bool(table, is_main(reader, thread->id));
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
	table->details = "samples time_us waits_for_gil_pct function_pct process";
	for (size_t i = 0; i < f->thread_count; i++)
		if (f->threads[i].amount.samples && !f->threads[i].is_hidden)
			put_thread(table, f, &f->threads[i]);
	if (f->hidden)
		ts_result_note(result, "idle threads, not counted: %lld (--idle counts them)",
			       (long long)f->hidden);
	if (f->hidden_times)
		ts_result_note(result,
			       "idle samples of busy threads, not counted: %lld (--idle "
			       "counts them)",
			       (long long)f->hidden_times);
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
	struct functions f = { .work = request->work,
			       .err = err,
			       .with_idle = request->options.idle,
			       .is_timed = true };
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

static const struct ts_option_spec options[] = {
	{
		.name = "idle",
		.type = TS_OPTION_SPEC_FLAG,
		.doc = "count idle threads and idle samples, too",
		.offset = offsetof(struct ts_analysis_options, idle),
	},
};

const struct ts_analysis ts_analysis_functions = {
	.name = "functions",
	.summary = "self and total time of sampled functions; thread states",
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.run = run,
};
