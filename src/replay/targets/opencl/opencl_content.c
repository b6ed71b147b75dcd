/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs of a run: what commands read, and memory that is copied out after them or at the end.
 * Outputs wait in a ring of staging memory, so that hashing does not delay commands until the ring
 * is full.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay/targets/opencl/opencl_session.h"

#define STAGING_BYTES ((uint64_t)256 << 20)
#define ALIGNMENT 64

/* ---- list of outputs ---- */

/* Is it a copy to the host? */
static bool reads_host(const struct ts_opencl_step *step)
{
	const struct ts_replay_command_info *command = step->command;

	return command->kind == TS_COMMAND_COPY && command->object == TS_REPLAY_NONE &&
	       command->bytes && ts_opencl_has_event(step) && !step->is_marker;
}

/*
 * Lists the outputs of one command: what it reads, then what is copied out. Advances *capture past
 * them.
 */
static void list_outputs(struct ts_replay_session *session, uint32_t position, uint32_t *capture)
{
	const struct ts_replay *replay = session->replay;
	struct ts_opencl_step *step = &session->steps[position];
	struct ts_opencl_output *read = NULL;

	step->first_output = session->output_count;
	if (reads_host(step)) {
		read = &session->outputs[session->output_count++];
		*read = (struct ts_opencl_output){
			.position = position,
			.range = { TS_REPLAY_NONE, 0, step->command->bytes },
			.capture = TS_REPLAY_NONE,
		};
	}
	for (; *capture < replay->capture_count && replay->captures[*capture].position == position;
	     ++*capture) {
		const struct ts_replay_capture *wanted = &replay->captures[*capture];

		if (wanted->range.memory != TS_REPLAY_NONE)
			session->outputs[session->output_count++] = (struct ts_opencl_output){
				.position = position, .range = wanted->range, .capture = *capture
			};
		else if (read && read->capture == TS_REPLAY_NONE)
			read->capture = *capture;
	}
	step->output_count = session->output_count - step->first_output;
}

/* ---- staging memory ---- */

