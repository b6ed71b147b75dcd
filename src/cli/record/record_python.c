/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python stacks of a recording: parses the options, and stores samples as events in the recorder's
 * own area.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/emit.h>
#include <tracesmith/sample.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "live/config.h"

/* ---- options ---- */

int ts_record_python_interval(const char *text, int64_t *ret_ns)
{
	const struct ts_config_key *key;
	char assignment[64];
	struct ts_error err;

	*ret_ns = TS_PYTHON_INTERVAL_NS;
	if (!text)
		return TS_EXIT_DONE;
	snprintf(assignment, sizeof(assignment), "python_interval=%.40s", text);
	if (ts_config_parse(assignment, &key, ret_ns, &err)) {
		ts_error_prefix(&err, "option '--python-interval'");
		return ts_report_usage("%s", err.message);
	}
	if (*ret_ns < TS_PYTHON_MIN_INTERVAL_NS)
		return ts_report_usage(
			"option '--python-interval': '%s' is too short; the minimum is 0.1ms",
			text);
	return TS_EXIT_DONE;
}

static int add_function(struct ts_record_python *python, const char *name)
{
	size_t count = 0;

	while (python->functions[count])
		count++;
	if (!*name)
		return ts_report_usage("option '--python-on': 'function:' needs a name");
	if (count == TS_RECORD_FUNCTIONS)
		return ts_report_usage("option '--python-on': more than %d functions",
				       TS_RECORD_FUNCTIONS);
	python->functions[count] = name;
	python->options.functions = python->functions;
	python->samples = true;
	return TS_EXIT_DONE;
}

int ts_record_python_on(struct ts_record *record, const char *condition)
{
	struct ts_record_python *python = &record->python;
	size_t used = strlen(python->stacks);

	if (!strncmp(condition, "function:", strlen("function:")))
		return add_function(python, condition + strlen("function:"));
	if (strcmp(condition, "marks") != 0 && strcmp(condition, "calls") != 0)
		return ts_report_usage(
			"option '--python-on': '%s' is neither marks nor calls nor function:NAME",
			condition);
	if (!strstr(python->stacks, condition))
		snprintf(python->stacks + used, sizeof(python->stacks) - used, "%s%s",
			 used ? "," : "", condition);
	return TS_EXIT_DONE;
}

/* ---- functions ---- */

/* The name did not fit: do not try again. */
#define CODE_NONE UINT32_MAX

/* Frames of a thread as last stored, outermost first. */
struct thread_frames {
	uint64_t *words;
	size_t capacity;
};

struct ts_record_stacks {
	const struct ts_record *record;
	struct ts_python_consumer consumer;
	uint64_t self_start;
	/* Names already in the area; processes share functions. */
	struct ts_strmap names;
	uint32_t *codes; /* by name id */
	size_t code_capacity;
	struct ts_text key;
	struct thread_frames *threads; /* by slot */
	size_t thread_capacity;
	/* A point at which both clocks were read. */
	uint64_t origin_ticks;
	int64_t origin_ns;
};

static uint32_t give_code(struct ts_record_stacks *stacks, enum ts_code_kind kind, const char *name,
			  const char *file, uint32_t first_line)
{
	bool is_new = false;
	uint32_t id, code;

	ts_text_clear(&stacks->key);
	ts_text_printf(&stacks->key, "%d:%u:%s", (int)kind, first_line, name);
	ts_text_append(&stacks->key, file, strlen(file) + 1);
	id = ts_strmap_intern(&stacks->names, stacks->key.data, stacks->key.length, &is_new);
	if (id == TS_STRMAP_NONE || ts_grow_array((void **)&stacks->codes, &stacks->code_capacity,
						  (size_t)id + 1, sizeof(*stacks->codes)))
		return CODE_NONE;
	if (is_new) {
		code = ts_code(kind, name, file, first_line);
		stacks->codes[id] = code ? code : CODE_NONE;
	}
	return stacks->codes[id];
}

