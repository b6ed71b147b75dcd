/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of the state machine: what docs/state.md says of one instant, found by examining
 * everything each time. Slow, and independent of src/state/states/, which must agree.
 */
#ifndef TS_TESTS_UNIT_STATE_STATE_MODEL_H
#define TS_TESTS_UNIT_STATE_STATE_MODEL_H

#include "unit/state/state_fixture.h"

struct model {
	const struct ts_work *work;
	const struct fixture_graph *graph; /* NULL: none */
	const struct ts_states *states;    /* only for usual latencies */
	int64_t tolerance;
};

static inline int64_t end_of(const struct ts_work_command *command)
{
	return TS_MAX(command->start, command->end);
}

static inline int64_t issued_of(const struct ts_work_command *command)
{
	if (command->issued == TS_ABSENT || command->issued > command->start)
		return command->start;
	return command->issued;
}

static inline int64_t handed_of(const struct model *model, const struct ts_work_command *command)
{
	int64_t handed = issued_of(command);

	if (command->call != TS_WORK_NONE)
		handed = TS_MAX(handed, model->work->calls[command->call].end);
	return TS_MIN(handed, command->start);
}

static inline bool same_stream(const struct model *model, uint32_t a, uint32_t b)
{
	return model->work->commands[a].stream == model->work->commands[b].stream;
}

/* Among earlier commands of its stream the one that ended last; TS_WORK_NONE. */
static inline uint32_t last_ahead(const struct model *model, uint32_t c)
{
	const struct ts_work_command *commands = model->work->commands;
	uint32_t last = TS_WORK_NONE;

	for (uint32_t i = 0; i < c; i++) {
		if (same_stream(model, i, c) &&
		    (last == TS_WORK_NONE || end_of(&commands[i]) >= end_of(&commands[last])))
			last = i;
	}
	return last;
}

static inline uint32_t copy_ahead(const struct model *model, uint32_t c)
{
	const struct ts_work_command *commands = model->work->commands;
	uint32_t ahead = TS_WORK_NONE;

	for (uint32_t i = 0; i < model->work->command_count; i++) {
		if (commands[i].kind == TS_GPU_OP_COPY &&
		    commands[i].copy_kind == commands[c].copy_kind &&
		    model->work->streams[commands[i].stream].device ==
			    model->work->streams[commands[c].stream].device &&
		    commands[i].start < commands[c].start &&
		    (ahead == TS_WORK_NONE || commands[i].start > commands[ahead].start))
			ahead = i;
	}
	return ahead;
}

struct expected {
	int64_t handed, ready;
	unsigned int reason;
};

static inline void hold(const struct model *model, struct expected *expected, uint32_t c,
			uint32_t by, unsigned int reason)
{
	const struct ts_work_command *commands = model->work->commands;
	int64_t end = end_of(&commands[by]);

	if (end > commands[c].start + model->tolerance)
		return;
	end = TS_MIN(end, commands[c].start);
	if (end > expected->ready) {
		expected->ready = end;
		expected->reason = reason;
	}
}

static inline struct expected expect(const struct model *model, uint32_t c)
{
	const struct ts_work_command *command = &model->work->commands[c];
	uint32_t last = last_ahead(model, c), copy;
	struct expected expected = { .handed = handed_of(model, command) };

	expected.ready = expected.handed;
	if (last != TS_WORK_NONE) {
		hold(model, &expected, c, last, TS_REASON_QUEUE);
		if (end_of(&model->work->commands[last]) > command->start + model->tolerance &&
		    end_of(command - 1) <= command->start)
			hold(model, &expected, c, c - 1, TS_REASON_QUEUE);
	}
	for (size_t e = 0; model->graph && e < model->graph->graph.edge_count; e++) {
		const struct ts_edge *edge = &model->graph->edges[e];

		if (edge->to == c)
			hold(model, &expected, c, edge->from,
			     same_stream(model, edge->from, c) ? TS_REASON_QUEUE : TS_REASON_EVENT);
	}
	copy = command->kind == TS_GPU_OP_COPY ? copy_ahead(model, c) : TS_WORK_NONE;
	if (copy != TS_WORK_NONE && !same_stream(model, copy, c))
		hold(model, &expected, c, copy, TS_REASON_COPY_ENGINE);
	return expected;
}

