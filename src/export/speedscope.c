/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speedscope's JSON: frames once, and a "sampled" profile a thread. A profile has all its stacks ahead of all its weights, so samples
 * go through a temporary file first, each thread's in a stretch of its own; neighbours with the same stack become one. Memory grows
 * with the number of threads, and of different frames and stacks. Must not know how samples are read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/ns.h"
#include "base/text.h"
#include "export/export.h"
#include "export/samples.h"
#include "export/stacks.h"

#define FLUSH_BYTES ((size_t)1 << 20)
#define HELD_RUNS 64

/* Samples of a thread, one after another, that saw the same stack. */
struct run {
	int64_t stack, leaf;
	int64_t weight;
};

struct thread {
	int64_t id;
	int64_t first_start; /* of its first sample: the order of profiles */
	int64_t stack, leaf; /* of its newest run */
	bool has_run;
	uint64_t run_count;
	uint64_t first_run;      /* its stretch of the temporary file, in runs */
	uint64_t written;        /* of its runs */
	int64_t total;           /* of all weights */
	struct run *held;        /* the newest runs, the last of which still grows */
	unsigned int held_count; /* at most HELD_RUNS */
};

struct speedscope {
	struct ts_reader *reader;
	struct ts_samples samples;
	struct ts_error *err;
	int fd;
	int runs_fd;
	struct thread *threads;
	size_t thread_count, thread_capacity;
	struct ts_map places; /* thread id to its index */
	struct ts_map stacks; /* stack id: its frames have keys */
	struct ts_frame_keys keys;
	struct ts_stack_path path;
	struct ts_text out;
};

static int no_memory(struct speedscope *x)
{
	return ts_error_set(x->err, TS_ENOMEM, "no memory");
}

static int flush(struct speedscope *x, size_t unless_below)
{
	int rc;

	if (ts_text_status(&x->out))
		return no_memory(x);
	if (x->out.length < unless_below)
		return TS_OK;
	rc = ts_write_all(x->fd, x->out.data, x->out.length, x->err);
	ts_text_clear(&x->out);
	return rc;
}

/* ---- first walk: which threads and frames there are ---- */

static struct thread *thread_of(struct speedscope *x, int64_t id)
{
	bool is_new = false;
	uint64_t *place = ts_map_insert(&x->places, (uint64_t)id, &is_new);

	if (!place || (is_new && ts_grow_array((void **)&x->threads, &x->thread_capacity,
					       x->thread_count + 1, sizeof(*x->threads))))
		return NULL;
	if (is_new) {
		*place = x->thread_count;
		x->threads[x->thread_count++] = (struct thread){ .id = id };
	}
	return &x->threads[*place];
}

static int note_frames(struct speedscope *x, int64_t stack)
{
	bool is_new = false;

	if (!ts_map_insert(&x->stacks, (uint64_t)stack, &is_new))
		return no_memory(x);
	if (!is_new)
		return TS_OK;
	if (ts_stack_path(&x->path, x->reader, stack))
		return no_memory(x);
	for (size_t i = 0; i < x->path.count; i++)
		if (ts_frame_key(&x->keys, x->path.frames[i]) == TS_STRMAP_NONE)
			return no_memory(x);
	return TS_OK;
}

static int survey(void *context, const struct ts_seen *seen)
{
	struct speedscope *x = context;
	struct thread *thread;

	if (!seen->count)
		return TS_OK;
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
	if (seen->leaf && ts_frame_key(&x->keys, seen->leaf) == TS_STRMAP_NONE)
		return no_memory(x);
	return note_frames(x, seen->stack);
}

/* ---- second walk: runs into the temporary file ---- */

