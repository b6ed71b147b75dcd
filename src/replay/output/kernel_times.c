/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the times of launches by the name of their kernel, for each run. */
#include "replay/output/kernel_times.h"

#include <string.h>

#include "base/ns.h"
#include "replay/stream/stream_internal.h"

/* Runs whose sums are kept for a median; of more, every second, third ... one. */
#define MOST_SUMS 1024u

struct ts_replay_kernel_times {
	const struct ts_replay *replay;
	struct ts_strmap names; /* id: index of `kernels`, plus 1 */
	uint32_t *of_position;  /* by position in the plan: index of `kernels`, or NONE */
	struct ts_replay_kernel *kernels;
	uint32_t count, runs;
	int64_t *sums; /* of each kernel in each run that is kept, by kernel */
	uint32_t sum_count, stride;
};

/* ---- kernels ---- */

static bool is_replaced(const struct ts_replay *replay, const char *name)
{
	for (size_t i = 0; i < replay->options.replacement_count; i++)
		if (!strcmp(replay->options.replacements[i].kernel, name))
			return true;
	return false;
}

/* TS_STRMAP_NONE: no memory. */
static uint32_t kernel_of(struct ts_replay_kernel_times *times, uint32_t function)
{
	const char *name = times->replay->stream->objects[function].demangled;
	bool is_new = false;
	uint32_t id = ts_strmap_intern(&times->names, name, strlen(name), &is_new);

	if (id == TS_STRMAP_NONE || !is_new)
		return id == TS_STRMAP_NONE ? id : id - 1;
	times->kernels[id - 1] = (struct ts_replay_kernel){
		.name = name,
		.is_replaced = is_replaced(times->replay, name),
		.recorded_ns = TS_ABSENT,
		.fastest_ns = TS_ABSENT,
		.median_ns = TS_ABSENT,
		.reference_ns = TS_ABSENT,
	};
	times->count = id;
	return id - 1;
}

static int find_kernels(struct ts_replay_kernel_times *times)
{
	const struct ts_replay *replay = times->replay;

	for (uint32_t i = 0; i < replay->plan.count; i++) {
		uint32_t index = replay->plan.order[i], kernel;
		const struct ts_replay_command_info *command = &replay->stream->commands[index];

		times->of_position[i] = TS_REPLAY_NONE;
		if (command->kind != TS_COMMAND_LAUNCH || command->object == TS_REPLAY_NONE ||
		    replay->plan.kept[index] == TS_REPLAY_ORDER)
			continue;
		kernel = kernel_of(times, command->object);
		if (kernel == TS_STRMAP_NONE)
			return TS_ENOMEM;
		times->of_position[i] = kernel;
		times->kernels[kernel].launches++;
	}
	return TS_OK;
}

static int make(struct ts_replay_kernel_times *times)
{
	const struct ts_replay *replay = times->replay;
	uint32_t runs = replay->options.repeat;

	ts_strmap_init(&times->names, 1);
	times->stride = runs / MOST_SUMS + 1;
	times->of_position = ts_alloc_array(replay->plan.count + 1u, sizeof(uint32_t));
	times->kernels = calloc(replay->stream->object_count + 1u, sizeof(*times->kernels));
	if (!times->of_position || !times->kernels || find_kernels(times))
		return TS_ENOMEM;
	times->sums = calloc((size_t)times->count + 1, TS_MIN(runs, MOST_SUMS) * sizeof(int64_t));
	return times->sums ? TS_OK : TS_ENOMEM;
}

int ts_replay_kernel_times_new(struct ts_replay_kernel_times **ret_times,
			       const struct ts_replay *replay, struct ts_error *err)
{
	struct ts_replay_kernel_times *times = calloc(1, sizeof(*times));

	if (!times)
		return ts_replay_no_memory(err);
	times->replay = replay;
	if (make(times)) {
		ts_replay_kernel_times_free(times);
		return ts_replay_no_memory(err);
	}
	*ret_times = times;
	return TS_OK;
}

void ts_replay_kernel_times_free(struct ts_replay_kernel_times *times)
{
	if (!times)
		return;
	ts_strmap_release(&times->names);
	free(times->of_position);
	free(times->kernels);
	free(times->sums);
	free(times);
}

/* ---- runs ---- */