/* State and reason of a command that was submitted and has not begun. */
static inline unsigned int waiting(const struct model *model, uint32_t c, int64_t time,
				   unsigned int *ret_reason)
{
	const struct ts_work_command *command = &model->work->commands[c];
	const struct ts_state_latency *latency =
		&model->states->latencies[model->work->streams[command->stream].device];
	struct expected expected = expect(model, c);

	*ret_reason = TS_REASON_NONE;
	if (time < expected.handed)
		return TS_STATE_DISPATCH_PENDING;
	if (expected.ready == expected.handed && time < issued_of(command) + latency->launch_ns)
		return TS_STATE_DISPATCH_PENDING;
	*ret_reason = expected.ready > expected.handed && time < expected.ready + latency->next_ns
			      ? expected.reason
			      : TS_REASON_UNKNOWN;
	return TS_STATE_WAIT;
}

/* `next` is issued first of those that begin later, `soonest` begins first. */
static inline unsigned int idle_reason(const struct model *model, uint32_t next, uint32_t soonest,
				       bool begun, int64_t time)
{
	const struct ts_work *work = model->work;
	const struct ts_work_command *command = &work->commands[next];

	if (next == TS_WORK_NONE || !begun)
		return TS_REASON_NOTHING;
	if (command->issued == TS_ABSENT || work->commands[soonest].issued == TS_ABSENT)
		return TS_REASON_LAUNCH_MISSING;
	for (uint32_t i = 0; command->call != TS_WORK_NONE && i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];

		if (call->thread == work->calls[command->call].thread &&
		    call->kind == TS_API_STREAM_SYNC && call->start <= time && time < call->end)
			return TS_REASON_DEPENDENCY;
	}
	return TS_REASON_HOST_BOUND;
}

static inline unsigned int stream_at(const struct model *model, uint32_t stream, int64_t time,
				     unsigned int *ret_reason)
{
	const struct ts_work_command *commands = model->work->commands;
	uint32_t next = TS_WORK_NONE, soonest = TS_WORK_NONE;
	bool begun = false;

	*ret_reason = TS_REASON_NONE;
	for (uint32_t i = 0; i < model->work->command_count; i++) {
		if (commands[i].stream != stream)
			continue;
		if (commands[i].start <= time && time < end_of(&commands[i]))
			return TS_STATE_RUNNING;
		begun = begun || commands[i].start <= time;
		if (commands[i].start > time &&
		    (next == TS_WORK_NONE || issued_of(&commands[i]) < issued_of(&commands[next])))
			next = i;
		if (commands[i].start > time &&
		    (soonest == TS_WORK_NONE || commands[i].start < commands[soonest].start))
			soonest = i;
	}
	if (next != TS_WORK_NONE && issued_of(&commands[next]) <= time)
		return waiting(model, next, time, ret_reason);
	*ret_reason = idle_reason(model, next, soonest, begun, time);
	return TS_STATE_IDLE;
}

static inline unsigned int device_at(const struct model *model, uint32_t device, int64_t time,
				     unsigned int *ret_reason)
{
	unsigned int best = TS_STATE_IDLE, reason;

	*ret_reason = TS_REASON_NOTHING;
	for (uint32_t s = 0; s < model->work->stream_count; s++) {
		unsigned int state;

		if (model->work->streams[s].device != device)
			continue;
		state = stream_at(model, s, time, &reason);
		if (state > best || (state == best && reason < *ret_reason)) {
			best = state;
			*ret_reason = reason;
		}
	}
	return best;
}

#endif