static int open_runs(struct speedscope *x)
{
	const char *folder = getenv("TMPDIR");
	TS_SCOPED(ts_text) path = { 0 };

	ts_text_printf(&path, "%s/tracesmith-XXXXXX", folder && *folder ? folder : "/tmp");
	if (ts_text_status(&path) || !*ts_text_cstr(&path))
		return no_memory(x);
	x->runs_fd = mkostemp(path.data, O_CLOEXEC);
	if (x->runs_fd < 0)
		return ts_error_errno(x->err, errno,
				      "cannot create a temporary file '%s'; TMPDIR says where",
				      ts_text_cstr(&path));
	unlink(path.data);
	return TS_OK;
}

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
	const char *from = (const char *)thread->held;
	size_t left = thread->held_count * sizeof(*thread->held);
	off_t at = (off_t)((thread->first_run + thread->written) * sizeof(*thread->held));

	while (left) {
		ssize_t done = pwrite(x->runs_fd, from, left, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return ts_error_errno(x->err, done ? errno : ENOSPC,
					      "cannot write a temporary file; TMPDIR says where");
		from += done;
		at += done;
		left -= (size_t)done;
	}
	thread->written += thread->held_count;
	thread->held_count = 0;
	return TS_OK;
}

static int store(void *context, const struct ts_seen *seen)
{
	struct speedscope *x = context;
	struct thread *thread;
	struct run *last;
	int rc;

	if (!seen->count)
		return TS_OK;
	/* It is there: both walks see the same. */
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

static void put_frame(struct speedscope *x, int64_t id)
{
	struct ts_string file = ts_stack_file(x->reader, id);
	int64_t line = ts_stack_line(x->reader, id);
	TS_SCOPED(ts_text) name = { 0 };

	ts_stack_append_function(x->reader, &name, id);
	ts_text_append_str(&x->out, "{\"name\":");
	ts_text_append_json(&x->out, name.data, name.length);
	if (file.length) {
		ts_text_append_str(&x->out, ",\"file\":");
		ts_text_append_json(&x->out, file.data, file.length);
	}
	if (x->keys.with_lines && line != TS_ABSENT) {
		ts_text_append_str(&x->out, ",\"line\":");
		ts_text_append_int(&x->out, line);
	}
	ts_text_append_char(&x->out, '}');
}

static int put_frames(struct speedscope *x)
{
	int rc = TS_OK;

	ts_text_append_str(&x->out, "\"shared\":{\"frames\":[");
	for (uint32_t i = 0; !rc && i < ts_frame_keys_count(&x->keys); i++) {
		ts_text_append_str(&x->out, i ? ",\n" : "\n");
		put_frame(x, x->keys.frames[i]);
		rc = flush(x, FLUSH_BYTES);
	}
	ts_text_append_str(&x->out, "]},\n");
	return rc;
}

static int put_stack(struct speedscope *x, const struct run *run)
{
	if (ts_stack_path(&x->path, x->reader, run->stack))
		return no_memory(x);
	ts_text_append_char(&x->out, '[');
	for (size_t i = 0; i < x->path.count; i++) {
		if (i)
			ts_text_append_char(&x->out, ',');
		ts_text_append_uint(&x->out, ts_frame_key(&x->keys, x->path.frames[i]));
	}
	if (run->leaf) {
		ts_text_append_str(&x->out, x->path.count ? "," : "");
		ts_text_append_uint(&x->out, ts_frame_key(&x->keys, run->leaf));
	}
	ts_text_append_char(&x->out, ']');
	return TS_OK;
}

static int put_weight(struct speedscope *x, const struct run *run)
{
	ts_text_append_int(&x->out, run->weight);
	return TS_OK;
}

static int read_runs(struct speedscope *x, uint64_t first, struct run *runs, size_t count)
{
	char *to = (char *)runs;
	size_t left = count * sizeof(*runs);
	off_t at = (off_t)(first * sizeof(*runs));

	while (left) {
		ssize_t done = pread(x->runs_fd, to, left, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return ts_error_errno(x->err, done ? errno : EIO,
					      "cannot read a temporary file; TMPDIR says where");
		to += done;
		at += done;
		left -= (size_t)done;
	}
	return TS_OK;
}

/* Both lists of a profile: "[", an item a run, "]". */
static int put_runs(struct speedscope *x, const struct thread *thread,
		    int (*put)(struct speedscope *x, const struct run *run))
{
	struct run runs[HELD_RUNS];
	int rc = TS_OK;

	ts_text_append_char(&x->out, '[');
	for (uint64_t i = 0; !rc && i < thread->run_count; i++) {
		if (i % HELD_RUNS == 0)
			rc = read_runs(x, thread->first_run + i, runs,
				       (size_t)TS_MIN(thread->run_count - i, HELD_RUNS));
		if (i)
			ts_text_append_char(&x->out, ',');
		if (!rc)
			rc = put(x, &runs[i % HELD_RUNS]);
		if (!rc)
			rc = flush(x, FLUSH_BYTES);
	}
	ts_text_append_char(&x->out, ']');
	return rc;
}

static void put_profile_name(struct speedscope *x, int64_t id)
{
	const struct ts_thread_row *thread = ts_reader_entity(x->reader, TS_TABLE_THREAD, id);
	const struct ts_process_row *process = NULL;
	TS_SCOPED(ts_text) name = { 0 };

	if (thread)
		process = ts_reader_entity(x->reader, TS_TABLE_PROCESS, thread->process);
	ts_text_append_str(&name, "process ");
	if (process && process->pid != TS_ABSENT)
		ts_text_append_int(&name, process->pid);
	else
		ts_text_append_str(&name,
				   process && process->pid_text
					   ? ts_reader_string(x->reader, process->pid_text).data
					   : "unknown");
	ts_text_append_char(&name, ' ');
	if (thread && thread->name)
		ts_text_append_str(&name, "thread ");
	ts_stack_append_thread(x->reader, &name, id);
	ts_text_append_json(&x->out, name.data, name.length);
}

static int put_profile(struct speedscope *x, const struct thread *thread)
{
	int rc;

	ts_text_append_str(&x->out, "{\"type\":\"sampled\",\"name\":");
	put_profile_name(x, thread->id);
	ts_text_append_str(&x->out, x->samples.are_timed ? ",\"unit\":\"nanoseconds\""
							 : ",\"unit\":\"none\"");
	ts_text_append_str(&x->out, ",\"startValue\":0,\"endValue\":");
	ts_text_append_int(&x->out, thread->total);
	ts_text_append_str(&x->out, ",\n\"samples\":");
	rc = put_runs(x, thread, put_stack);
	ts_text_append_str(&x->out, ",\n\"weights\":");
	if (!rc)
		rc = put_runs(x, thread, put_weight);
	ts_text_append_char(&x->out, '}');
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

	ts_text_append_str(&x->out,
			   "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
			   "\"exporter\":\"tracesmith\",\n");
	rc = put_frames(x);
	ts_sort(x->threads, x->thread_count, sizeof(*x->threads), compare_threads);
	ts_text_append_str(&x->out, "\"profiles\":[");
	for (size_t i = 0; !rc && i < x->thread_count; i++) {
		ts_text_append_str(&x->out, i ? ",\n" : "\n");
		rc = put_profile(x, &x->threads[i]);
	}
	ts_text_append_str(&x->out, "]}\n");
	return rc ? rc : flush(x, 0);
}

static int run(struct speedscope *x)
{
	int rc = ts_samples_walk(&x->samples, survey, x);

	if (!rc)
		rc = open_runs(x);
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
	ts_map_release(&x->places);
	ts_map_release(&x->stacks);
	ts_frame_keys_release(&x->keys);
	ts_stack_path_release(&x->path);
	ts_text_release(&x->out);
}

int ts_export_speedscope(struct ts_reader *reader, int fd, const struct ts_export_options *options,
			 struct ts_error *err)
{
	struct ts_error own = { 0 };
	struct speedscope x = {
		.reader = reader, .fd = fd, .runs_fd = -1, .err = err ? err : &own
	};
	int rc;

	ts_frame_keys_init(&x.keys, reader, !(ts_export_flags(options) & TS_EXPORT_NO_LINES));
	rc = ts_samples_open(&x.samples, reader, options, 2, x.err);
	if (!rc)
		rc = run(&x);
	release(&x);
	return rc;
}
