/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the requested commands: by queue, by range, by step, by kernel. */
#include <inttypes.h>
#include <string.h>

#include "base/ns.h"
#include "base/text.h"
#include "replay/plan/plan.h"
#include "replay/stream/stream_internal.h"
#include "state/work/work.h"

struct part {
	const struct ts_replay_options *options;
	const struct ts_replay_stream *stream;
	uint64_t from, to;      /* sequence numbers, exclusive of to */
	int64_t from_ns, to_ns; /* trace time */
	bool *queues;           /* by object; NULL: all */
};

/* ---- positions ---- */

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/* A sequence number, or a time with a unit after the first command. */
static int parse_position(const struct part *part, const char *option, const char *text,
			  uint64_t *sequence, int64_t *time, struct ts_error *err)
{
	int64_t value;

	if (!text)
		return TS_OK;
	if (is_number(text) && !ts_parse_int64(text, strlen(text), &value)) {
		*sequence = (uint64_t)value;
		return TS_OK;
	}
	if (is_number(text) || ts_parse_duration_ns(text, strlen(text), &value))
		return ts_error_set(
			err, TS_EINVAL,
			"'--%s %s' is neither a command number nor a time after the first command such as 1.5ms",
			option, text);
	*time = ts_ns_add(part->stream->commands[0].start_ns, value);
	return TS_OK;
}

/* ---- steps ---- */

static int no_such_step(const struct part *part, const struct ts_work *work, struct ts_error *err)
{
	int64_t first = part->options->first_step, last = INT64_MIN, least = INT64_MAX;

	for (uint32_t i = 0; i < work->step_count; i++) {
		if (work->steps[i].end <= part->stream->open_ns)
			continue;
		least = TS_MIN(least, work->steps[i].number);
		last = TS_MAX(last, work->steps[i].number);
	}
	if (least > last)
		return ts_error_set(
			err, TS_EINVAL,
			"'--step': the recording has no steps; a program announces them "
			"with TS_STEP() or torch.profiler");
	if (part->options->last_step != first)
		return ts_error_set(err, TS_EINVAL,
				    "there are no steps %" PRId64 " to %" PRId64
				    "; the window has %" PRId64 " to %" PRId64,
				    first, part->options->last_step, least, last);
	return ts_error_set(err, TS_EINVAL,
			    "there is no step %" PRId64 "; the window has %" PRId64 " to %" PRId64,
			    first, least, last);
}

/* The time from the mark of the first step to that of the one after the last. */
static int find_steps(struct part *part, const struct ts_work *work, struct ts_error *err)
{
	const struct ts_replay_options *options = part->options;
	int64_t from = INT64_MAX, to = INT64_MIN;
	bool has_first = false, has_last = false;

	for (uint32_t i = 0; i < work->step_count; i++) {
		const struct ts_work_step *step = &work->steps[i];

		if (step->number < options->first_step || step->number > options->last_step)
			continue;
		has_first |= step->number == options->first_step;
		has_last |= step->number == options->last_step;
		from = TS_MIN(from, step->start);
		to = TS_MAX(to, step->end);
	}
	if (!has_first || !has_last)
		return no_such_step(part, work, err);
	part->from_ns = TS_MAX(part->from_ns, from);
	part->to_ns = TS_MIN(part->to_ns, to);
	return TS_OK;
}

static int parse_steps(struct part *part, struct ts_error *err)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	TS_AUTO(ts_work) work = NULL;
	int rc;

	if (!part->options->has_steps)
		return TS_OK;
	options.all = true;
	rc = ts_work_new(&work, &options, err);
	if (!rc)
		rc = ts_work_add(work, part->stream->reader, err);
	if (!rc)
		rc = ts_work_finish(work, err);
	return rc ? rc : find_steps(part, work, err);
}

/* ---- queues ---- */

