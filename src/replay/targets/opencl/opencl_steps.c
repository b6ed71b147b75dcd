/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares what commands need before the clock starts: objects, arguments, host data, views.
 * Submits nothing.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "replay/targets/opencl/opencl_session.h"

/* Maximum bytes of host data kept in memory; the rest is read on demand, which takes time. */
#define MOST_STAGED ((uint64_t)4 << 30)
/* Data up to this size is always staged: arguments and patterns. */
#define ALWAYS_STAGED ((uint64_t)64 << 10)

/* ---- needed objects ---- */

static int mark(struct ts_replay_session *session, uint32_t object, struct ts_error *err)
{
	const struct ts_replay_object_info *info;
	int rc = TS_OK;

	if (object == TS_REPLAY_NONE)
		return TS_OK;
	info = ts_opencl_info(session, object);
	if (info->unreplayable)
		return ts_error_set(err, TS_ECAP, "%s %" PRIu64 " cannot be replayed: %s",
				    ts_enum_name("object_kind", info->kind), info->number,
				    info->unreplayable);
	if (session->objects[object].is_needed)
		return TS_OK;
	session->objects[object].is_needed = true;
	if (info->parent == TS_REPLAY_NONE && info->kind > TS_OBJECT_CONTEXT)
		return ts_error_set(err, TS_EFORMAT, "%s %" PRIu64 " has no parent",
				    ts_enum_name("object_kind", info->kind), info->number);
	if (info->kind != TS_OBJECT_DEVICE && info->kind != TS_OBJECT_CONTEXT)
		rc = mark(session, info->parent, err);
	if (!rc && info->kind == TS_OBJECT_STREAM)
		rc = mark(session, info->device, err);
	for (uint32_t i = 0; !rc && info->kind == TS_OBJECT_CONTEXT && i < info->device_count; i++)
		rc = mark(session, info->devices[i], err);
	return rc;
}

/* Marks all memory of a context: a command may reach any of it. */
static int mark_all_memory(struct ts_replay_session *session, uint32_t queue, struct ts_error *err)
{
	uint32_t context = ts_opencl_info(session, queue)->parent;
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++) {
		const struct ts_replay_object_info *info = ts_opencl_info(session, i);

		if (info->kind == TS_OBJECT_MEMORY && info->parent == context &&
		    !info->unreplayable)
			rc = mark(session, i, err);
	}
	return rc;
}

static int mark_ranges(struct ts_replay_session *session, const struct ts_replay_range *ranges,
		       uint32_t count, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < count && !rc; i++)
		rc = mark(session, ranges[i].memory, err);
	return rc;
}

static int mark_work(struct ts_replay_session *session,
		     const struct ts_replay_command_info *command, struct ts_error *err)
{
	int rc = mark_ranges(session, command->reads, command->read_count, err);

	if (!rc)
		rc = mark_ranges(session, command->writes, command->write_count, err);
	if (!rc)
		rc = mark(session, command->object, err);
	if (!rc)
		rc = mark(session, command->other, err);
	for (uint32_t i = 0; i < command->arg_count && !rc; i++)
		rc = mark(session, command->args[i].memory, err);
	if (!rc && command->unknown_access && command->queue != TS_REPLAY_NONE)
		rc = mark_all_memory(session, command->queue, err);
	return rc;
}

static int mark_command(struct ts_replay_session *session, const struct ts_opencl_step *step,
			struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	bool is_work = !ts_opencl_only_orders(command->kind);
	int rc = TS_OK;

	if (command->unreplayable && is_work && !step->is_marker)
		return ts_error_set(err, TS_ECAP, "it cannot be replayed: %s",
				    command->unreplayable);
	if (command->kind == TS_COMMAND_HOST && !step->is_marker)
		return ts_error_set(err, TS_ECAP, "host functions cannot be replayed");
	/* A queue that the host only waits for need not be created. */
	if (command->kind != TS_COMMAND_SYNC && !step->is_host_wait)
		rc = mark(session, command->queue, err);
	if (!rc && is_work && !step->is_marker)
		rc = mark_work(session, command, err);
	if (!rc && command->kind == TS_COMMAND_RECORD && command->queue == TS_REPLAY_NONE)
		rc = mark(session, command->user_event, err);
	return rc;
}

