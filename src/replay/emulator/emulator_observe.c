/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the recorded machine: how long a queue takes to start a command, how long calls continue
 * after what they waited for, how many commands a device runs concurrently. With emulator_held.c
 * and emulator_slots.c the only part of the emulator that reads recorded start times.
 */
#include <stdlib.h>

#include "base/ns.h"
#include "replay/emulator/emulator_internal.h"

__extension__ typedef __int128 wide_int;

#define FEW_SAMPLES 16u        /* with fewer, samples of the entire device are used */
#define SAMPLES_A_STREAM 4096u /* with more, every n-th is used */
#define ODD_NS 20000
#define WILD_NS 50000
#define LAUNCH_NS 5000 /* default without samples */
#define NEXT_NS 1000
#define FAR 8 /* times the median */

/* ---- groups of samples ---- */

struct sample {
	int64_t value;
	uint32_t group;
};

struct samples {
	struct sample *list;
	size_t count, capacity;
	int rc;
};

static void add_sample(struct samples *samples, uint32_t group, int64_t value)
{
	if (!samples->rc)
		samples->rc = ts_grow_array((void **)&samples->list, &samples->capacity,
					    samples->count + 1, sizeof(*samples->list));
	if (!samples->rc)
		samples->list[samples->count++] = (struct sample){ value, group };
}

static int compare_samples(const void *a_, const void *b_)
{
	const struct sample *a = a_, *b = b_;

	return a->group != b->group ? TS_COMPARE(a->group, b->group)
				    : TS_COMPARE(a->value, b->value);
}

static void sort_samples(struct samples *samples)
{
	ts_sort(samples->list, samples->count, sizeof(*samples->list), compare_samples);
}

/* A group of sorted samples. */
struct group {
	size_t count; /* without those above most */
	/* The mean, so that sums come out right, with outliers clamped. */
	int64_t usual;
	int64_t least;  /* mean of the lower quarter */
	int64_t spread; /* interquartile range */
	int64_t most;   /* samples above it are no samples, but delays of their own */
	uint32_t number;
};

static int64_t mean(const struct sample *samples, size_t count, int64_t most)
{
	wide_int sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += TS_MIN(samples[i].value, most);
	return (int64_t)(sum / (wide_int)count);
}

/* With few samples the median may itself be such a delay. */
static int64_t most_of(const struct sample *sorted, size_t count)
{
	int64_t median = count < FEW_SAMPLES ? 0 : TS_MAX(sorted[count / 2].value, 0);

	return TS_MAX(TS_EMULATOR_HELD_NS, FAR * TS_MIN(median, INT64_MAX / FAR));
}

static void measure_group(struct group *group, const struct sample *sorted)
{
	size_t count = group->count, cut = count / 4;
	int64_t lower = sorted[cut].value, upper = sorted[count - cut - 1].value;

	group->usual =
		mean(sorted, count,
		     ts_ns_add(upper, TS_MAX(3 * TS_MIN(upper - lower, INT64_MAX / 4), ODD_NS)));
	group->least = mean(sorted, cut ? cut : 1, INT64_MAX);
	group->spread = upper - lower;
}

/* Finds the next group, from *at on. */
static bool next_group(const struct samples *samples, size_t *at, struct group *ret_group)
{
	size_t left = samples->count - *at, count = 0;
	const struct sample *list;

	if (left == 0)
		return false;
	list = samples->list + *at;
	while (count < left && list[count].group == list[0].group)
		count++;
	*at += count;
	*ret_group = (struct group){ .most = most_of(list, count), .number = list[0].group };
	while (count && list[count - 1].value > ret_group->most)
		count--;
	ret_group->count = count;
	if (count)
		measure_group(ret_group, list);
	return true;
}

/* ---- latencies ---- */

int64_t ts_emulator_ready(const struct ts_graph *graph, uint32_t command)
{
	int64_t ready = INT64_MIN;

	for (uint32_t e = graph->first_in[command]; e < graph->first_in[command + 1]; e++)
		if (ts_emulator_is_order(graph, &graph->edges[e]))
			ready = TS_MAX(ready, ts_graph_node_end(graph, graph->edges[e].from));
	return ready;
}

/* Groups of samples: by class and stream, followed by class and device. */
static uint32_t stream_group(uint32_t stream, enum ts_emulator_class class)
{
	return stream * TS_EMULATOR_CLASSES + (uint32_t) class;
}

static uint32_t device_group(const struct ts_work *work, uint32_t stream,
			     enum ts_emulator_class class)
{
	return (work->stream_count + work->streams[stream].device) * TS_EMULATOR_CLASSES +
	       (uint32_t) class;
}

static void add_latency(struct samples *samples, const struct ts_graph *graph, uint32_t command,
			int64_t value)
{
	uint32_t stream = graph->work->commands[command].stream;
	enum ts_emulator_class class = ts_emulator_class(graph, command);

	add_sample(samples, stream_group(stream, class), value);
	add_sample(samples, device_group(graph->work, stream, class), value);
}

