/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs, built from the nodes of their first launch: they run as graphs if all nodes run and none
 * is looked at.
 */
#include <inttypes.h>
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

struct build {
	struct ts_replay_session *session;
	void *graph;
	uint32_t first; /* position of the first node */
	uint32_t count;
	void **nodes; /* by number of the node */
	void **after;
	uint32_t *positions; /* by number of the node */
};

/* ---- nodes ---- */

static int add_kernel(struct build *build, const struct ts_cuda_step *step, void **node,
		      size_t after)
{
	const struct ts_cuda_launch *launch = step->launch;
	const struct cuda_launch_config *config = &launch->config;
	size_t param_bytes = launch->param_bytes;
	void *extra[] = { CUDA_LAUNCH_PARAM_BUFFER_POINTER, launch->params,
			  CUDA_LAUNCH_PARAM_BUFFER_SIZE, &param_bytes, CUDA_LAUNCH_PARAM_END };
	struct cuda_kernel_node params = { .function = launch->function,
					   .shared_bytes = config->shared_bytes,
					   .extra = param_bytes ? extra : NULL };
	const struct cuda_driver_functions *cu = &build->session->cu;
	int code;

	memcpy(params.grid, config->grid, sizeof(params.grid));
	memcpy(params.block, config->block, sizeof(params.block));
	code = cu->GraphAddKernelNode(node, build->graph, build->after, after, &params);
	for (uint32_t i = 0; i < config->attribute_count && !code; i++)
		code = cu->GraphKernelNodeSetAttribute(*node, (int)config->attributes[i].id,
						       config->attributes[i].value);
	return code;
}

static int add_copy(struct build *build, const struct ts_cuda_step *step, void **node, size_t after)
{
	const struct ts_replay_command_info *command = step->command;
	struct ts_replay_session *session = build->session;
	struct cuda_copy_3d copy = { .width = command->bytes, .height = 1, .depth = 1 };

	if (command->is_rect) {
		ts_cuda_describe_rect(session, step, &copy);
		if (copy.depth <= 1)
			copy.from_height = copy.to_height = TS_MAX(copy.height, (size_t)1);
	} else {
		copy.from_type = command->blob.id ? CUDA_MEMORY_HOST : CUDA_MEMORY_UNIFIED;
		copy.to_type = CUDA_MEMORY_UNIFIED;
		copy.from_pitch = copy.to_pitch = command->bytes;
		copy.from_height = copy.to_height = 1;
		if (command->blob.id)
			copy.from_host = step->host;
		else
			copy.from_device =
				ts_cuda_address(session, command->other, command->other_offset);
		copy.to_device =
			command->object == TS_REPLAY_NONE
				? (uintptr_t)(step->scratch ? step->scratch : session->scratch)
				: ts_cuda_address(session, command->object, command->offset);
		if (!command->bytes)
			return session->cu.GraphAddEmptyNode(node, build->graph, build->after,
							     after);
	}
	return session->cu.GraphAddMemcpyNode(node, build->graph, build->after, after, &copy,
					      step->context);
}

static int add_fill(struct build *build, const struct ts_cuda_step *step, void **node, size_t after)
{
	const struct ts_replay_command_info *command = step->command;
	struct ts_replay_session *session = build->session;
	struct cuda_fill_node fill = { .height = 1 };

	fill.to = ts_cuda_address(session, command->object, command->offset);
	fill.value = ts_cuda_pattern(step, &fill.element_bytes);
	fill.width = command->bytes / fill.element_bytes;
	if (command->is_rect) {
		fill.to += command->to.origin[0] + command->to.origin[1] * command->to.row;
		fill.width = command->region[0] / fill.element_bytes;
		fill.height = command->region[1];
		fill.pitch = command->to.row;
	}
	if (!fill.width || !fill.height)
		return session->cu.GraphAddEmptyNode(node, build->graph, build->after, after);
	return session->cu.GraphAddMemsetNode(node, build->graph, build->after, after, &fill,
					      step->context);
}

static int add_event(struct build *build, const struct ts_cuda_step *step, void **node,
		     size_t after)
{
	struct ts_replay_session *session = build->session;
	bool is_record = step->command->kind == TS_COMMAND_RECORD;
	uint64_t number = is_record                    ? step->command->event
			  : step->command->event_count ? step->command->events[0]
						       : 0;
	uint64_t event = 0;

	if (!number || !ts_map_get(&session->events, number, &event) || !event)
		return session->cu.GraphAddEmptyNode(node, build->graph, build->after, after);
	if (is_record)
		return session->cu.GraphAddEventRecordNode(node, build->graph, build->after, after,
							   (void *)(uintptr_t)event);
	return session->cu.GraphAddEventWaitNode(node, build->graph, build->after, after,
						 (void *)(uintptr_t)event);
}

