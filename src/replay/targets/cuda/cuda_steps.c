/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares what commands need before the clock starts: objects, parameters, bytes, addresses. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

/* Attributes of launches that are numbers or addresses: others hold handles. */
static const uint8_t launch_attributes[] = { 1, 2, 4, 5, 6, 8, 9, 10, 11, 14, 16 };
#define ATTRIBUTE_ACCESS_POLICY 1 /* begins with an address */

/* ---- needed objects ---- */

static bool has_details(const struct ts_replay_object_info *info)
{
	enum ts_object_kind kind = info->kind;

	return (info->flags & TS_REPLAY_GLOBAL) || kind == TS_OBJECT_DEVICE ||
	       kind == TS_OBJECT_CONTEXT || kind == TS_OBJECT_STREAM || kind == TS_OBJECT_MODULE ||
	       kind == TS_OBJECT_FUNCTION;
}

static int mark(struct ts_replay_session *session, uint32_t index, struct ts_error *err)
{
	const struct ts_replay_object_info *info;
	struct ts_cuda_object *object;
	int rc = TS_OK;

	if (index == TS_REPLAY_NONE || session->objects[index].is_needed)
		return TS_OK;
	info = ts_cuda_info(session, index);
	object = &session->objects[index];
	if (info->unreplayable)
		return ts_error_set(err, TS_ECAP, "%s %" PRIu64 " cannot be replayed: %s",
				    ts_enum_name("object_kind", info->kind), info->number,
				    info->unreplayable);
	/* Its address would be its offset: any of this process. */
	if (info->kind == TS_OBJECT_MEMORY &&
	    !(info->flags & (TS_REPLAY_SPARSE | TS_REPLAY_GLOBAL)))
		return ts_error_set(err, TS_EFORMAT,
				    "memory %" PRIu64 " is neither an arena nor a variable",
				    info->number);
	object->is_needed = true;
	if (has_details(info))
		rc = ts_cuda_details_parse(&object->details, &session->arena, info->details, err);
	if (rc)
		return ts_error_prefix(err, "%s %" PRIu64, ts_enum_name("object_kind", info->kind),
				       info->number);
	if (info->parent == TS_REPLAY_NONE && info->kind > TS_OBJECT_CONTEXT &&
	    !(info->flags & TS_REPLAY_HOST))
		return ts_error_set(err, TS_EFORMAT, "%s %" PRIu64 " has no parent",
				    ts_enum_name("object_kind", info->kind), info->number);
	rc = mark(session, info->parent, err);
	if (!rc && info->kind == TS_OBJECT_STREAM)
		rc = mark(session, info->device, err);
	for (uint32_t i = 0; !rc && info->kind == TS_OBJECT_CONTEXT && i < info->device_count; i++)
		rc = mark(session, info->devices[i], err);
	return rc;
}

/* record, wait, sync, alloc and free run as always. */
static bool only_orders(enum ts_command_kind kind)
{
	return kind == TS_COMMAND_RECORD || kind == TS_COMMAND_WAIT || kind == TS_COMMAND_SYNC ||
	       kind == TS_COMMAND_ALLOC || kind == TS_COMMAND_FREE;
}

static int mark_command(struct ts_replay_session *session, const struct ts_cuda_step *step,
			struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	int rc = TS_OK;

	if (step->is_skipped)
		return TS_OK;
	if (command->unreplayable && !only_orders(command->kind))
		return ts_error_set(err, TS_ECAP, "it cannot be replayed: %s",
				    command->unreplayable);
	if (command->kind == TS_COMMAND_HOST)
		return ts_error_set(err, TS_ECAP, "host functions cannot be replayed");
	if (command->would_deadlock)
		return TS_OK;
	rc = mark(session, command->queue, err);
	if (!rc)
		rc = mark(session, command->object, err);
	if (!rc)
		rc = mark(session, command->other, err);
	return rc ? rc : mark(session, command->graph, err);
}

