/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speedscope JSON of samples: frames once, and a "sampled" profile per thread. A profile has all
 * stacks before all weights, so samples go through a temporary file first, in one range per thread;
 * consecutive samples with the same stack are merged. Memory grows with the number of threads and
 * of different frames and stacks.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/ns.h"
#include "base/temporary.h"
#include "export/common/export_input.h"
#include "export/common/export_losses.h"
#include "export/speedscope/speedscope.h"

#define HELD_RUNS 64

/* Consecutive samples of a thread with the same stack. */
struct run {
	int64_t stack, leaf;
	int64_t weight;
};

struct thread {
	int64_t id;
	int64_t first_start; /* of its first sample: sort key of profiles */
	int64_t stack, leaf; /* of its newest run */
	bool has_run;
	uint64_t run_count;
	uint64_t first_run;      /* its range of the temporary file, in runs */
	uint64_t written;        /* of its runs */
	int64_t total;           /* of all weights */
	struct run *held;        /* the newest runs, the last of which still grows */
	unsigned int held_count; /* at most HELD_RUNS */
};

struct speedscope {
	struct ts_speedscope file;
	struct ts_samples samples;
	struct ts_sample_losses losses;
	int runs_fd;
	struct thread *threads;
	size_t thread_count, thread_capacity;
	struct ts_map thread_index; /* thread id to its index */
	struct ts_map stacks;       /* stack id: its frames have keys */
	struct ts_stack_list path;
};

static int no_memory(struct speedscope *x)
{
	return ts_error_set(x->file.err, TS_ENOMEM, "no memory");
}

/* ---- first walk: which threads and frames there are ---- */

static struct thread *thread_of(struct speedscope *x, int64_t id)
{
	bool is_new = false;
	uint64_t *slot = ts_map_insert(&x->thread_index, (uint64_t)id, &is_new);

	if (!slot || (is_new && ts_grow_array((void **)&x->threads, &x->thread_capacity,
					      x->thread_count + 1, sizeof(*x->threads))))
		return NULL;
	if (is_new) {
		*slot = x->thread_count;
		x->threads[x->thread_count++] = (struct thread){ .id = id };
	}
	return &x->threads[*slot];
}

static int note_frames(struct speedscope *x, int64_t stack)
{
	bool is_new = false;

	if (!ts_map_insert(&x->stacks, (uint64_t)stack, &is_new))
		return no_memory(x);
	if (!is_new)
		return TS_OK;
	if (ts_stack_list_load(&x->path, x->file.reader, stack))
		return no_memory(x);
	for (size_t i = 0; i < x->path.count; i++)
		if (ts_frame_key(&x->file.keys, x->path.frames[i]) == TS_STRMAP_NONE)
			return no_memory(x);
	return TS_OK;
}

static int survey(void *context, const struct ts_stack_sample *seen)
{
	struct speedscope *x = context;
	struct thread *thread;

	if (!seen->count) {
		ts_sample_losses_add(&x->losses, seen);
		return TS_OK;
	}
	thread = thread_of(x, seen->thread);
	if (!thread)
		return no_memory(x);
	if (!thread->has_run)
		thread->first_start = seen->start;
	if (thread->has_run && thread->stack == seen->stack && thread->leaf == seen->leaf)
		return TS_OK;
	thread->has_run = true;
	thread->stack = seen->stack;
	thread->leaf = seen->leaf;
	thread->run_count++;
	if (seen->leaf && ts_frame_key(&x->file.keys, seen->leaf) == TS_STRMAP_NONE)
		return no_memory(x);
	return note_frames(x, seen->stack);
}

/* ---- second walk: runs into the temporary file ---- */

static int assign_stretches(struct speedscope *x)
{
	uint64_t next = 0;

	for (size_t i = 0; i < x->thread_count; i++) {
		struct thread *thread = &x->threads[i];

		thread->first_run = next;
		next += thread->run_count;
		thread->has_run = false;
		thread->held = ts_alloc_array(HELD_RUNS, sizeof(*thread->held));
		if (!thread->held)
			return no_memory(x);
	}
	return TS_OK;
}

static int write_held(struct speedscope *x, struct thread *thread)
{
	int rc = ts_temporary_write(
		x->runs_fd, thread->held, thread->held_count * sizeof(*thread->held),
		(thread->first_run + thread->written) * sizeof(*thread->held), x->file.err);

	thread->written += thread->held_count;
	thread->held_count = 0;
	return rc;
}

static int store(void *context, const struct ts_stack_sample *seen)
{
	struct speedscope *x = context;
	struct thread *thread;
	struct run *last;
	int rc;

	if (!seen->count)
		return TS_OK;
	/* Exists: both walks see the same samples. */
	thread = thread_of(x, seen->thread);
	if (!thread)
		return no_memory(x);
	thread->total = ts_ns_add(thread->total, seen->weight);
	if (thread->has_run && thread->stack == seen->stack && thread->leaf == seen->leaf) {
		last = &thread->held[thread->held_count - 1];
		last->weight = ts_ns_add(last->weight, seen->weight);
		return TS_OK;
	}
	rc = thread->held_count == HELD_RUNS ? write_held(x, thread) : TS_OK;
	thread->has_run = true;
	thread->stack = seen->stack;
	thread->leaf = seen->leaf;
	thread->held[thread->held_count++] = (struct run){ seen->stack, seen->leaf, seen->weight };
	return rc;
}

static int store_rest(struct speedscope *x)
{
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < x->thread_count; i++)
		rc = write_held(x, &x->threads[i]);
	return rc;
}