static int prefix_command(const struct ts_replay_session *session, uint32_t index, int rc,
			  struct ts_error *err)
{
	char text[256];

	ts_error_prefix(err, "%s",
			ts_replay_command_text(session->stream, index, text, sizeof(text)));
	return rc;
}

int ts_opencl_mark_needed(struct ts_replay_session *session, struct ts_error *err)
{
	const struct ts_replay *replay = session->replay;
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->plan->count; i++) {
		uint32_t index = session->plan->order[i];

		rc = mark_command(session, &session->steps[i], err);
		if (rc)
			return prefix_command(session, index, rc, err);
	}
	for (uint32_t i = 0; i < replay->capture_count && !rc; i++)
		rc = mark(session, replay->captures[i].range.memory, err);
	return rc;
}

/* ---- bytes from the host ---- */

static uint64_t most_staged(void)
{
	int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t half = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : MOST_STAGED;

	return TS_MIN(half, MOST_STAGED);
}

int ts_opencl_stage(struct ts_replay_session *session, const struct ts_replay_blob_ref *blob,
		    const void **ret_data, struct ts_error *err)
{
	uint64_t address;
	void *data;
	int rc;

	*ret_data = NULL;
	if (ts_map_get(&session->staged, blob->id, &address)) {
		*ret_data = (const void *)(uintptr_t)address;
		return TS_OK;
	}
	if (blob->bytes > ALWAYS_STAGED && session->staged_bytes + blob->bytes > most_staged())
		return TS_OK;
	data = ts_arena_alloc(&session->arena, blob->bytes);
	if (!data)
		return ts_error_set(err, TS_ENOMEM, "no memory for %" PRIu64 " bytes of blob %u",
				    blob->bytes, blob->id);
	rc = ts_replay_blob_read(session->stream->reader, blob, data, err);
	if (rc)
		return rc;
	if (ts_map_put(&session->staged, blob->id, (uintptr_t)data))
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of blobs");
	session->staged_bytes += blob->bytes;
	*ret_data = data;
	return TS_OK;
}

/* ---- arguments ---- */

/* The image that is a view; TS_REPLAY_NONE: the root is the image, or it is a buffer. */
static uint32_t view_image(const struct ts_replay_arg *from)
{
	return from->image == from->memory ? TS_REPLAY_NONE : from->image;
}

static int make_memory_arg(struct ts_replay_session *session, const struct ts_replay_arg *from,
			   struct ts_opencl_arg *arg, struct ts_error *err)
{
	struct ts_opencl_view *view;
	int rc;

	arg->size = sizeof(cl_mem);
	if (from->memory == TS_REPLAY_NONE)
		return TS_OK;
	if (session->objects[from->memory].memory.svm) {
		arg->kind = TS_REPLAY_ARG_SVM;
		arg->value = session->objects[from->memory].memory.svm + from->offset;
		return TS_OK;
	}
	rc = ts_opencl_make_view(session, from->memory, from->offset, from->bytes, view_image(from),
				 &view, err);
	if (!rc)
		arg->value = &view->handle;
	return rc;
}

static int make_sampler_arg(struct ts_replay_session *session, uint32_t function,
			    const struct ts_replay_arg *from, struct ts_opencl_arg *arg,
			    struct ts_error *err)
{
	uint32_t module = ts_opencl_info(session, function)->parent;
	const cl_sampler *handle = NULL;
	int rc = ts_opencl_make_sampler(session, ts_opencl_info(session, module)->parent, from,
					&handle, err);

	arg->size = sizeof(cl_sampler);
	arg->value = handle;
	return rc;
}

static int make_arg(struct ts_replay_session *session, uint32_t function,
		    const struct ts_replay_arg *from, const char *block, struct ts_opencl_arg *arg,
		    struct ts_error *err)
{
	*arg = (struct ts_opencl_arg){ .kind = from->kind, .size = from->size };
	switch (from->kind) {
	case TS_REPLAY_ARG_BYTES:
		arg->value = block + from->at;
		return TS_OK;
	case TS_REPLAY_ARG_MEMORY:
	case TS_REPLAY_ARG_SVM:
		return make_memory_arg(session, from, arg, err);
	case TS_REPLAY_ARG_SAMPLER:
		return make_sampler_arg(session, function, from, arg, err);
	default:
		return TS_OK;
	}
}