static uint64_t frame_word(struct ts_record_stacks *stacks, const struct ts_sample_frame *frame)
{
	uint32_t *tag = frame->python ? &frame->python->tag : &frame->native->tag;

	if (!*tag)
		*tag = frame->python
			       ? give_code(stacks, TS_CODE_PYTHON, frame->python->name,
					   frame->python->file, (uint32_t)frame->python->first_line)
			       : give_code(stacks, TS_CODE_NATIVE, frame->native->name,
					   frame->native->module, 0);
	return ts_code_frame(*tag == CODE_NONE ? 0 : *tag,
			     frame->python ? (uint32_t)frame->line : (uint32_t)frame->pc);
}

/* ---- stacks ---- */

static struct thread_frames *frames_of(struct ts_record_stacks *stacks, uint32_t slot)
{
	size_t known = stacks->thread_capacity;

	if (ts_grow_array((void **)&stacks->threads, &stacks->thread_capacity, (size_t)slot + 1,
			  sizeof(*stacks->threads)))
		return NULL;
	if (stacks->thread_capacity > known)
		memset(stacks->threads + known, 0,
		       (stacks->thread_capacity - known) * sizeof(*stacks->threads));
	return &stacks->threads[slot];
}

/* Builds the frames of a stack; unchanged outer frames are kept. */
static const uint64_t *put_together(struct ts_record_stacks *stacks,
				    const struct ts_python_sample *sample)
{
	struct thread_frames *frames = frames_of(stacks, sample->slot);

	if (!frames || ts_grow_array((void **)&frames->words, &frames->capacity, sample->count + 1,
				     sizeof(*frames->words)))
		return NULL;
	for (uint32_t i = sample->same; i < sample->count; i++)
		frames->words[i] = frame_word(stacks, &sample->frames[sample->count - 1 - i]);
	return frames->words;
}

static uint32_t state_of(const struct ts_python_sample *sample)
{
	uint32_t seen = sample->thread->state, state = 0;

	state |= seen & TS_PYTHON_RUNS ? TS_SAMPLE_RUNNING : 0;
	state |= seen & TS_PYTHON_HAS_GIL ? TS_SAMPLE_HAS_LOCK : 0;
	state |= seen & TS_PYTHON_WAITS_GIL ? TS_SAMPLE_WAITS_LOCK : 0;
	state |= seen & TS_PYTHON_COLLECTS ? TS_SAMPLE_COLLECTING : 0;
	return state || sample->is_state_known ? state | TS_SAMPLE_STATE_KNOWN : 0;
}

/* Converts a time of the system clock to ticks of the area's clock. */
static uint64_t ticks_at(const struct ts_record_stacks *stacks, int64_t time_ns)
{
	uint64_t ticks = ts_now();
	int64_t now_ns = ts_clock_monotonic_ns();
	double rate = (double)(ticks - stacks->origin_ticks) /
		      (double)TS_MAX(now_ns - stacks->origin_ns, 1);

	return ticks - (uint64_t)((double)TS_MAX(now_ns - time_ns, 0) * rate);
}

static void emit_stack(const struct ts_python_sample *sample, const struct ts_sample *out)
{
	static const struct ts_emit_field task_field[] = { { "task", TS_EMIT_STRING } };
	static struct ts_emit_site plain = TS_SAMPLE_SITE("python", "python");
	static struct ts_emit_site of_task = {
		0, "python", "python", task_field, 0, 9, 32, 0, 1, 1
	};
	struct ts_emit_site other = TS_SAMPLE_SITE("python", "python");
	struct ts_emit_site *site = &plain;
	struct ts_emit_arg args[3];
	unsigned int count = 0;

	if (sample->thread->task && *sample->thread->task) {
		args[count++] = (struct ts_emit_arg){ "task",
						      TS_EMIT_STRING,
						      { .string = sample->thread->task } };
		site = &of_task;
	}
	if (sample->locals)
		args[count++] = (struct ts_emit_arg){ "locals",
						      TS_EMIT_STRING,
						      { .string = sample->locals } };
	if (sample->trigger)
		args[count++] = (struct ts_emit_arg){ "trigger",
						      TS_EMIT_STRING,
						      { .string = sample->trigger } };
	/* A site used once: nothing is cached. */
	if (sample->locals || sample->trigger) {
		other.name = sample->trigger ? sample->trigger : other.name;
		site = &other;
	}
	ts_sample(site, out, args, count);
}