/* ---- a graph ---- */

/* The nodes that it depends on, which come before it. */
static size_t gather(struct build *build, const struct ts_cuda_step *step)
{
	size_t count = 0;

	for (uint32_t i = 0; i < step->command->node_after_count; i++) {
		uint32_t number = step->command->node_after[i];

		if (number < build->count && build->nodes[number])
			build->after[count++] = build->nodes[number];
	}
	return count;
}

static int add_node(struct build *build, uint32_t position, struct ts_error *err)
{
	const struct ts_cuda_step *step = &build->session->steps[position];
	size_t after = gather(build, step);
	void *node = NULL;
	int code;

	if (step->command->node >= build->count)
		return ts_error_set(err, TS_EFORMAT, "a node of a graph has number %u of %u",
				    step->command->node, build->count);
	switch (step->command->kind) {
	case TS_COMMAND_LAUNCH:
		code = add_kernel(build, step, &node, after);
		break;
	case TS_COMMAND_COPY:
		code = add_copy(build, step, &node, after);
		break;
	case TS_COMMAND_FILL:
		code = add_fill(build, step, &node, after);
		break;
	default:
		code = add_event(build, step, &node, after);
	}
	build->nodes[step->command->node] = node;
	return code ? ts_cuda_fail_command(build->session, position, code, err) : TS_OK;
}

static int instantiate(struct build *build, uint32_t graph, struct ts_error *err)
{
	struct ts_replay_session *session = build->session;
	struct ts_cuda_object *object = &session->objects[graph];
	int code = session->cu.GraphInstantiate(&object->handle, build->graph, 0);

	return code ? ts_cuda_fail_object(session, graph, code, err) : TS_OK;
}

static int build_graph(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	uint32_t graph = step->command->graph, count = step->command->graph_nodes;
	TS_AUTO_FREE void **nodes = calloc(count + 1u, sizeof(*nodes));
	TS_AUTO_FREE void **after = calloc(count + 1u, sizeof(*after));
	struct build build = { .session = session,
			       .first = position,
			       .count = count,
			       .nodes = nodes,
			       .after = after };
	int code, rc = TS_OK;

	if (!nodes || !after)
		return ts_error_set(err, TS_ENOMEM, "no memory for a graph");
	code = ts_cuda_enter(session, step->context);
	if (!code)
		code = session->cu.GraphCreate(&build.graph, 0);
	if (code)
		return ts_cuda_fail_object(session, graph, code, err);
	session->objects[graph].graph = build.graph;
	for (uint32_t i = 0; i < count && !rc; i++)
		rc = add_node(&build, position + i, err);
	return rc ? rc : instantiate(&build, graph, err);
}

/* Every node must have all its bytes: they are read when the graph runs, again and again. */
static bool can_build(const struct ts_replay_session *session, uint32_t position)
{
	for (uint32_t i = position; i < session->steps[position].graph_end; i++) {
		const struct ts_cuda_step *step = &session->steps[i];
		const struct ts_replay_command_info *command = step->command;

		if (command->kind == TS_COMMAND_COPY &&
		    ((command->blob.id && !step->host) ||
		     (command->object == TS_REPLAY_NONE && !step->scratch)))
			return false;
		if (command->is_rect && command->kind == TS_COMMAND_COPY && command->region[2] > 1)
			return false;
		if (command->event_count > 1 || command->node_after_count > command->graph_nodes)
			return false;
	}
	return true;
}

/*
 * The driver checks a node against the settings of its kernel when the graph is made, which is in
 * the stream at its first launch.
 */
static int apply_setting(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	int code;

	if (!ts_cuda_sets_function(session, step))
		return TS_OK;
	code = ts_cuda_enter(session, step->context);
	if (!code)
		code = ts_cuda_apply_setting(session, step);
	return code ? ts_cuda_fail_command(session, position, code, err) : TS_OK;
}

int ts_cuda_make_graphs(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	if (ts_cuda_is_serial(session))
		return TS_OK;
	for (uint32_t i = 0; i < session->plan->count && !rc; i++) {
		const struct ts_cuda_step *step = &session->steps[i];
		uint32_t end = step->graph_end;

		rc = apply_setting(session, i, err);
		if (rc || !end)
			continue;
		if (!session->objects[step->command->graph].graph && can_build(session, i))
			rc = build_graph(session, i, err);
		i = end - 1;
	}
	return rc ? rc : ts_cuda_reset_settings(session, true, err);
}

void ts_cuda_free_graphs(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		struct ts_cuda_object *object = &session->objects[i];

		if (!object->graph)
			continue;
		if (object->handle)
			session->cu.GraphExecDestroy(object->handle);
		session->cu.GraphDestroy(object->graph);
	}
}
