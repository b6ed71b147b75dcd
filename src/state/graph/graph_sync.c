/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host waits: synchronisations of streams, events and devices, and blocking copies. Taken from rows
 * with operands where the trace has them, else inferred conservatively.
 */
#include "state/graph/graph_build.h"

static void add_wait(struct ts_graph_build *build, uint32_t command, uint32_t call,
		     unsigned int flags)
{
	if (command != TS_WORK_NONE)
		ts_graph_add(build, command, ts_graph_call_node(build->graph, call), TS_EDGE_SYNC,
			     TS_EDGE_TO_END | flags);
}

/* ---- recorded synchronisations of streams and events ---- */

static void add_recorded(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;

	for (uint32_t i = 0; i < work->sync_count; i++) {
		const struct ts_work_sync *sync = &work->syncs[i];
		unsigned int flags = 0;
		uint32_t command = TS_WORK_NONE;

		/* A query names an event too, but does not wait. */
		if (sync->call == TS_WORK_NONE || work->calls[sync->call].kind == TS_API_QUERY)
			continue;
		if (sync->kind == TS_SYNC_STREAM && sync->stream != TS_WORK_NONE)
			command = ts_graph_latest_before(build, sync->stream,
							 ts_graph_call_moment(work, sync->call));
		else if (sync->kind == TS_SYNC_EVENT)
			command = ts_graph_recorded(build, sync, &flags);
		add_wait(build, command, sync->call, flags);
	}
}

/* ---- streams and events, inferred ---- */

static void infer_wait(struct ts_graph_build *build, uint32_t call, struct ts_graph_moment moment)
{
	const struct ts_work_call *waiting = &build->work->calls[call];
	const struct ts_graph_question question = {
		.rank = waiting->rank,
		.except = TS_WORK_NONE,
		.from = waiting->start,
		.to = waiting->end,
		.close_ns = -1,
		.moment = moment,
	};

	add_wait(build, ts_graph_ended_last(build, &question), call, TS_EDGE_INFERRED);
}

/* A wait for an event covers what was issued before the thread's last record. */
static void infer_thread(struct ts_graph_build *build, const struct ts_work_thread *thread)
{
	const struct ts_work *work = build->work;
	struct ts_graph_moment record = { 0 };
	bool recorded = false;

	for (uint32_t i = 0; i < thread->call_count; i++) {
		uint32_t call = thread->first_call + i;
		uint8_t kind = work->calls[call].kind;

		if (kind == TS_API_EVENT_RECORD) {
			record = ts_graph_call_moment(work, call);
			recorded = true;
		} else if (kind == TS_API_STREAM_SYNC || (kind == TS_API_EVENT_SYNC && !recorded)) {
			infer_wait(build, call, ts_graph_call_moment(work, call));
		} else if (kind == TS_API_EVENT_SYNC) {
			infer_wait(build, call, record);
		}
	}
}

/* ---- devices ---- */

struct device_sync {
	uint32_t device;
	uint32_t call;
	struct ts_graph_moment moment;
};

struct device_syncs {
	struct device_sync *list;
	size_t count, capacity;
	struct ts_map recorded_calls; /* calls */
};

static void add_device_sync(struct ts_graph_build *build, struct device_syncs *syncs,
			    uint32_t device, uint32_t call)
{
	struct device_sync sync = {
		.device = device,
		.call = call,
		.moment = ts_graph_call_moment(build->work, call),
	};

	if (!build->rc)
		build->rc = ts_grow_array((void **)&syncs->list, &syncs->capacity, syncs->count + 1,
					  sizeof(sync));
	if (!build->rc)
		syncs->list[syncs->count++] = sync;
}

static void collect_recorded(struct ts_graph_build *build, struct device_syncs *syncs)
{
	const struct ts_work *work = build->work;

	for (uint32_t i = 0; i < work->sync_count && !build->rc; i++) {
		const struct ts_work_sync *sync = &work->syncs[i];

		if (sync->kind != TS_SYNC_CONTEXT || sync->call == TS_WORK_NONE ||
		    sync->device == TS_WORK_NONE)
			continue;
		add_device_sync(build, syncs, sync->device, sync->call);
		if (!build->rc)
			build->rc = ts_map_put(&syncs->recorded_calls, sync->call, 1);
	}
}

/* A call waits for its rank's device; with several devices, for the one its thread used last. */
static void collect_thread(struct ts_graph_build *build, struct device_syncs *syncs,
			   const struct ts_work_thread *thread)
{
	const struct ts_work *work = build->work;
	const struct ts_work_rank *rank = &work->ranks[thread->rank];
	uint32_t device = rank->device_count == 1 ? rank->first_device : TS_WORK_NONE;
	uint64_t unused;

	for (uint32_t i = 0; i < thread->call_count && !build->rc; i++) {
		uint32_t call = thread->first_call + i;
		uint32_t command = work->calls[call].command;

		if (command != TS_WORK_NONE && rank->device_count != 1)
			device = work->streams[work->commands[command].stream].device;
		if (work->calls[call].kind == TS_API_DEVICE_SYNC && device != TS_WORK_NONE &&
		    !ts_map_get(&syncs->recorded_calls, call, &unused))
			add_device_sync(build, syncs, device, call);
	}
}