/* Commands may reach all memory: every arena, host memory, the globals of all modules. */
static int mark_memory(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++) {
		const struct ts_replay_object_info *info = ts_cuda_info(session, i);

		if (info->kind == TS_OBJECT_MEMORY && !info->unreplayable &&
		    (info->flags & (TS_REPLAY_SPARSE | TS_REPLAY_GLOBAL)))
			rc = mark(session, i, err);
	}
	return rc;
}

static int prefix_command(const struct ts_replay_session *session, uint32_t position, int rc,
			  struct ts_error *err)
{
	char text[256];

	ts_error_prefix(err, "%s",
			ts_replay_command_text(session->stream, session->plan->order[position],
					       text, sizeof(text)));
	return rc;
}

static int init_steps(struct ts_replay_session *session, struct ts_error *err)
{
	const struct ts_replay_plan *plan = session->plan;
	size_t most = session->stream->command_count + 1u;

	session->steps =
		ts_arena_alloc_zeroed(&session->arena, plan->count + 1u, sizeof(*session->steps));
	session->positions =
		ts_arena_alloc_zeroed(&session->arena, most, sizeof(*session->positions));
	if (!session->steps || !session->positions)
		return ts_error_set(err, TS_ENOMEM, "no memory for commands");
	memset(session->positions, 0xff, most * sizeof(*session->positions));
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct ts_replay_command_info *command =
			&session->stream->commands[plan->order[i]];

		session->positions[plan->order[i]] = i;
		session->steps[i].command = command;
		session->steps[i].is_skipped = plan->kept[plan->order[i]] == TS_REPLAY_ORDER &&
					       !only_orders(command->kind);
	}
	return TS_OK;
}

int ts_cuda_mark_needed(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = init_steps(session, err);

	for (uint32_t i = 0; i < session->plan->count && !rc; i++) {
		rc = mark_command(session, &session->steps[i], err);
		if (rc)
			return prefix_command(session, i, rc, err);
	}
	return rc ? rc : mark_memory(session, err);
}

/* ---- launches ---- */

/* Launches with the same configuration have the same text. */
static int details_of(struct ts_replay_session *session,
		      const struct ts_replay_command_info *command,
		      const struct ts_cuda_details **ret_details, struct ts_error *err)
{
	uint64_t *slot = ts_map_insert(&session->configs, (uintptr_t)command->details, NULL);
	struct ts_cuda_details *details;
	int rc;

	if (!slot)
		return ts_error_set(err, TS_ENOMEM, "no memory for details");
	if (!*slot) {
		details = ts_arena_alloc_zeroed(&session->arena, 1, sizeof(*details));
		if (!details)
			return ts_error_set(err, TS_ENOMEM, "no memory for details");
		rc = ts_cuda_details_parse(details, &session->arena, command->details, err);
		if (rc)
			return rc;
		*slot = (uintptr_t)details;
	}
	*ret_details = (const void *)(uintptr_t)*slot;
	return TS_OK;
}

static bool is_launch_attribute(uint64_t id)
{
	for (size_t i = 0; i < sizeof(launch_attributes); i++)
		if (launch_attributes[i] == id)
			return true;
	return false;
}

static int make_attributes(struct ts_replay_session *session, const struct ts_cuda_details *details,
			   struct cuda_launch_config *config, struct ts_error *err)
{
	struct cuda_launch_attribute *attributes = ts_arena_alloc_zeroed(
		&session->arena, details->attribute_count + 1u, sizeof(*attributes));
	uint32_t count = 0;

	if (!attributes)
		return ts_error_set(err, TS_ENOMEM, "no memory for attributes");
	for (uint32_t i = 0; i < details->attribute_count; i++) {
		const struct ts_cuda_pair *pair = &details->attributes[i];
		struct cuda_launch_attribute *attribute = &attributes[count];

		if (!is_launch_attribute(pair->id))
			return ts_error_set(err, TS_ECAP,
					    "launch attribute %" PRIu64 " cannot be replayed",
					    pair->id);
		if (pair->id == CUDA_LAUNCH_ATTRIBUTE_COOPERATIVE && details->is_cooperative)
			continue;
		attribute->id = (uint32_t)pair->id;
		memcpy(attribute->value, pair->bytes ? (const void *)pair->bytes : &pair->number,
		       pair->bytes ? TS_MIN(pair->byte_count, sizeof(attribute->value))
				   : sizeof(int));
		if (pair->id == ATTRIBUTE_ACCESS_POLICY)
			ts_cuda_move_forth(session, attribute->value, 8, 0);
		count++;
	}
	if (details->is_cooperative) {
		attributes[count].id = CUDA_LAUNCH_ATTRIBUTE_COOPERATIVE;
		attributes[count++].value[0] = 1;
	}
	config->attributes = count ? attributes : NULL;
	config->attribute_count = count;
	return TS_OK;
}