static uint64_t aligned_bytes(const struct ts_opencl_output *output)
{
	return (output->range.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/*
 * Allocates outputs from the staging ring, and notes which earlier outputs must be delivered
 * before.
 */
static void assign_outputs(struct ts_replay_session *session)
{
	uint64_t size = session->staging_bytes, next = 0;
	uint32_t gone = 0;

	for (uint32_t i = 0; i < session->output_count; i++) {
		struct ts_opencl_output *output = &session->outputs[i];
		uint64_t bytes_needed = aligned_bytes(output);

		if (next % size + bytes_needed > size)
			next += size - next % size;
		/* Positions grow without wrapping; outputs one full round back are overwritten. */
		while (gone < i && session->outputs[gone].at + size < next + bytes_needed)
			gone++;
		output->at = next;
		output->after = gone;
		next += bytes_needed;
	}
	for (uint32_t i = 0; i < session->output_count; i++)
		session->outputs[i].at %= size;
}

static int make_staging(struct ts_replay_session *session, struct ts_error *err)
{
	const struct ts_replay *replay = session->replay;
	uint64_t sum = 0, largest = ALIGNMENT;

	for (uint32_t i = 0; i < session->output_count; i++) {
		uint64_t bytes_needed = aligned_bytes(&session->outputs[i]);

		largest = TS_MAX(largest, bytes_needed);
		sum = TS_MIN(sum + TS_MIN(bytes_needed, STAGING_BYTES), STAGING_BYTES);
	}
	for (uint32_t i = 0; i < replay->capture_count; i++)
		if (replay->captures[i].position >= session->plan->count)
			largest = TS_MAX(largest, replay->captures[i].range.bytes);
	session->staging_bytes = (TS_MAX(sum, largest) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	session->staging = aligned_alloc(ALIGNMENT, session->staging_bytes);
	if (!session->staging)
		return ts_error_set(err, TS_ENOMEM,
				    "no memory for %" PRIu64 " bytes that are compared",
				    session->staging_bytes);
	/* Touches all pages before the clock starts. */
	memset(session->staging, 0, session->staging_bytes);
	return TS_OK;
}

int ts_opencl_make_outputs(struct ts_replay_session *session, struct ts_error *err)
{
	const struct ts_replay *replay = session->replay;
	size_t most = (size_t)session->plan->count + replay->capture_count;
	uint32_t capture = 0;
	int rc;

	session->outputs = calloc(most + 1, sizeof(*session->outputs));
	if (!session->outputs)
		return ts_error_set(err, TS_ENOMEM, "no memory for what is compared");
	for (uint32_t i = 0; i < session->plan->count; i++)
		list_outputs(session, i, &capture);
	rc = make_staging(session, err);
	if (!rc)
		assign_outputs(session);
	return rc;
}

static void drop_output(struct ts_replay_session *session, struct ts_opencl_output *output)
{
	if (output->event)
		session->api.clReleaseEvent(output->event);
	if (output->is_allocated)
		free(output->data);
	output->event = NULL;
	output->data = NULL;
	output->is_allocated = false;
}

void ts_opencl_drop_outputs(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->output_count; i++)
		drop_output(session, &session->outputs[i]);
	session->delivered = 0;
}

void ts_opencl_free_outputs(struct ts_replay_session *session)
{
	free(session->outputs);
	free(session->staging);
}

/* ---- delivery ---- */

static int deliver(struct ts_replay_session *session, const struct ts_opencl_output *output,
		   struct ts_error *err)
{
	const struct ts_replay *replay = session->replay;
	struct ts_replay_outcome *outcome = session->outcome;
	int rc = TS_OK;

	if (output->capture == TS_REPLAY_NONE || !outcome->content)
		return TS_OK;
	if (output->range.memory != TS_REPLAY_NONE)
		return outcome->content(outcome->context, output->capture, output->data, err);
	/* Several captures may want the same read. */
	for (uint32_t i = output->capture;
	     !rc && i < replay->capture_count && replay->captures[i].position == output->position;
	     i++)
		if (replay->captures[i].range.memory == TS_REPLAY_NONE)
			rc = outcome->content(outcome->context, i, output->data, err);
	return rc;
}

/*
 * Waits for the bytes. A command that must not run (a user event was set to an error) leaves zeros.
 */
static int complete(struct ts_replay_session *session, struct ts_opencl_output *output,
		    struct ts_error *err)
{
	const struct ts_opencl_step *step = &session->steps[output->position];
	bool is_read = output->range.memory == TS_REPLAY_NONE;
	cl_event event = is_read ? step->event : output->event;
	cl_int code = CL_SUCCESS;

	if (event)
		code = session->api.clWaitForEvents(1, &event);
	if (code && !session->expects_errors)
		return ts_opencl_fail_execution(session, output->position, code, err);
	if (code)
		memset(output->data, 0, output->range.bytes);
	return TS_OK;
}

int ts_opencl_deliver(struct ts_replay_session *session, uint32_t until, uint32_t now,
		      struct ts_error *err)
{
	int rc = session->delivered < until ? ts_opencl_flush(session, err) : TS_OK;

	for (; session->delivered < until && !rc; session->delivered++) {
		struct ts_opencl_output *output = &session->outputs[session->delivered];
		struct ts_opencl_step *step = &session->steps[output->position];

		rc = complete(session, output, err);
		if (!rc)
			rc = deliver(session, output, err);
		/* Keeps the event if other commands still have to wait for it. */
		if (!rc && (step->last_use < now || step->waitable != output->event)) {
			if (step->waitable == output->event)
				step->waitable = NULL;
			drop_output(session, output);
		}
	}
	return rc;
}

/* The host must not wait for what depends on its own later commands. */
static bool can_hand_over(const struct ts_replay_session *session, uint32_t until, uint32_t now)
{
	for (uint32_t i = session->delivered; i < until; i++)
		if (session->steps[session->outputs[i].position].gate > now)
			return false;
	return true;
}

int ts_opencl_output_reserve(struct ts_replay_session *session, struct ts_opencl_output *output,
			     struct ts_error *err)
{
	if (can_hand_over(session, output->after, output->position)) {
		output->data = session->staging + output->at;
		return ts_opencl_deliver(session, output->after, output->position, err);
	}
	output->data = ts_alloc_array(output->range.bytes, 1);
	output->is_allocated = true;
	return output->data ? TS_OK
			    : ts_error_set(err, TS_ENOMEM, "no memory for what is compared");
}

/* ---- copying out ---- */

static int copy_output(struct ts_replay_session *session, struct ts_opencl_step *step,
		       struct ts_opencl_output *output, struct ts_error *err)
{
	uint32_t queue = step->command->queue;
	uint32_t context = ts_opencl_info(session, output->range.memory)->parent;
	bool is_foreign = queue != TS_REPLAY_NONE &&
			  ts_opencl_info(session, queue)->parent != context;
	uint32_t count = 0;
	cl_int code;
	int rc = ts_opencl_output_reserve(session, output, err);

	/* No queue reads memory of another context, nor waits for what happens there. */
	if (!rc && is_foreign)
		rc = ts_opencl_wait_queue(session, TS_REPLAY_NONE, output->position, err);
	if (rc)
		return rc;
	if (queue == TS_REPLAY_NONE || is_foreign) {
		code = ts_opencl_read(session, session->objects[context].context.queue,
				      &output->range, output->data, true, 0, NULL);
		return code ? ts_opencl_fail_command(session, output->position, code, err) : TS_OK;
	}
	if (!ts_opencl_is_ordered(session, queue) && step->waitable)
		session->list[count++] = step->waitable;
	code = ts_opencl_read(session, session->objects[queue].queue.handle, &output->range,
			      output->data, false, count, &output->event);
	if (code)
		return ts_opencl_fail_command(session, output->position, code, err);
	step->waitable = output->event;
	return ts_opencl_submitted(session, output->position, err);
}

int ts_opencl_copy_outputs(struct ts_replay_session *session, uint32_t position,
			   struct ts_error *err)
{
	struct ts_opencl_step *step = &session->steps[position];
	int rc = TS_OK;

	for (uint32_t i = 0; i < step->output_count && !rc; i++) {
		struct ts_opencl_output *output = &session->outputs[step->first_output + i];

		if (output->range.memory != TS_REPLAY_NONE)
			rc = copy_output(session, step, output, err);
	}
	return rc;
}

/* ---- end of a run ---- */

int ts_opencl_final_content(struct ts_replay_session *session, struct ts_error *err)
{
	const struct ts_replay *replay = session->replay;
	struct ts_replay_outcome *outcome = session->outcome;
	int rc = TS_OK;

	for (uint32_t i = 0; i < replay->capture_count && outcome->content && !rc; i++) {
		const struct ts_replay_range *range = &replay->captures[i].range;
		uint32_t context;
		cl_int code;

		if (replay->captures[i].position < session->plan->count ||
		    range->memory == TS_REPLAY_NONE)
			continue;
		context = ts_opencl_info(session, range->memory)->parent;
		code = ts_opencl_read(session, session->objects[context].context.queue, range,
				      session->staging, true, 0, NULL);
		rc = code ? ts_opencl_fail_object(session, range->memory, code, err)
			  : outcome->content(outcome->context, i, session->staging, err);
	}
	return rc;
}