static uint32_t group_count(const struct ts_work *work)
{
	return (work->stream_count + work->device_count) * TS_EMULATOR_CLASSES;
}

/* The usual value of each group; a stream with few samples uses its device's. count 0: unknown. */
static struct group *find_groups(struct samples *samples, const struct ts_work *work)
{
	struct group *groups = calloc(group_count(work) + 1u, sizeof(*groups));
	struct group group;
	size_t at = 0;

	if (!groups || samples->rc) {
		free(groups);
		return NULL;
	}
	sort_samples(samples);
	while (next_group(samples, &at, &group))
		groups[group.number] = group;
	for (uint32_t s = 0; s < work->stream_count; s++)
		for (uint32_t c = 0; c < TS_EMULATOR_CLASSES; c++)
			if (groups[stream_group(s, c)].count < FEW_SAMPLES)
				groups[stream_group(s, c)] = groups[device_group(work, s, c)];
	return groups;
}

/*
 * A latency with such a spread is not one: something that the trace does not show held those
 * commands, such as a busy device without a copy engine. The mean of the lower quarter is the
 * latency without that.
 */
static int64_t latency_of(const struct group *group)
{
	return group->spread > WILD_NS ? group->least : group->usual;
}

/* The instant from which a command's latency is measured; false: the command is not a sample. */
typedef bool (*base_function)(const struct ts_graph *graph, uint32_t command,
			      const struct ts_emulator_observed *observed, int64_t *ret_base);

static bool from_begin(const struct ts_graph *graph, uint32_t command,
		       const struct ts_emulator_observed *observed, int64_t *ret_base)
{
	(void)observed;
	*ret_base = graph->work->commands[command].issued;
	return *ret_base != TS_ABSENT && ts_emulator_ready(graph, command) <= *ret_base;
}

static bool from_end(const struct ts_graph *graph, uint32_t command,
		     const struct ts_emulator_observed *observed, int64_t *ret_base)
{
	uint32_t call = graph->work->commands[command].call;

	if (call == TS_WORK_NONE || !from_begin(graph, command, observed, ret_base))
		return false;
	*ret_base = graph->work->calls[call].end;
	return true;
}

int64_t ts_emulator_launched(const struct ts_graph *graph, uint32_t command,
			     const struct ts_emulator_latency *latency)
{
	const struct ts_work_command *of = &graph->work->commands[command];
	int64_t submitted = of->issued;

	if (latency->from_end && of->call != TS_WORK_NONE)
		submitted = graph->work->calls[of->call].end;
	return ts_ns_add(submitted, TS_MAX(latency->launch_ns, 0));
}

/* Only if its last dependency ended after the instant at which it could have begun otherwise. */
static bool from_ahead(const struct ts_graph *graph, uint32_t command,
		       const struct ts_emulator_observed *observed, int64_t *ret_base)
{
	const struct ts_work_command *of = &graph->work->commands[command];
	const struct ts_emulator_latency *latency =
		&observed->latencies[of->stream][ts_emulator_class(graph, command)];

	*ret_base = ts_emulator_ready(graph, command);
	return of->issued != TS_ABSENT && *ret_base != INT64_MIN &&
	       *ret_base >= ts_emulator_launched(graph, command, latency);
}

static struct group *observe_latency(const struct ts_graph *graph,
				     const struct ts_emulator_observed *observed,
				     base_function base_of)
{
	const struct ts_work *work = graph->work;
	struct samples samples = { 0 };
	struct group *groups;

	for (uint32_t s = 0; s < work->stream_count; s++) {
		uint32_t count = work->streams[s].command_count;
		uint32_t stride = count / SAMPLES_A_STREAM + 1;

		for (uint32_t i = 0; i < count; i += stride) {
			uint32_t c = work->streams[s].first_command + i;
			int64_t base;

			if (base_of(graph, c, observed, &base) &&
			    work->commands[c].start >= work->commands[c].issued)
				add_latency(&samples, graph, c, work->commands[c].start - base);
		}
	}
	groups = find_groups(&samples, work);
	free(samples.list);
	return groups;
}

static void take_launch(struct ts_emulator_latency *latency, enum ts_emulator_class class,
			const struct group *begin, const struct group *end)
{
	*latency = (struct ts_emulator_latency){
		.launch_ns = LAUNCH_NS,
		.next_ns = NEXT_NS,
		.most_ns = TS_MAX(begin->most, TS_EMULATOR_HELD_NS),
	};
	if (begin->count)
		latency->launch_ns = latency_of(begin);
	/* The duration of a call that waited is not only host time. */
	if (class == TS_EMULATOR_BLOCKING || end->count == 0 || end->spread >= begin->spread)
		return;
	latency->launch_ns = latency_of(end);
	latency->from_end = true;
}

