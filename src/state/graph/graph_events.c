/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that wait for events of other streams. Some traces name the event and where it was
 * recorded; most only show that a call made a stream wait. For those an edge is inferred only from
 * evidence: a command that started right after another stream finished, and that nothing else
 * blocked.
 */
#include "state/graph/graph_build.h"

/* A device starts within this time after its dependency ends. */
#define LATENCY_NS 20000
/* Two streams that finish within this time cannot be told apart. */
#define CLOSE_NS 1000
/* Waits of a thread before one command; if there are more, the newest count. */
#define MAX_WAITS 16

/* ---- recorded waits ---- */

static void make_records(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;

	build->records_filled = true;
	for (uint32_t i = 0; i < work->call_count && !build->rc; i++) {
		const struct ts_work_call *call = &work->calls[i];

		if (call->kind == TS_API_EVENT_RECORD && build->has_operands[call->rank])
			build->rc = ts_pairmap_put(&build->records, call->rank,
						   (uint64_t)call->correlation, i);
	}
}

/* Correlation ids increase with time: the latest command of a stream up to one. */
static uint32_t latest_by_correlation(const struct ts_graph_build *build, uint32_t stream,
				      int64_t correlation)
{
	const struct ts_work_stream *in = &build->work->streams[stream];
	uint32_t low = 0, high = in->command_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t command = build->order[in->first_command + middle];

		if (build->work->commands[command].correlation <= correlation)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? build->latest[in->first_command + low - 1] : TS_WORK_NONE;
}

static struct ts_graph_moment sync_moment(const struct ts_work *work,
					  const struct ts_work_sync *sync)
{
	if (sync->call != TS_WORK_NONE)
		return ts_graph_call_moment(work, sync->call);
	return (struct ts_graph_moment){ sync->start, sync->correlation };
}

uint32_t ts_graph_recorded(struct ts_graph_build *build, const struct ts_work_sync *sync,
			   unsigned int *flags)
{
	uint64_t call;

	if (sync->on_stream == TS_WORK_NONE)
		return TS_WORK_NONE;
	if (!build->records_filled)
		make_records(build);
	if (sync->record_correlation != TS_ABSENT &&
	    ts_pairmap_get(&build->records, sync->rank, (uint64_t)sync->record_correlation, &call))
		return ts_graph_latest_before(build, sync->on_stream,
					      ts_graph_call_moment(build->work, (uint32_t)call));
	/* The recording call is not in the trace or not named: some earlier time is assumed. */
	*flags |= TS_EDGE_INFERRED;
	if (sync->record_correlation != TS_ABSENT)
		return latest_by_correlation(build, sync->on_stream, sync->record_correlation);
	return ts_graph_latest_before(build, sync->on_stream, sync_moment(build->work, sync));
}

static void add_recorded(struct ts_graph_build *build, const struct ts_work_sync *sync)
{
	const struct ts_work *work = build->work;
	const struct ts_work_stream *stream = &work->streams[sync->stream];
	unsigned int flags = 0;
	uint32_t source = ts_graph_recorded(build, sync, &flags);
	uint32_t next;

	if (source == TS_WORK_NONE)
		return;
	next = ts_graph_issued_before(build, sync->stream, sync_moment(work, sync));
	if (next < stream->command_count)
		ts_graph_add(build, source, build->order[stream->first_command + next],
			     TS_EDGE_EVENT, flags);
}

/* ---- inferred ---- */

/* When all other dependencies of the command were done. */
static int64_t ready_otherwise(const struct ts_graph_build *build, uint32_t index)
{
	const struct ts_work *work = build->work;
	const struct ts_work_command *command = &work->commands[index];
	const struct ts_work_call *call = &work->calls[command->call];
	uint32_t position = build->position[index];
	/* A call that returned only when the command was done had submitted it long before. */
	int64_t ready = call->end < command->end ? call->end : call->start;

	if (position > work->streams[command->stream].first_command)
		ready = TS_MAX(ready, work->commands[build->latest[position - 1]].end);
	return ready;
}

static uint32_t infer(struct ts_graph_build *build, uint32_t index, int64_t ready,
		      struct ts_graph_moment record)
{
	const struct ts_work_command *command = &build->work->commands[index];
	const struct ts_graph_question question = {
		.rank = command->rank,
		.except = command->stream,
		.from = TS_MAX(ready, command->start - LATENCY_NS),
		.to = command->start,
		.close_ns = CLOSE_NS,
		.moment = record,
	};

	return question.from < question.to ? ts_graph_ended_last(build, &question) : TS_WORK_NONE;
}

struct waits {
	struct ts_graph_moment records[MAX_WAITS]; /* of what each one waits for */
	uint32_t count;                            /* also beyond MAX_WAITS */
};

/* Different waits may resolve to the same command. */
static void infer_all(struct ts_graph_build *build, uint32_t call, const struct waits *waits)
{
	uint32_t command = build->work->calls[call].command;
	int64_t ready = ready_otherwise(build, command);
	uint32_t sources[MAX_WAITS];
	uint32_t count = 0, same;

	for (uint32_t i = 0; i < waits->count && i < MAX_WAITS; i++) {
		uint32_t source = infer(build, command, ready, waits->records[i]);

		for (same = 0; same < count && sources[same] != source; same++)
			;
		if (source == TS_WORK_NONE || same < count)
			continue;
		sources[count++] = source;
		ts_graph_add(build, source, command, TS_EDGE_EVENT, TS_EDGE_INFERRED);
	}
}

/*
 * Assumes that the thread's next command after a wait is the one that waits, and that its last
 * record before the wait is that of the event. Where this is wrong, the times rarely match and no
 * edge results.
 */
static void infer_thread(struct ts_graph_build *build, const struct ts_work_thread *thread)
{
	const struct ts_work *work = build->work;
	struct ts_graph_moment record = { 0 };
	struct waits waits = { .count = 0 };
	bool recorded = false;

	for (uint32_t i = 0; i < thread->call_count && !build->rc; i++) {
		uint32_t call = thread->first_call + i;

		if (work->calls[call].kind == TS_API_EVENT_RECORD) {
			record = ts_graph_call_moment(work, call);
			recorded = true;
		} else if (work->calls[call].kind == TS_API_STREAM_WAIT) {
			/* OpenCL barriers are commands themselves and carry their wait lists. */
			if (work->calls[call].command != TS_WORK_NONE)
				continue;
			waits.records[waits.count++ % MAX_WAITS] =
				recorded ? record : ts_graph_call_moment(work, call);
		} else if (waits.count && work->calls[call].command != TS_WORK_NONE) {
			infer_all(build, call, &waits);
			waits.count = 0;
		}
	}
}

void ts_graph_add_events(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;

	for (uint32_t i = 0; i < work->sync_count; i++) {
		const struct ts_work_sync *sync = &work->syncs[i];

		if (sync->kind == TS_SYNC_STREAM_WAIT && sync->stream != TS_WORK_NONE &&
		    sync->stream != sync->on_stream)
			add_recorded(build, sync);
	}
	for (uint32_t t = 0; t < work->thread_count && !build->rc; t++) {
		if (!build->has_operands[work->threads[t].rank])
			infer_thread(build, &work->threads[t]);
	}
}
