/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host side of the model: each thread is a sequence of call begins and ends at their recorded
 * distances. A call that waited for a device ends when the device is done. Commands without a
 * recorded call get a synthetic thread that submits them.
 */
#include "base/ns.h"
#include "replay/emulator/emulator_internal.h"

static uint32_t add_point(struct ts_emulator_build *build, uint8_t kind, uint32_t what,
			  int64_t gap_ns)
{
	struct ts_emulator_model *model = build->model;

	if (!build->rc)
		build->rc = ts_grow_array((void **)&model->points, &build->point_capacity,
					  (size_t)model->point_count + 1, sizeof(*model->points));
	if (!build->rc && model->point_count >= UINT32_MAX / 2)
		build->rc = TS_ENOMEM;
	if (build->rc)
		return TS_WORK_NONE;
	model->points[model->point_count] =
		(struct ts_emulator_point){ .gap_ns = gap_ns, .what = what, .kind = kind };
	return model->point_count++;
}

static void close_thread(struct ts_emulator_build *build, struct ts_emulator_thread *thread)
{
	thread->count = build->model->point_count - thread->first;
	if (thread->count)
		build->model->points[build->model->point_count - 1].is_last = true;
}

/* ---- threads of the trace ---- */

/* A walk along a thread; calls may be nested. */
struct walk {
	struct ts_emulator_build *build;
	uint32_t *open; /* stack of calls that have not ended */
	uint32_t depth;
	int64_t time; /* recorded time of the last point */
	bool begun;
};

static void pass(struct walk *walk, uint8_t kind, uint32_t call, int64_t time)
{
	struct ts_emulator_build *build = walk->build;
	int64_t gap = walk->begun ? TS_MAX(ts_ns_sub(time, walk->time), 0) : time;
	uint32_t point = add_point(build, kind, call, gap);

	walk->time = walk->begun ? TS_MAX(walk->time, time) : time;
	walk->begun = true;
	if (!build->rc)
		build->rc = ts_grow_array((void **)&build->recorded, &build->recorded_capacity,
					  build->model->point_count, sizeof(*build->recorded));
	if (build->rc)
		return;
	build->recorded[point] = walk->time;
	if (kind == TS_EMULATOR_END)
		build->end[call] = point;
}

static void end_calls(struct walk *walk, int64_t until)
{
	const struct ts_work_call *calls = walk->build->work->calls;

	while (walk->depth && calls[walk->open[walk->depth - 1]].end <= until) {
		uint32_t call = walk->open[--walk->depth];

		pass(walk, TS_EMULATOR_END, call, calls[call].end);
	}
}

static void walk_thread(struct ts_emulator_build *build, const struct ts_work_thread *thread,
			uint32_t *open)
{
	struct walk walk = { .build = build, .open = open };

	for (uint32_t i = 0; i < thread->call_count && !build->rc; i++) {
		uint32_t call = thread->first_call + i;

		end_calls(&walk, build->work->calls[call].start);
		pass(&walk, TS_EMULATOR_BEGIN, call, build->work->calls[call].start);
		open[walk.depth++] = call;
	}
	end_calls(&walk, INT64_MAX);
}

static void add_threads(struct ts_emulator_build *build)
{
	const struct ts_work *work = build->work;
	struct ts_emulator_model *model = build->model;
	TS_AUTO_FREE uint32_t *open = ts_emulator_array(build, work->call_count, sizeof(*open));

	for (uint32_t t = 0; t < work->thread_count && !build->rc; t++) {
		struct ts_emulator_thread *thread = &model->threads[model->thread_count++];

		thread->first = model->point_count;
		walk_thread(build, &work->threads[t], open);
		close_thread(build, thread);
	}
}

/* ---- commands of calls ---- */

static void add_gives(struct ts_emulator_build *build)
{
	const struct ts_work *work = build->work;
	struct ts_emulator_model *model = build->model;
	uint32_t count = 0;

	model->first_submit = ts_emulator_array(build, (size_t)work->call_count + 1,
						sizeof(*model->first_submit));
	model->submits = ts_emulator_array(build, work->command_count, sizeof(*model->submits));
	if (build->rc)
		return;
	for (uint32_t i = 0; i < work->call_count; i++) {
		model->first_submit[i] = count;
		for (uint32_t c = work->calls[i].command; c != TS_WORK_NONE;
		     c = ts_work_next_of_call(work, c))
			model->submits[count++] = c;
	}
	model->first_submit[work->call_count] = count;
}

/* ---- commands without a call ---- */

/*
 * The time of submission, and what the stream was told to wait for, are unknown unless the column
 * `queued` has the time. Otherwise it is guessed from the recorded start: nothing else is known.
 */
static int64_t estimated_submit(struct ts_emulator_build *build, uint32_t c)
{
	const struct ts_work_command *command = &build->work->commands[c];

	if (command->issued != TS_ABSENT)
		return command->issued;
	build->model->guessed_commands++;
	return ts_ns_sub(command->start, build->model->commands[c].launch_ns);
}

static void add_unseen(struct ts_emulator_build *build, const struct ts_work_stream *stream)
{
	const struct ts_work *work = build->work;
	struct ts_emulator_model *model = build->model;
	struct ts_emulator_thread *thread = &model->threads[model->thread_count];
	int64_t last = 0;

	thread->first = model->point_count;
	for (uint32_t i = 0; i < stream->command_count; i++) {
		uint32_t c = stream->first_command + i;
		int64_t issued;

		if (work->commands[c].call != TS_WORK_NONE)
			continue;
		issued = estimated_submit(build, c);
		if (model->point_count > thread->first)
			issued = TS_MAX(issued, last);
		add_point(build, TS_EMULATOR_GIVE, c,
			  model->point_count > thread->first ? issued - last : issued);
		last = issued;
	}
	close_thread(build, thread);
	model->thread_count += thread->count != 0;
}

void ts_emulator_add_host(struct ts_emulator_build *build)
{
	const struct ts_work *work = build->work;
	struct ts_emulator_model *model = build->model;

	model->threads = ts_emulator_array(build, (size_t)work->thread_count + work->stream_count,
					   sizeof(*model->threads));
	build->end = ts_emulator_array(build, work->call_count, sizeof(*build->end));
	if (!build->rc)
		build->rc = ts_grow_array((void **)&model->points, &build->point_capacity,
					  (size_t)work->call_count * 2 + 1, sizeof(*model->points));
	if (!build->rc)
		build->rc = ts_grow_array((void **)&build->recorded, &build->recorded_capacity,
					  (size_t)work->call_count * 2 + 1,
					  sizeof(*build->recorded));
	if (build->rc)
		return;
	add_threads(build);
	if (!build->rc)
		ts_emulator_add_waits(build);
	add_gives(build);
	for (uint32_t s = 0; s < work->stream_count && !build->rc; s++)
		add_unseen(build, &work->streams[s]);
}