static void note_gaps(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	size_t length = strlen(session->gaps);
	char text[160];

	for (uint32_t i = 0; i < step->details->foreign_count; i++) {
		snprintf(text, sizeof(text), "capture gap: pointer to 0x%.16s, kernel '%.100s'",
			 step->details->foreign[i],
			 ts_cuda_info(session, step->command->object)->name);
		if (strstr(session->gaps, text) ||
		    length + strlen(text) + 3 > sizeof(session->gaps))
			continue;
		length += (size_t)snprintf(session->gaps + length, sizeof(session->gaps) - length,
					   "%s%s", length ? "; " : "", text);
	}
}

static int make_launch(struct ts_replay_session *session, struct ts_cuda_step *step,
		       struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	const struct ts_cuda_object *function = &session->objects[command->object];
	struct ts_cuda_launch *launch = ts_arena_alloc_zeroed(&session->arena, 1, sizeof(*launch));
	const void *params = NULL;
	int rc;

	if (!launch)
		return ts_error_set(err, TS_ENOMEM, "no memory for a launch");
	if (!function->handle)
		return ts_error_set(err, TS_EFORMAT, "its kernel is not a function");
	for (int i = 0; i < 3; i++) {
		if (step->details->grid[i] > UINT32_MAX || step->details->block[i] > UINT32_MAX ||
		    step->details->shared > INT32_MAX)
			return ts_error_set(err, TS_EFORMAT, "its grid or block is too large");
		launch->config.grid[i] = (uint32_t)step->details->grid[i];
		launch->config.block[i] = (uint32_t)step->details->block[i];
	}
	if (command->blob.bytes < function->param_bytes)
		return ts_error_set(err, TS_EFORMAT,
				    "it has %" PRIu64
				    " bytes of parameters, the kernel reads %" PRIu64,
				    command->blob.bytes, function->param_bytes);
	rc = ts_cuda_stage(session, &command->blob, 0, &params, err);
	if (!rc)
		rc = make_attributes(session, step->details, &launch->config, err);
	if (rc)
		return rc;
	launch->config.shared_bytes = (uint32_t)step->details->shared;
	launch->config.stream = step->stream;
	launch->function = function->handle;
	/* The driver only reads them. */
	memcpy(&launch->params, &params, sizeof(params));
	launch->param_bytes = command->blob.bytes;
	step->launch = launch;
	note_gaps(session, step);
	return TS_OK;
}

/* ---- other commands ---- */

static int make_copy(struct ts_replay_session *session, struct ts_cuda_step *step,
		     struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	uint64_t to = 0;

	if (command->object == TS_REPLAY_NONE && command->other == TS_REPLAY_NONE)
		return TS_OK;
	if (command->object == TS_REPLAY_NONE) {
		step->scratch = ts_cuda_pinned(session, command->bytes);
		return step->scratch ? TS_OK : ts_cuda_need_scratch(session, command->bytes, err);
	}
	to = ts_cuda_address(session, command->object, command->offset);
	if (command->blob.id)
		return ts_cuda_stage(session, &command->blob, command->is_rect ? 0 : to,
				     &step->host, err);
	return command->other == TS_REPLAY_NONE
		       ? ts_error_set(err, TS_EFORMAT, "its bytes are not in the trace")
		       : TS_OK;
}