static void on_sample(void *context, const struct ts_python_sample *sample)
{
	struct ts_record_stacks *stacks = context;
	const uint64_t *frames = put_together(stacks, sample);
	const struct ts_sample out = {
		.size = sizeof(out),
		.pid = sample->pid,
		.start_time = sample->start_time,
		.tid = (uint32_t)sample->tid,
		.state = state_of(sample),
		.time = ticks_at(stacks, sample->time_ns),
		.weight_ns = sample->weight_ns,
		.frames = frames,
		.count = frames ? sample->count : 0,
	};

	emit_stack(sample, &out);
}

/* ---- other output of the sampler ---- */

static void on_thread(void *context, pid_t pid, uint64_t start_time, pid_t tid, const char *name)
{
	(void)context;
	if (*name)
		ts_sample_thread(pid, start_time, (uint32_t)tid, name);
}

static void on_counter(void *context, pid_t pid, uint64_t start_time, const char *name,
		       const struct ts_python_counter *values, unsigned int count)
{
	const struct ts_record_stacks *stacks = context;
	const struct ts_metrics_subject subject = {
		.kind = TS_METRICS_PROCESS,
		.pid = pid ? pid : getpid(),
		.start_time = pid ? start_time : stacks->self_start,
	};
	struct ts_emit_arg args[8];

	count = TS_MIN(count, (unsigned int)TS_ARRAY_SIZE(args));
	for (unsigned int i = 0; i < count; i++)
		args[i] = (struct ts_emit_arg){ values[i].series,
						TS_EMIT_DOUBLE,
						{ .real = values[i].value } };
	ts_tracer_counter_of(ts_tracer_process(), &subject, name, "python", args, count);
}

/* Also stored in the trace, so that its readers know why something is missing. */
static void on_message(void *context, pid_t pid, const char *text)
{
	const struct ts_record_stacks *stacks = context;
	const struct ts_emit_arg args[] = {
		{ "pid", TS_EMIT_INT, { .integer = pid } },
		{ "message", TS_EMIT_STRING, { .string = text } },
	};

	ts_tracer_instant(ts_tracer_process(), "python", "tracesmith", TS_TRACK_THREAD, args, 2);
	if (!stacks->record->quiet)
		ts_report_event("%s", text);
}

/* ---- start and end ---- */

static struct ts_record_stacks *new_stacks(const struct ts_record *record)
{
	struct ts_record_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->record = record;
	stacks->self_start = ts_process_start_time(getpid());
	ts_strmap_init(&stacks->names, 0);
	stacks->origin_ticks = ts_now();
	stacks->origin_ns = ts_clock_monotonic_ns();
	stacks->consumer = (struct ts_python_consumer){ .context = stacks,
							.sample = on_sample,
							.thread = on_thread,
							.counter = record->python.no_counters
									   ? NULL
									   : on_counter,
							.message = on_message };
	return stacks;
}

void ts_record_sample_python(struct ts_record *record, struct ts_recorder *recorder)
{
	struct ts_record_python *python = &record->python;
	struct ts_error err;

	if (!python->samples || !ts_record_host(record, recorder, "Python stacks"))
		return;
	python->options.tasks = true;
	python->stacks_out = new_stacks(record);
	if (!python->stacks_out)
		ts_report_warning("Python stacks are not recorded: no memory");
	else if (ts_recorder_sample_python(recorder, python->interval_ns, &python->options,
					   &python->stacks_out->consumer, &err))
		ts_report_warning("Python stacks are not recorded: %s", err.message);
}

void ts_record_python_release(struct ts_record *record)
{
	struct ts_record_stacks *stacks = TS_STEAL(record->python.stacks_out);

	if (!stacks)
		return;
	for (size_t i = 0; i < stacks->thread_capacity; i++)
		free(stacks->threads[i].words);
	free(stacks->threads);
	free(stacks->codes);
	ts_strmap_release(&stacks->names);
	ts_text_release(&stacks->key);
	free(stacks);
}