/* ---- the file ---- */

static int put_stack(struct speedscope *x, const struct run *run)
{
	if (ts_stack_list_load(&x->path, x->file.reader, run->stack))
		return no_memory(x);
	ts_text_append_char(&x->file.out, '[');
	for (size_t i = 0; i < x->path.count; i++) {
		if (i)
			ts_text_append_char(&x->file.out, ',');
		ts_text_append_uint(&x->file.out, ts_frame_key(&x->file.keys, x->path.frames[i]));
	}
	if (run->leaf) {
		ts_text_append_str(&x->file.out, x->path.count ? "," : "");
		ts_text_append_uint(&x->file.out, ts_frame_key(&x->file.keys, run->leaf));
	}
	ts_text_append_char(&x->file.out, ']');
	return TS_OK;
}

static int put_weight(struct speedscope *x, const struct run *run)
{
	ts_text_append_int(&x->file.out, run->weight);
	return TS_OK;
}

/* The two lists of a profile: "[", one item per run, "]". */
static int put_runs(struct speedscope *x, const struct thread *thread,
		    int (*put)(struct speedscope *x, const struct run *run))
{
	struct run runs[HELD_RUNS];
	int rc = TS_OK;

	ts_text_append_char(&x->file.out, '[');
	for (uint64_t i = 0; !rc && i < thread->run_count; i++) {
		if (i % HELD_RUNS == 0)
			rc = ts_temporary_read(
				x->runs_fd, runs,
				(size_t)TS_MIN(thread->run_count - i, HELD_RUNS) * sizeof(*runs),
				(thread->first_run + i) * sizeof(*runs), x->file.err);
		if (i)
			ts_text_append_char(&x->file.out, ',');
		if (!rc)
			rc = put(x, &runs[i % HELD_RUNS]);
		if (!rc)
			rc = ts_speedscope_flush(&x->file, TS_SPEEDSCOPE_FLUSH_BYTES);
	}
	ts_text_append_char(&x->file.out, ']');
	return rc;
}

static int put_profile(struct speedscope *x, const struct thread *thread)
{
	int rc;

	ts_text_append_str(&x->file.out, "{\"type\":\"sampled\",\"name\":");
	ts_speedscope_put_name(&x->file, thread->id);
	ts_text_printf(&x->file.out, ",\"unit\":\"%s\"", x->samples.unit);
	ts_text_append_str(&x->file.out, ",\"startValue\":0,\"endValue\":");
	ts_text_append_int(&x->file.out, thread->total);
	ts_text_append_str(&x->file.out, ",\n\"samples\":");
	rc = put_runs(x, thread, put_stack);
	ts_text_append_str(&x->file.out, ",\n\"weights\":");
	if (!rc)
		rc = put_runs(x, thread, put_weight);
	ts_text_append_char(&x->file.out, '}');
	return rc;
}

static int compare_threads(const void *left, const void *right)
{
	const struct thread *a = left, *b = right;

	return a->first_start != b->first_start ? TS_COMPARE(a->first_start, b->first_start)
						: TS_COMPARE(a->id, b->id);
}

static int put_file(struct speedscope *x)
{
	int rc;

	ts_speedscope_put_head(&x->file);
	rc = ts_speedscope_put_frames(&x->file);
	ts_text_append_str(&x->file.out, ",\n");
	ts_sort(x->threads, x->thread_count, sizeof(*x->threads), compare_threads);
	ts_text_append_str(&x->file.out, "\"profiles\":[");
	for (size_t i = 0; !rc && i < x->thread_count; i++) {
		ts_text_append_str(&x->file.out, i ? ",\n" : "\n");
		rc = put_profile(x, &x->threads[i]);
	}
	ts_text_append_str(&x->file.out, "]}\n");
	return rc ? rc : ts_speedscope_flush(&x->file, 0);
}

static int run(struct speedscope *x)
{
	int rc = ts_samples_walk(&x->samples, survey, x);

	if (!rc)
		rc = ts_temporary_open(&x->runs_fd, x->file.err);
	if (!rc)
		rc = assign_stretches(x);
	if (!rc)
		rc = ts_samples_walk(&x->samples, store, x);
	if (!rc)
		rc = store_rest(x);
	return rc ? rc : put_file(x);
}

static void release(struct speedscope *x)
{
	ts_samples_release(&x->samples);
	if (x->runs_fd >= 0)
		close(x->runs_fd);
	for (size_t i = 0; i < x->thread_count; i++)
		free(x->threads[i].held);
	free(x->threads);
	ts_map_release(&x->thread_index);
	ts_map_release(&x->stacks);
	ts_stack_list_release(&x->path);
	ts_speedscope_release(&x->file);
}

int ts_export_speedscope(struct ts_reader *reader, int fd, const struct ts_export_options *options,
			 struct ts_error *err)
{
	struct ts_error local_err = { 0 };
	struct speedscope x = { .runs_fd = -1 };
	int rc;

	if (ts_export_flags(options) & TS_EXPORT_SPANS)
		return ts_speedscope_spans(reader, fd, options, err ? err : &local_err);
	ts_speedscope_init(&x.file, reader, fd, options, err ? err : &local_err);
	rc = ts_export_samples(&x.samples, reader, options, 2, x.file.err);
	if (!rc)
		rc = run(&x);
	if (!rc)
		ts_left_out_samples(options, &x.samples, &x.losses);
	release(&x);
	return rc;
}