static int compare_device_syncs(const void *one, const void *other)
{
	const struct device_sync *a = one, *b = other;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->moment.time != b->moment.time)
		return a->moment.time < b->moment.time ? -1 : 1;
	if (a->moment.correlation != b->moment.correlation)
		return a->moment.correlation < b->moment.correlation ? -1 : 1;
	return a->call < b->call ? -1 : a->call > b->call;
}

/* Index of the first of `count` synchronisations after a command's issue time. */
static size_t first_sync_after(const struct device_sync *syncs, size_t count, int64_t issued,
			       int64_t correlation)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct ts_graph_moment *moment = &syncs[middle].moment;

		if (moment->time < issued ||
		    (moment->time == issued && moment->correlation != TS_ABSENT &&
		     moment->correlation < correlation))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Each synchronisation only needs edges from commands issued since the previous one. */
static void add_stream_of_device(struct ts_graph_build *build, uint32_t stream,
				 const struct device_sync *syncs, size_t count)
{
	const struct ts_work_stream *in = &build->work->streams[stream];
	uint32_t done = 0;

	while (done < in->command_count) {
		uint32_t position = in->first_command + done;
		size_t next =
			first_sync_after(syncs, count, build->issued[position],
					 build->work->commands[build->order[position]].correlation);

		if (next == count)
			return;
		done = TS_MAX(ts_graph_issued_before(build, stream, syncs[next].moment), done + 1);
		add_wait(build, build->latest[in->first_command + done - 1], syncs[next].call, 0);
	}
}

static void add_device_syncs(struct ts_graph_build *build, struct device_syncs *syncs)
{
	ts_sort(syncs->list, syncs->count, sizeof(*syncs->list), compare_device_syncs);
	for (size_t i = 0, end; i < syncs->count; i = end) {
		const struct ts_work_device *device = &build->work->devices[syncs->list[i].device];

		for (end = i + 1; end < syncs->count; end++) {
			if (syncs->list[end].device != syncs->list[i].device)
				break;
		}
		for (uint32_t s = 0; s < device->stream_count; s++)
			add_stream_of_device(build, device->first_stream + s, &syncs->list[i],
					     end - i);
	}
}

static void add_devices(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;
	struct device_syncs syncs = { 0 };

	collect_recorded(build, &syncs);
	for (uint32_t t = 0; t < work->thread_count; t++)
		collect_thread(build, &syncs, &work->threads[t]);
	if (syncs.count && !build->rc)
		add_device_syncs(build, &syncs);
	free(syncs.list);
	ts_map_release(&syncs.recorded_calls);
}

/* ---- copies ---- */

#define NAME_MET 1u
#define NAME_BLOCKING 2u /* as the name of a call */
#define NAME_PAGEABLE 4u /* as the name of a copy */
#define NAME_MAY_BLOCK 8u

static unsigned int name_facts(struct ts_graph_build *build, uint32_t name)
{
	const char *text;
	unsigned int facts = NAME_MET;

	if (build->names[name])
		return build->names[name];
	text = ts_work_text(build->work, name);
	if (ts_api_is_blocking(text, strlen(text)))
		facts |= NAME_BLOCKING;
	if (ts_api_may_block(text, strlen(text)))
		facts |= NAME_MAY_BLOCK;
	if (strstr(text, "Pageable"))
		facts |= NAME_PAGEABLE;
	build->names[name] = (uint8_t)facts;
	return facts;
}

/*
 * A copy from or to pageable memory completes inside its call, whatever the call's name. An
 * optionally blocking call blocked if the copy completed inside it.
 */
static void add_copy(struct ts_graph_build *build, uint32_t index)
{
	const struct ts_work_command *command = &build->work->commands[index];
	const struct ts_work_call *call = &build->work->calls[command->call];
	uint32_t node = ts_graph_call_node(build->graph, command->call);
	unsigned int facts = name_facts(build, call->name);

	if (facts & NAME_BLOCKING)
		ts_graph_add(build, index, node, TS_EDGE_COPY, TS_EDGE_TO_END);
	else if (((facts & NAME_MAY_BLOCK) || (name_facts(build, command->name) & NAME_PAGEABLE)) &&
		 command->end <= call->end)
		ts_graph_add(build, index, node, TS_EDGE_COPY, TS_EDGE_TO_END | TS_EDGE_INFERRED);
}

static void add_copies(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;
	size_t names = ts_strmap_count(&work->names);

	build->names = ts_graph_array(build, names, sizeof(*build->names));
	if (!build->names)
		return;
	memset(build->names, 0, names);
	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (command->call != TS_WORK_NONE &&
		    (command->kind == TS_GPU_OP_COPY ||
		     work->calls[command->call].kind == TS_API_COPY))
			add_copy(build, i);
	}
}

void ts_graph_add_syncs(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;

	add_recorded(build);
	for (uint32_t t = 0; t < work->thread_count && !build->rc; t++) {
		if (!build->has_operands[work->threads[t].rank])
			infer_thread(build, &work->threads[t]);
	}
	add_devices(build);
	add_copies(build);
}
