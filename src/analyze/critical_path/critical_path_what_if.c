/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recomputes when everything would happen if some work were faster: one pass over all points,
 * causes first. Several changes share a pass, since its cost is fetching the points.
 */
#include "analyze/critical_path/critical_path.h"

#include <string.h>

#define LANES 4

struct pass {
	const struct ts_path_model *model;
	const struct ts_path_window *window;
	double factors[LANES];
	uint8_t *masks; /* by ts_path_name_key(): bit set of the lanes in which the name changes */
	int64_t (*times)[LANES];
};

static int64_t scale(int64_t lag, double factor)
{
	/* A lag that goes back in time cannot be made shorter. */
	if (lag <= 0)
		return lag;
	return TS_MIN((int64_t)((double)lag * factor + 0.5), lag);
}

/* The part of a lag that changes: all of it or, for a launch, the time inside the call. */
static int64_t changing_part(const struct ts_path_model *model, const struct ts_path_arc *arc)
{
	int64_t call_ns;

	if (arc->scaled)
		return arc->lag;
	call_ns = ts_ns_sub(model->time[model->position[model->point[arc->from] | 1]],
			    model->time[arc->from]);
	return TS_MIN(arc->lag, call_ns);
}

static void add_scaled(const struct pass *pass, const struct ts_path_arc *arc, uint8_t mask,
		       int64_t ret_times[LANES])
{
	int64_t part = changing_part(pass->model, arc), rest = ts_ns_sub(arc->lag, part);

	for (int lane = 0; lane < LANES; lane++) {
		int64_t lag = mask >> lane & 1 ? ts_ns_add(scale(part, pass->factors[lane]), rest)
					       : arc->lag;

		ret_times[lane] =
			TS_MAX(ret_times[lane], ts_ns_add(pass->times[arc->from][lane], lag));
	}
}

static inline void add_plain(const struct pass *pass, const struct ts_path_arc *arc, bool tame,
			     int64_t ret_times[LANES])
{
	const int64_t *from = pass->times[arc->from];

	for (int lane = 0; lane < LANES; lane++) {
		int64_t time = tame ? from[lane] + arc->lag : ts_ns_add(from[lane], arc->lag);

		ret_times[lane] = TS_MAX(ret_times[lane], time);
	}
}

/*
 * Lanes in which an arc differs from the recording: work of a name that changes, or a launch by a
 * call of such a name, begun in the window.
 */
static inline uint8_t changed_lanes(const struct pass *pass, uint32_t at,
				    const struct ts_path_arc *arc)
{
	uint32_t changes = arc->scaled ? at : arc->from;
	uint8_t mask = arc->scaled || arc->kind == TS_EDGE_LAUNCH
			       ? pass->masks[pass->model->name[changes]]
			       : 0;
	int64_t began;

	if (TS_LIKELY(!mask))
		return 0;
	began = pass->model->time[arc->from];
	return began >= pass->window->from && began <= pass->window->to ? mask : 0;
}

/* Compiled twice: sums are checked for overflow only if the model is not tame. */
__attribute__((always_inline)) static inline void run_lanes(const struct pass *pass, bool tame)
{
	const struct ts_path_model *model = pass->model;

	for (uint32_t at = 0; at < model->count; at++) {
		uint32_t a = model->first_arc[at], end = model->first_arc[at + 1];
		int64_t times[LANES];

		for (int lane = 0; lane < LANES; lane++)
			times[lane] = a == end ? model->time[at] : INT64_MIN;
		for (; a < end; a++) {
			const struct ts_path_arc *arc = &model->arcs[a];
			uint8_t mask = changed_lanes(pass, at, arc);

			if (TS_UNLIKELY(mask))
				add_scaled(pass, arc, mask, times);
			else
				add_plain(pass, arc, tame, times);
		}
		memcpy(pass->times[at], times, sizeof(times));
	}
}

static void run_pass(const struct pass *pass)
{
	if (pass->model->tame)
		run_lanes(pass, true);
	else
		run_lanes(pass, false);
}

static void take_end(const struct pass *pass, const struct ts_path_member *member,
		     int64_t ret_ends[LANES])
{
	const int64_t *starts = pass->times[pass->model->position[member->node * 2]];
	const int64_t *ends = pass->times[pass->model->position[member->node * 2 + 1]];

	for (int lane = 0; lane < LANES; lane++) {
		int64_t end = ends[lane];

		if (member->limit != INT64_MAX)
			end = TS_MIN(end, ts_ns_add(starts[lane], member->limit));
		ret_ends[lane] = TS_MAX(ret_ends[lane], end);
	}
}

static void find_ends(const struct pass *pass, int64_t ret_ends[LANES])
{
	const struct ts_path_model *model = pass->model;
	const struct ts_path_window *window = pass->window;
	/* If the window ends after its last recorded point, it keeps that distance. */
	int64_t rest = ts_ns_sub(window->to, model->time[model->position[window->last * 2 + 1]]);

	for (int lane = 0; lane < LANES; lane++)
		ret_ends[lane] = INT64_MIN;
	for (size_t i = 0; i < window->member_count; i++)
		take_end(pass, &window->members[i], ret_ends);
	for (int lane = 0; lane < LANES && rest > 0; lane++)
		ret_ends[lane] = ts_ns_add(ret_ends[lane], rest);
}

static void take_changes(struct pass *pass, const struct ts_path_change *changes, size_t count)
{
	size_t names = ts_strmap_count(&pass->model->graph->work->names);

	memset(pass->masks, 0, names * 2);
	for (size_t lane = 0; lane < TS_MIN(count, LANES); lane++) {
		const struct ts_path_change *change = &changes[lane];

		pass->factors[lane] = change->factor;
		for (size_t name = 0; name < names; name++) {
			if (change->host_names && change->host_names[name])
				pass->masks[name * 2] |= (uint8_t)(1u << lane);
			if (change->device_names && change->device_names[name])
				pass->masks[name * 2 + 1] |= (uint8_t)(1u << lane);
		}
	}
}

int ts_path_what_if(const struct ts_path_model *model, const struct ts_path_window *window,
		    const struct ts_path_change *changes, size_t count, int64_t *ret_ends,
		    struct ts_error *err)
{
	struct pass pass = { .model = model, .window = window };
	int rc = TS_OK;

	if (window->last == TS_WORK_NONE)
		return ts_error_set(err, TS_EINVAL, "the window is empty: nothing can be faster");
	pass.times = ts_alloc_array(model->count, sizeof(*pass.times));
	pass.masks = ts_alloc_array(ts_strmap_count(&model->graph->work->names), 2);
	for (size_t done = 0; done < count && pass.times && pass.masks; done += LANES) {
		int64_t ends[LANES];

		take_changes(&pass, changes + done, count - done);
		run_pass(&pass);
		find_ends(&pass, ends);
		for (size_t lane = 0; lane < LANES && done + lane < count; lane++)
			ret_ends[done + lane] = ends[lane];
	}
	if (!pass.times || !pass.masks)
		rc = ts_error_set(err, TS_ENOMEM, "no memory for the critical path");
	free(pass.masks);
	free(pass.times);
	return rc;
}