static int compare_numbers(const void *a, const void *b)
{
	return TS_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int no_such_queue(const struct ts_replay_stream *stream, const char *token, size_t length,
			 struct ts_error *err)
{
	TS_AUTO_FREE uint64_t *numbers =
		ts_alloc_array(stream->object_count + 1u, sizeof(*numbers));
	TS_SCOPED(ts_text) available = { 0 };
	size_t count = 0;

	for (uint32_t i = 0; numbers && i < stream->object_count; i++)
		if (stream->objects[i].kind == TS_OBJECT_STREAM)
			numbers[count++] = stream->objects[i].index;
	if (count)
		ts_sort(numbers, count, sizeof(*numbers), compare_numbers);
	for (size_t i = 0; i < count && available.length < 200; i++)
		if (!i || numbers[i] != numbers[i - 1])
			ts_text_printf(&available, "%s%" PRIu64, available.length ? ", " : "",
				       numbers[i]);
	return ts_error_set(err, TS_EINVAL, "there is no stream %.*s; streams are %s", (int)length,
			    token, available.length ? ts_text_cstr(&available) : "none");
}

/* By the stream's number in gpu_op, which all of the tool shows. */
static int parse_queue(struct part *part, const char *token, size_t length, struct ts_error *err)
{
	const struct ts_replay_stream *stream = part->stream;
	bool is_found = false;
	int64_t number;

	if (ts_parse_int64(token, length, &number) || number < 0)
		return no_such_queue(stream, token, length, err);
	for (uint32_t i = 0; i < stream->object_count; i++) {
		if (stream->objects[i].kind != TS_OBJECT_STREAM ||
		    stream->objects[i].index != (uint64_t)number)
			continue;
		part->queues[i] = true;
		is_found = true;
	}
	return is_found ? TS_OK : no_such_queue(stream, token, length, err);
}

static int parse_queues(struct part *part, struct ts_error *err)
{
	const char *token = part->options->streams;
	int rc = TS_OK;

	if (!token)
		return TS_OK;
	part->queues = calloc(part->stream->object_count + 1u, sizeof(*part->queues));
	if (!part->queues)
		return ts_replay_no_memory(err);
	while (!rc) {
		size_t length = strcspn(token, ",");

		rc = parse_queue(part, token, length, err);
		if (!token[length])
			break;
		token += length + 1;
	}
	return rc;
}

/* ---- commands ---- */

static bool matches(const char *glob, const char *name)
{
	return ts_glob_match(glob, name, strlen(name));
}

/* By its name, demangled or not, or as messages show it. */
static bool is_kernel(const struct part *part, const struct ts_replay_command_info *command)
{
	const char *kernel = part->options->kernel;
	const struct ts_replay_object_info *function;

	if (command->kind != TS_COMMAND_LAUNCH || command->object == TS_REPLAY_NONE)
		return false;
	function = &part->stream->objects[command->object];
	return matches(kernel, function->name) || matches(kernel, function->demangled) ||
	       matches(kernel, function->shown);
}

static bool is_requested(const struct part *part, const struct ts_replay_command_info *command)
{
	const char *kernel = part->options->kernel;

	if (command->sequence < part->from || command->sequence >= part->to ||
	    command->start_ns < part->from_ns || command->start_ns >= part->to_ns)
		return false;
	if (part->queues && (command->queue == TS_REPLAY_NONE || !part->queues[command->queue]))
		return false;
	return !kernel || is_kernel(part, command);
}

void ts_replay_append_kernels(const struct ts_replay_stream *stream, struct ts_text *text)
{
	TS_SCOPED(ts_map) met = { 0 };

	for (uint32_t i = 0; i < stream->command_count && text->length < 200; i++) {
		const struct ts_replay_command_info *command = &stream->commands[i];
		const char *name;
		bool is_new = false;

		if (command->kind != TS_COMMAND_LAUNCH || command->object == TS_REPLAY_NONE)
			continue;
		name = stream->objects[command->object].shown;
		ts_map_insert(&met, ts_hash64(name, strlen(name)), &is_new);
		if (is_new)
			ts_text_printf(text, "%s'%s'", text->length ? ", " : "", name);
	}
}

static int nothing(const struct part *part, struct ts_error *err)
{
	const struct ts_replay_stream *stream = part->stream;
	TS_SCOPED(ts_text) kernels = { 0 };

	ts_replay_append_kernels(stream, &kernels);
	if (part->options->kernel)
		return ts_error_set(err, TS_ENOTFOUND,
				    "nothing to replay: no launch of '%s' in that part; kernels of "
				    "this window are %s",
				    part->options->kernel,
				    kernels.length ? ts_text_cstr(&kernels) : "none");
	return ts_error_set(err, TS_ENOTFOUND,
			    "nothing to replay: no command in that part; the window has commands "
			    "%" PRIu64 " to %" PRIu64,
			    stream->commands[0].sequence,
			    stream->commands[stream->command_count - 1].sequence);
}

static int mark(struct ts_replay_plan *plan, const struct part *part, struct ts_error *err)
{
	uint32_t requested = 0, number = part->options->kernel_number, met = 0;

	for (uint32_t i = 0; i < part->stream->command_count; i++) {
		bool is_part = is_requested(part, &part->stream->commands[i]);

		/* One launch of a kernel. */
		met += is_part;
		if (number && met != number)
			is_part = false;
		plan->kept[i] = is_part ? TS_REPLAY_REQUESTED : 0;
		requested += plan->kept[i];
	}
	if (met && !requested)
		return ts_error_set(err, TS_ENOTFOUND,
				    "nothing to replay: there is no launch %" PRIu32
				    " of '%s' in that part; it has %s",
				    number, part->options->kernel, TS_COUNTED(met, "launch"));
	plan->is_complete = requested == part->stream->command_count;
	return requested ? TS_OK : nothing(part, err);
}

int ts_replay_plan_select(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			  const struct ts_replay_options *options, struct ts_error *err)
{
	struct part part = { .options = options,
			     .stream = stream,
			     .to = UINT64_MAX,
			     .from_ns = INT64_MIN,
			     .to_ns = INT64_MAX };
	int rc;

	/* Commands after the dumped one are not needed, unless they were requested. */
	if (options->dump_at && !options->to)
		part.to = options->dump_at + 1;
	rc = parse_position(&part, "from", options->from, &part.from, &part.from_ns, err);
	if (!rc)
		rc = parse_position(&part, "to", options->to, &part.to, &part.to_ns, err);
	if (!rc)
		rc = parse_steps(&part, err);
	if (!rc)
		rc = parse_queues(&part, err);
	if (!rc)
		rc = mark(plan, &part, err);
	free(part.queues);
	return rc;
}
