/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that observe and build the emulator's model. Private to src/replay/emulator.
 */
#ifndef TS_REPLAY_EMULATOR_EMULATOR_INTERNAL_H
#define TS_REPLAY_EMULATOR_EMULATOR_INTERNAL_H

#include "replay/emulator/emulator.h"

/* A command waits for the end of another one. */
static inline bool ts_emulator_is_order(const struct ts_graph *graph, const struct ts_edge *edge)
{
	return (edge->kind == TS_EDGE_STREAM || edge->kind == TS_EDGE_GRAPH ||
		edge->kind == TS_EDGE_EVENT) &&
	       edge->from < graph->work->command_count && edge->to < graph->work->command_count;
}

/* A call waits for a command. */
static inline bool ts_emulator_is_host_wait(const struct ts_graph *graph,
					    const struct ts_edge *edge)
{
	return (edge->kind == TS_EDGE_SYNC || edge->kind == TS_EDGE_COPY) &&
	       edge->flags & TS_EDGE_TO_END && edge->from < graph->work->command_count;
}

enum ts_emulator_class ts_emulator_class(const struct ts_graph *graph, uint32_t command);

/* enum ts_emulator_resource; TS_WORK_NONE: none needed. */
static inline uint32_t ts_emulator_resource(const struct ts_work_command *command)
{
	if (command->kind != TS_GPU_OP_COPY)
		return command->class == TS_CLASS_COMPUTE ||
				       command->class == TS_CLASS_COMMUNICATION
			       ? TS_EMULATOR_KERNELS
			       : TS_WORK_NONE;
	switch (command->copy_kind) {
	case TS_COPY_HOST_TO_DEVICE:
		return TS_EMULATOR_UP;
	case TS_COPY_DEVICE_TO_HOST:
		return TS_EMULATOR_DOWN;
	case TS_COPY_PEER_TO_PEER:
		return TS_EMULATOR_PEER;
	default:
		return TS_WORK_NONE;
	}
}

/* ---- observation; those that return int: 0 or TS_ENOMEM ---- */

/* No shorter time is taken for a delay of its own instead of a sample of a latency. */
#define TS_EMULATOR_HELD_NS 1000000

int ts_emulator_observe_slots(struct ts_emulator_observed *observed, const struct ts_graph *graph);

int ts_emulator_imply_waits(struct ts_emulator_observed *observed, const struct ts_graph *graph);

int ts_emulator_observe_held(struct ts_emulator_observed *observed, const struct ts_graph *graph);

/* When a command that was called could have begun without dependencies. */
int64_t ts_emulator_launched(const struct ts_graph *graph, uint32_t command,
			     const struct ts_emulator_latency *latency);

/* End of the last dependency of a command; INT64_MIN: it has none. */
int64_t ts_emulator_ready(const struct ts_graph *graph, uint32_t command);

/* End of the last command that a call waited for; INT64_MIN: it does not wait. */
int64_t ts_emulator_waited_until(const struct ts_graph *graph, uint32_t call);

/* ---- building a model ---- */

struct ts_emulator_arrow {
	int64_t lag_ns;
	uint32_t from, to; /* nodes */
};

struct ts_emulator_build {
	const struct ts_work *work;
	const struct ts_graph *graph;
	const struct ts_emulator_observed *observed;
	struct ts_emulator_shape shape;
	struct ts_emulator_model *model;
	struct ts_emulator_arrow *arrows;
	size_t arrow_count, arrow_capacity;
	size_t point_capacity;
	int64_t *recorded; /* recorded time per point of the threads in the trace, ascending within
			      a thread */
	size_t recorded_capacity;
	uint32_t *end;        /* per call: its end point */
	uint32_t new_streams; /* new streams so far */
	int rc;               /* first failure; later steps are skipped */
};

/* `to` waits for `from`. */
void ts_emulator_add_arrow(struct ts_emulator_build *build, uint32_t from, uint32_t to,
			   int64_t lag_ns);

/* Allocates an array; on failure returns NULL and sets build->rc. */
void *ts_emulator_array(struct ts_emulator_build *build, size_t count, size_t item_bytes);

/* Latency from the end of a command's last dependency to its start. */
int64_t ts_emulator_next_ns(const struct ts_emulator_build *build, uint32_t command);

void ts_emulator_add_waits(struct ts_emulator_build *build);  /* emulator_waits.c */
void ts_emulator_add_queues(struct ts_emulator_build *build); /* emulator_queues.c */
void ts_emulator_add_host(struct ts_emulator_build *build);   /* emulator_host.c */
void ts_emulator_add_wakes(struct ts_emulator_build *build);  /* emulator_wakes.c; after the host */

#endif