static void take_next(struct ts_emulator_latency *latency, const struct group *ahead)
{
	if (ahead->count)
		latency->next_ns = latency_of(ahead);
	latency->most_ns = TS_MAX(latency->most_ns, ahead->most);
}

static int observe_latencies(struct ts_emulator_observed *observed, const struct ts_graph *graph)
{
	uint32_t streams = graph->work->stream_count;
	TS_AUTO_FREE struct group *begin = observe_latency(graph, observed, from_begin);
	TS_AUTO_FREE struct group *end = observe_latency(graph, observed, from_end);
	TS_AUTO_FREE struct group *ahead = NULL;

	observed->latencies = ts_alloc_array(streams, sizeof(*observed->latencies));
	if (!begin || !end || !observed->latencies)
		return TS_ENOMEM;
	for (uint32_t s = 0; s < streams; s++)
		for (uint32_t c = 0; c < TS_EMULATOR_CLASSES; c++)
			take_launch(&observed->latencies[s][c], c, &begin[stream_group(s, c)],
				    &end[stream_group(s, c)]);
	ahead = observe_latency(graph, observed, from_ahead);
	if (!ahead)
		return TS_ENOMEM;
	for (uint32_t s = 0; s < streams; s++)
		for (uint32_t c = 0; c < TS_EMULATOR_CLASSES; c++)
			take_next(&observed->latencies[s][c], &ahead[stream_group(s, c)]);
	return TS_OK;
}

/* ---- calls that wait ---- */

/* The time of a call after what it waited for; -1: there was nothing to wait for. */
static int64_t tail_of(const struct ts_graph *graph, uint32_t call)
{
	const struct ts_work_call *of = &graph->work->calls[call];
	int64_t until = ts_emulator_waited_until(graph, call);

	return until > of->start ? TS_MAX(ts_ns_sub(of->end, until), 0) : -1;
}

/* Group: twice the name of the call, plus 1 for the time after what it waited for. */
static void sample_calls(struct samples *samples, const struct ts_graph *graph,
			 const int64_t *tails)
{
	const struct ts_work *work = graph->work;

	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];

		if (tails[i] >= 0)
			add_sample(samples, call->name * 2 + 1, tails[i]);
		else if (ts_api_is_sync(call->kind) ||
			 ts_emulator_waited_until(graph, i) != INT64_MIN)
			add_sample(samples, call->name * 2, TS_MAX(call->end - call->start, 0));
	}
}

/* A call that was held up keeps its own tail. */
static void take_tails(struct ts_emulator_observed *observed, const struct ts_work *work,
		       const struct group *tails)
{
	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct group *usual = &tails[work->calls[i].name];

		if (observed->tail_ns[i] <= usual->most)
			observed->tail_ns[i] = usual->usual;
	}
}

static int observe_calls(struct ts_emulator_observed *observed, const struct ts_graph *graph)
{
	size_t names = ts_strmap_count(&graph->work->names), at = 0;
	TS_AUTO_FREE struct group *tails = calloc(names + 1, sizeof(*tails));
	struct samples samples = { 0 };
	struct group group;

	observed->self_ns = calloc(names + 1, sizeof(*observed->self_ns));
	observed->tail_ns = ts_alloc_array(graph->work->call_count, sizeof(*observed->tail_ns));
	if (!observed->self_ns || !observed->tail_ns || !tails)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < graph->work->call_count; i++)
		observed->tail_ns[i] = tail_of(graph, i);
	sample_calls(&samples, graph, observed->tail_ns);
	sort_samples(&samples);
	while (next_group(&samples, &at, &group))
		if (group.number % 2)
			tails[group.number / 2] = group;
		else
			observed->self_ns[group.number / 2] = group.count ? group.usual
									  : group.most;
	if (!samples.rc)
		take_tails(observed, graph->work, tails);
	free(samples.list);
	return samples.rc;
}

/* ---- all observations ---- */

int ts_emulator_observe(struct ts_emulator_observed *observed, const struct ts_graph *graph,
			struct ts_error *err)
{
	int rc;

	*observed = (struct ts_emulator_observed){ 0 };
	rc = observe_latencies(observed, graph);
	if (!rc)
		rc = observe_calls(observed, graph);
	if (!rc)
		rc = ts_emulator_imply_waits(observed, graph);
	if (!rc)
		rc = ts_emulator_observe_slots(observed, graph);
	if (!rc)
		rc = ts_emulator_observe_held(observed, graph);
	if (!rc)
		return TS_OK;
	ts_emulator_observed_release(observed);
	return ts_error_set(err, rc, "no memory for the emulator");
}

void ts_emulator_observed_release(struct ts_emulator_observed *observed)
{
	free(observed->latencies);
	free(observed->slots);
	free(observed->engines);
	free(observed->self_ns);
	free(observed->tail_ns);
	free(observed->held_ns);
	free(observed->implied);
	*observed = (struct ts_emulator_observed){ 0 };
}
