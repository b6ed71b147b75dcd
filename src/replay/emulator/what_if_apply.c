/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies what-if changes to a model: durations, latencies, slots. Integer arithmetic only, so that
 * results are the same on every machine.
 */
#include <string.h>

#include "base/text.h"
#include "replay/emulator/emulator_internal.h"
#include "replay/emulator/what_if.h"

__extension__ typedef __int128 wide_int;

/* time * numerator / denominator, rounded half up; none is negative. */
static int64_t scale(int64_t time, int64_t numerator, int64_t denominator)
{
	wide_int scaled = ((wide_int)time * numerator + denominator / 2) / denominator;

	return scaled > INT64_MAX ? INT64_MAX : (int64_t)scaled;
}

/* The changed duration. */
static int64_t changed_time(const struct ts_what_if_change *change, int64_t time)
{
	if (change->unit == TS_WHAT_IF_NS)
		return TS_MAX(change->numerator, 0);
	return scale(time, change->numerator, change->denominator);
}

/* The duration at a multiple of the speed. */
static int64_t faster_time(const struct ts_what_if_change *change, int64_t time)
{
	return scale(time, change->denominator, change->numerator);
}

static bool is_between(const struct ts_work_command *command)
{
	return command->kind == TS_GPU_OP_COPY && command->copy_kind != TS_COPY_DEVICE_TO_DEVICE;
}

/* ---- changes by name ---- */

static bool is_of_kind(const struct ts_what_if_change *change,
		       const struct ts_work_command *command)
{
	if (change->kind == TS_WHAT_IF_COPY)
		return command->kind == TS_GPU_OP_COPY;
	return command->kind == TS_GPU_OP_KERNEL || command->kind == TS_GPU_OP_COLLECTIVE;
}

/* Matches each distinct name once. */
static uint8_t *match_names(const struct ts_work *work, const char *glob)
{
	size_t names = ts_strmap_count(&work->names);
	uint8_t *matches = ts_alloc_array(names, 1);

	for (size_t i = 0; matches && i < names; i++) {
		const char *text = ts_work_text(work, (uint32_t)i);

		matches[i] = ts_glob_match(glob, text, strlen(text));
	}
	return matches;
}

static int apply_name(struct ts_what_if_change *change, const struct ts_work *work,
		      struct ts_emulator_model *model, struct ts_error *err)
{
	TS_AUTO_FREE uint8_t *matches = match_names(work, change->glob);

	if (!matches)
		return ts_error_set(err, TS_ENOMEM, "no memory for a what-if");
	for (uint32_t i = 0; i < work->command_count; i++) {
		if (!is_of_kind(change, &work->commands[i]) || !matches[work->commands[i].name])
			continue;
		model->commands[i].duration = changed_time(change, model->commands[i].duration);
		change->changed++;
	}
	if (change->changed)
		return TS_OK;
	return ts_error_set(
		err, TS_ENOTFOUND,
		"what-if '%s': the trace has no %s of that name ('*' matches any text); 'tracesmith analyze TRACE kernels' lists them",
		change->text, change->kind == TS_WHAT_IF_COPY ? "copy" : "kernel");
}

/* ---- changes of all commands of a kind ---- */

/* Work inside the device only: a collective depends on its link and its peers. */
static void apply_device_speed(struct ts_what_if_change *change, const struct ts_work *work,
			       struct ts_emulator_model *model)
{
	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (is_between(command) || command->class == TS_CLASS_COMMUNICATION ||
		    command->class == TS_CLASS_OTHER)
			continue;
		model->commands[i].duration = faster_time(change, model->commands[i].duration);
		change->changed++;
	}
}

static int64_t copy_time(const struct ts_what_if_change *change,
			 const struct ts_work_command *command, int64_t time)
{
	if (change->unit == TS_WHAT_IF_TIMES)
		return faster_time(change, time);
	return scale(command->bytes, 1000000000, change->numerator);
}

/* An absolute bandwidth applies only to copies of known size. */
static void apply_bandwidth(struct ts_what_if_change *change, const struct ts_work *work,
			    struct ts_emulator_model *model)
{
	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (!is_between(command) ||
		    (change->unit == TS_WHAT_IF_BYTES_S && command->bytes < 0))
			continue;
		model->commands[i].duration =
			copy_time(change, command, model->commands[i].duration);
		change->changed++;
	}
}

static void apply_latency(const struct ts_what_if_change *change, struct ts_emulator_model *model)
{
	for (uint32_t i = 0; i < model->command_count; i++)
		model->commands[i].launch_ns = changed_time(change, model->commands[i].launch_ns);
}

/*
 * The first point of a thread keeps its time; synthetic threads keep their guessed times. What
 * holds a command while its device is idle is work of the host, usually a compiler.
 */
static void apply_host_speed(const struct ts_what_if_change *change,
			     struct ts_emulator_model *model)
{
	for (uint32_t t = 0; t < model->thread_count; t++) {
		const struct ts_emulator_thread *thread = &model->threads[t];

		for (uint32_t p = thread->first + 1; p < thread->first + thread->count; p++)
			if (model->points[p].kind != TS_EMULATOR_GIVE)
				model->points[p].gap_ns =
					faster_time(change, model->points[p].gap_ns);
	}
	for (size_t e = 0; e < model->edge_count; e++)
		if (model->edges[e].to >= model->command_count)
			model->edges[e].lag_ns = faster_time(change, model->edges[e].lag_ns);
	for (uint32_t i = 0; i < model->command_count; i++)
		model->commands[i].held_ns = faster_time(change, model->commands[i].held_ns);
}

static void apply_concurrency(const struct ts_what_if_change *change,
			      struct ts_emulator_model *model)
{
	for (uint32_t r = TS_EMULATOR_KERNELS; r < model->resource_count;
	     r += TS_EMULATOR_RESOURCES)
		model->slots[r] = (uint32_t)change->numerator;
}

static int apply(struct ts_what_if_change *change, const struct ts_work *work,
		 struct ts_emulator_model *model, struct ts_error *err)
{
	change->changed = 0;
	switch (change->kind) {
	case TS_WHAT_IF_KERNEL:
	case TS_WHAT_IF_COPY:
		return apply_name(change, work, model, err);
	case TS_WHAT_IF_DEVICE_SPEED:
		apply_device_speed(change, work, model);
		break;
	case TS_WHAT_IF_COPY_BANDWIDTH:
		apply_bandwidth(change, work, model);
		break;
	case TS_WHAT_IF_LATENCY:
		apply_latency(change, model);
		break;
	case TS_WHAT_IF_HOST_SPEED:
		apply_host_speed(change, model);
		break;
	case TS_WHAT_IF_CONCURRENCY:
		apply_concurrency(change, model);
		break;
	case TS_WHAT_IF_STREAMS:
	case TS_WHAT_IF_POLICY:
		break;
	}
	return TS_OK;
}

int ts_what_if_apply(struct ts_what_if *what_if, const struct ts_work *work,
		     struct ts_emulator_model *model, struct ts_error *err)
{
	for (size_t i = 0; i < what_if->count; i++) {
		int rc = apply(&what_if->changes[i], work, model, err);

		if (rc)
			return rc;
	}
	return TS_OK;
}