static int make_fill(struct ts_replay_session *session, struct ts_cuda_step *step,
		     struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	uint64_t bytes = command->blob.id ? command->blob.bytes : 0;

	if (command->object == TS_REPLAY_NONE || (bytes != 1 && bytes != 2 && bytes != 4))
		return ts_error_set(err, TS_EFORMAT, "its pattern has %" PRIu64 " bytes", bytes);
	return ts_cuda_stage(session, &command->blob, 0, &step->host, err);
}

/* What a run changes is as it was before when the next one begins. */
static int make_setting(struct ts_replay_session *session, struct ts_cuda_step *step,
			struct ts_error *err)
{
	uint32_t object = step->command->object;
	int code;

	if (object == TS_REPLAY_NONE || ts_cuda_info(session, object)->kind != TS_OBJECT_FUNCTION ||
	    !step->details->what || strcmp(step->details->what, "attribute") != 0)
		return TS_OK;
	if (step->details->value.bytes || !ts_cuda_is_function_attribute(step->details->id))
		return ts_error_set(err, TS_ECAP,
				    "function attribute %" PRIu64 " cannot be replayed",
				    step->details->id);
	code = ts_cuda_enter(session, step->context);
	if (!code)
		code = session->cu.FuncGetAttribute(&step->before, (int)step->details->id,
						    session->objects[object].handle);
	return code ? ts_cuda_fail(session, code, err, "its attribute") : TS_OK;
}

static int make_work(struct ts_replay_session *session, struct ts_cuda_step *step,
		     struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	int rc = TS_OK;

	switch (command->kind) {
	case TS_COMMAND_LAUNCH:
	case TS_COMMAND_SET:
		rc = details_of(session, command, &step->details, err);
		if (!rc && command->kind == TS_COMMAND_LAUNCH)
			rc = make_launch(session, step, err);
		else if (!rc)
			rc = make_setting(session, step, err);
		return rc;
	case TS_COMMAND_COPY:
		return make_copy(session, step, err);
	case TS_COMMAND_FILL:
		return make_fill(session, step, err);
	case TS_COMMAND_HOST_WRITE:
		return ts_cuda_stage(session, &command->blob, command->offset, &step->host, err);
	default:
		return TS_OK;
	}
}

static void find_places(struct ts_replay_session *session, struct ts_cuda_step *step)
{
	const struct ts_replay_command_info *command = step->command;
	uint32_t context = session->contexts[0];

	if (command->queue != TS_REPLAY_NONE) {
		step->stream = session->objects[command->queue].handle;
		context = ts_cuda_info(session, command->queue)->parent;
	} else if (command->object != TS_REPLAY_NONE &&
		   ts_cuda_info(session, command->object)->kind == TS_OBJECT_CONTEXT) {
		context = command->object;
	}
	step->context = session->objects[context].handle;
}

/* Do all nodes of the graph run, one behind the other? */
static void find_graph(struct ts_replay_session *session, uint32_t position)
{
	const struct ts_replay_command_info *command = session->steps[position].command;
	uint32_t count = command->graph_nodes;

	if (command->graph == TS_REPLAY_NONE ||
	    session->plan->order[position] != command->graph_first || !count ||
	    count > session->plan->count - position)
		return;
	for (uint32_t i = 0; i < count; i++)
		if (session->plan->order[position + i] != command->graph_first + i ||
		    session->steps[position + i].is_skipped)
			return;
	for (uint32_t i = 0; i < count; i++)
		session->steps[position + i].graph_end = position + count;
}

int ts_cuda_make_steps(struct ts_replay_session *session, struct ts_error *err)
{
	int failure = TS_OK;

	for (uint32_t i = 0; i < session->plan->count; i++) {
		struct ts_cuda_step *step = &session->steps[i];
		int rc = TS_OK;

		if (step->is_skipped)
			continue;
		find_places(session, step);
		find_graph(session, i);
		rc = make_work(session, step, err);
		if (!rc)
			continue;
		failure = prefix_command(session, i, rc, err);
		if (rc == TS_ENOMEM ||
		    !ts_replay_reject_command(session->replay, session->plan->order[i], err))
			break;
	}
	return failure;
}