/* Adds a run to `sums`, by kernel; launches without times are not counted. */
static void sum_run(const struct ts_replay_kernel_times *times, const struct ts_replay_times *run,
		    int64_t *sums)
{
	for (uint32_t i = 0; i < times->count; i++)
		sums[i] = TS_ABSENT;
	for (uint32_t i = 0; i < times->replay->plan.count; i++) {
		uint32_t kernel = times->of_position[i];

		if (kernel == TS_REPLAY_NONE || run[i].start == TS_ABSENT ||
		    run[i].end == TS_ABSENT || run[i].end < run[i].start)
			continue;
		sums[kernel] = ts_ns_add(sums[kernel] == TS_ABSENT ? 0 : sums[kernel],
					 ts_ns_sub(run[i].end, run[i].start));
	}
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a == TS_ABSENT ? b : b == TS_ABSENT ? a : TS_MIN(a, b);
}

int ts_replay_kernel_times_add(struct ts_replay_kernel_times *times,
			       const struct ts_replay_times *run, bool is_reference)
{
	TS_AUTO_FREE int64_t *sums = ts_alloc_array(times->count + 1u, sizeof(*sums));
	uint32_t most = TS_MIN((uint32_t)times->replay->options.repeat, MOST_SUMS);
	bool is_kept = !is_reference && times->runs % times->stride == 0 && times->sum_count < most;

	if (!sums)
		return TS_ENOMEM;
	sum_run(times, run, sums);
	for (uint32_t i = 0; i < times->count; i++) {
		struct ts_replay_kernel *kernel = &times->kernels[i];

		if (is_reference)
			kernel->reference_ns = sums[i];
		else
			kernel->fastest_ns = smaller(kernel->fastest_ns, sums[i]);
		if (is_kept)
			times->sums[(size_t)i * most + times->sum_count] = sums[i];
	}
	times->sum_count += is_kept;
	times->runs += !is_reference;
	return TS_OK;
}

/* ---- results ---- */

static int compare_sums(const void *a, const void *b)
{
	return TS_COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

static void set_medians(struct ts_replay_kernel_times *times)
{
	size_t most = TS_MIN(times->replay->options.repeat, MOST_SUMS);

	for (uint32_t i = 0; i < times->count && times->sum_count; i++) {
		int64_t *sums = &times->sums[i * most];

		ts_sort(sums, times->sum_count, sizeof(*sums), compare_sums);
		times->kernels[i].median_ns = sums[times->sum_count / 2];
	}
}

static void add_recorded(struct ts_replay_kernel_times *times,
			 const struct ts_replay_recorded *recorded)
{
	const struct ts_replay *replay = times->replay;

	for (uint32_t i = 0; i < replay->plan.count; i++) {
		const struct ts_gpu_op_row *row = ts_replay_recorded_row(recorded, i);
		uint32_t kernel = times->of_position[i];
		struct ts_replay_kernel *one =
			&times->kernels[kernel == TS_REPLAY_NONE ? 0 : kernel];

		if (kernel == TS_REPLAY_NONE || !row || row->duration < 0)
			continue;
		one->recorded_launches++;
		one->recorded_ns = ts_ns_add(one->recorded_ns == TS_ABSENT ? 0 : one->recorded_ns,
					     row->duration);
	}
}

static int compare_kernels(const void *a, const void *b)
{
	const struct ts_replay_kernel *x = a, *y = b;

	if (x->is_replaced != y->is_replaced)
		return x->is_replaced ? -1 : 1;
	if (x->fastest_ns != y->fastest_ns)
		return TS_COMPARE(y->fastest_ns, x->fastest_ns);
	return strcmp(x->name, y->name);
}

void ts_replay_kernel_times_finish(struct ts_replay_kernel_times *times,
				   const struct ts_replay_recorded *recorded)
{
	set_medians(times);
	add_recorded(times, recorded);
	ts_sort(times->kernels, times->count, sizeof(*times->kernels), compare_kernels);
}

const struct ts_replay_kernel *ts_replay_kernels(const struct ts_replay *replay,
						 uint32_t *ret_count)
{
	*ret_count = replay->kernel_times ? replay->kernel_times->count : 0;
	return replay->kernel_times ? replay->kernel_times->kernels : NULL;
}

double ts_replay_kernel_ratio(const struct ts_replay_kernel *kernel)
{
	double old = kernel->reference_ns != TS_ABSENT ? (double)kernel->reference_ns : 0;

	/* Some launches may have no recorded time. */
	if (!old && kernel->recorded_launches)
		old = (double)kernel->recorded_ns * kernel->launches / kernel->recorded_launches;
	return old > 0 && kernel->fastest_ns != TS_ABSENT ? (double)kernel->fastest_ns / old : 0;
}