static int make_args(struct ts_replay_session *session, struct ts_opencl_step *step,
		     struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	struct ts_opencl_arg *args =
		ts_arena_alloc_zeroed(&session->arena, command->arg_count, sizeof(*args));
	int rc = TS_OK;

	if (!args)
		return ts_error_set(err, TS_ENOMEM, "no memory for arguments");
	if (command->blob.id && !step->host)
		return ts_error_set(err, TS_ENOMEM, "no memory for its arguments");
	for (uint32_t i = 0; i < command->arg_count && !rc; i++) {
		rc = make_arg(session, command->object, &command->args[i], step->host, &args[i],
			      err);
		if (rc)
			ts_error_prefix(err, "argument %u", i);
	}
	step->args = args;
	return rc;
}

/* ---- pointers inside shared virtual memory ---- */

static bool is_argument(const struct ts_replay_command_info *command, uint32_t memory)
{
	for (uint32_t i = 0; i < command->arg_count; i++)
		if (command->args[i].memory == memory)
			return true;
	return false;
}

/* Memory that a kernel reaches through pointers in other memory must have its recorded address. */
static int make_indirect(struct ts_replay_session *session, struct ts_opencl_step *step,
			 struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	void **pointers =
		ts_arena_alloc_zeroed(&session->arena, command->read_count, sizeof(void *));

	if (!pointers)
		return ts_error_set(err, TS_ENOMEM, "no memory for pointers");
	for (uint32_t i = 0; i < command->read_count; i++) {
		uint32_t memory = command->reads[i].memory;
		char *svm = session->objects[memory].memory.svm;

		if (!svm || is_argument(command, memory))
			continue;
		if ((uintptr_t)svm != ts_opencl_info(session, memory)->address)
			return ts_error_set(
				err, TS_ECAP,
				"pointers inside SVM: it accesses memory %" PRIu64
				" through a pointer in other memory, which is at another address in this run",
				ts_opencl_info(session, memory)->number);
		pointers[step->pointer_count++] = svm;
	}
	step->pointers = pointers;
	return TS_OK;
}

/* ---- one command ---- */

static bool is_svm(const struct ts_replay_session *session, uint32_t memory)
{
	return memory != TS_REPLAY_NONE && session->objects[memory].memory.svm;
}

static int make_step(struct ts_replay_session *session, struct ts_opencl_step *step,
		     struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	int rc = TS_OK;

	if (step->is_marker || ts_opencl_only_orders(command->kind))
		return TS_OK;
	if (command->blob.id)
		rc = ts_opencl_stage(session, &command->blob, &step->host, err);
	if (!rc && command->kind == TS_COMMAND_LAUNCH)
		rc = make_args(session, step, err);
	if (!rc && command->kind == TS_COMMAND_LAUNCH)
		rc = make_indirect(session, step, err);
	if (!rc && command->image != TS_REPLAY_NONE)
		rc = ts_opencl_make_image_view(session, command->image, err);
	if (!rc && command->other_image != TS_REPLAY_NONE)
		rc = ts_opencl_make_image_view(session, command->other_image, err);
	if (!rc && command->is_rect &&
	    (is_svm(session, command->object) || is_svm(session, command->other)))
		return ts_error_set(err, TS_ECAP, "a rectangle of shared virtual memory");
	return rc;
}

int ts_opencl_make_steps(struct ts_replay_session *session, struct ts_error *err)
{
	int failure = TS_OK;

	for (uint32_t i = 0; i < session->plan->count; i++) {
		int rc = make_step(session, &session->steps[i], err);

		if (!rc)
			continue;
		failure = prefix_command(session, session->plan->order[i], rc, err);
		if (rc == TS_ENOMEM ||
		    !ts_replay_reject_command(session->replay, session->plan->order[i], err))
			break;
	}
	return failure;
}
