/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligns a device clock with its host clock: no command starts before its call, and no host wait
 * ends before the command it waits for. Each gives a bound on the offset; the offset that violates
 * the fewest bounds is used, 0 if that is as good as any (docs/state.md, "Clocks").
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "state/clocks/clock_alignment_internal.h"

/*
 * A time by which a command was certainly issued, and the latest end of everything issued until
 * then.
 */
struct mark {
	int64_t issued, end;
};

struct list {
	int64_t *values;
	size_t count, capacity;
};

struct devices {
	const struct ts_work *work;
	struct ts_clock_alignment *out;
	struct mark *of_streams; /* one per command, sorted within each stream; or NULL */
	struct mark *of_devices; /* ... within each device */
	uint32_t *device_syncs;  /* syncs, by device */
	uint32_t *first_sync;    /* per device: index into device_syncs; device_count + 1 entries */
	struct ts_pairmap records; /* (rank, correlation) of calls that record events, to calls */
	struct ts_map blocking;    /* names of calls: 2 if they block until done, else 1 */
	struct list low, high;     /* bounds of the current device */
	int64_t resolution;
	struct ts_error *err;
};

static int no_memory(const struct devices *d)
{
	ts_error_set(d->err, TS_ENOMEM, "no memory");
	return TS_ENOMEM;
}

static int add_bound(struct devices *d, struct list *list, int64_t value)
{
	if (ts_grow_array((void **)&list->values, &list->capacity, list->count + 1, sizeof(value)))
		return no_memory(d);
	list->values[list->count++] = value;
	return TS_OK;
}

/* ---- what was issued until when ---- */

static int compare_marks(const void *left, const void *right)
{
	const struct mark *a = left, *b = right;

	return a->issued < b->issued ? -1 : a->issued > b->issued;
}

/* The end of the call: by then the command is certainly in its queue. */
static struct mark mark_of(const struct ts_work *work, const struct ts_work_command *command)
{
	struct mark mark = { .issued = INT64_MAX, .end = INT64_MIN };

	if (command->call != TS_WORK_NONE && !(command->flags & TS_COMMAND_UNTIMED)) {
		mark.issued = work->calls[command->call].end;
		mark.end = command->end;
	}
	return mark;
}

static void order_marks(struct mark *marks, size_t count)
{
	bool is_sorted = true;

	for (size_t i = 1; i < count && is_sorted; i++)
		is_sorted = marks[i - 1].issued <= marks[i].issued;
	if (!is_sorted)
		ts_sort(marks, count, sizeof(*marks), compare_marks);
	for (size_t i = 1; i < count; i++)
		marks[i].end = TS_MAX(marks[i].end, marks[i - 1].end);
}

static int make_marks(const struct devices *d, struct mark **ret_marks)
{
	const struct ts_work *work = d->work;
	struct mark *marks = ts_alloc_array(work->command_count, sizeof(*marks));

	if (!marks)
		return no_memory(d);
	for (uint32_t i = 0; i < work->command_count; i++)
		marks[i] = mark_of(work, &work->commands[i]);
	*ret_marks = marks;
	return TS_OK;
}

/* Commands of a device are adjacent, as those of a stream are. */
static void device_commands(const struct ts_work *work, const struct ts_work_device *device,
			    uint32_t *ret_first, uint32_t *ret_count)
{
	const struct ts_work_stream *first, *last;

	*ret_first = *ret_count = 0;
	if (!device->stream_count)
		return;
	first = &work->streams[device->first_stream];
	last = first + device->stream_count - 1;
	*ret_first = first->first_command;
	*ret_count = last->first_command + last->command_count - first->first_command;
}

static int mark_streams(struct devices *d)
{
	int rc = make_marks(d, &d->of_streams);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < d->work->stream_count; i++) {
		const struct ts_work_stream *stream = &d->work->streams[i];

		order_marks(d->of_streams + stream->first_command, stream->command_count);
	}
	return TS_OK;
}

static int mark_devices(struct devices *d)
{
	int rc = make_marks(d, &d->of_devices);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < d->work->device_count; i++) {
		uint32_t first, count;

		device_commands(d->work, &d->work->devices[i], &first, &count);
		order_marks(d->of_devices + first, count);
	}
	return TS_OK;
}

/* Latest end of what was issued by `time`; INT64_MIN: nothing. */
static int64_t end_until(const struct mark *marks, size_t count, int64_t time)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (marks[middle].issued <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? marks[low - 1].end : INT64_MIN;
}

/* ---- bounds of a device ---- */

/* Copies to the host only: others may return as soon as the host memory can be reused. */
static bool waits_for_copy(struct devices *d, const struct ts_work_command *command,
			   const struct ts_work_call *call)
{
	const char *name = ts_work_text(d->work, call->name);
	uint64_t *known;

	if (command->copy_kind != TS_COPY_DEVICE_TO_HOST)
		return false;
	known = ts_map_insert(&d->blocking, call->name, NULL);
	if (!known)
		return false;
	if (!*known)
		*known = ts_api_is_blocking(name, strlen(name)) ? 2 : 1;
	return *known == 2;
}

static void note_resolution(struct devices *d, const struct ts_work_command *command)
{
	if (command->start % 1000 || command->end % 1000)
		d->resolution = 1;
}

static int add_launches(struct devices *d, const struct ts_work_device *device)
{
	uint32_t first, count;
	int rc = TS_OK;

	device_commands(d->work, device, &first, &count);
	for (uint32_t i = first; i < first + count && !rc; i++) {
		const struct ts_work_command *command = &d->work->commands[i];
		const struct ts_work_call *call;

		if (command->call == TS_WORK_NONE || command->flags & TS_COMMAND_UNTIMED)
			continue;
		call = &d->work->calls[command->call];
		note_resolution(d, command);
		rc = add_bound(d, &d->low, call->start - command->start);
		if (!rc && waits_for_copy(d, command, call))
			rc = add_bound(d, &d->high, call->end - command->end);
	}
	return rc;
}

static int64_t end_before_event(const struct devices *d, const struct ts_work_sync *sync)
{
	const struct ts_work_stream *stream;
	uint64_t call;

	if (sync->on_stream >= d->work->stream_count || sync->record_correlation == TS_ABSENT ||
	    !ts_pairmap_get(&d->records, sync->rank, (uint64_t)sync->record_correlation, &call))
		return INT64_MIN;
	stream = &d->work->streams[sync->on_stream];
	return end_until(d->of_streams + stream->first_command, stream->command_count,
			 d->work->calls[call].start);
}

/* Latest end of the commands that the host has waited for. */
static int64_t end_waited_for(const struct devices *d, const struct ts_work_sync *sync,
			      uint32_t device, int64_t since)
{
	uint32_t first, count;

	switch ((enum ts_sync_kind)sync->kind) {
	case TS_SYNC_STREAM:
		if (sync->stream >= d->work->stream_count)
			return INT64_MIN;
		first = d->work->streams[sync->stream].first_command;
		count = d->work->streams[sync->stream].command_count;
		return end_until(d->of_streams + first, count, since);
	case TS_SYNC_CONTEXT:
		device_commands(d->work, &d->work->devices[device], &first, &count);
		return end_until(d->of_devices + first, count, since);
	case TS_SYNC_EVENT:
		return end_before_event(d, sync);
	default:
		return INT64_MIN;
	}
}

static int add_sync(struct devices *d, const struct ts_work_sync *sync, uint32_t device)
{
	int64_t since = sync->start, until = sync->end, end;

	if (sync->call != TS_WORK_NONE) {
		since = d->work->calls[sync->call].start;
		until = d->work->calls[sync->call].end;
	}
	end = end_waited_for(d, sync, device, since);
	return end == INT64_MIN ? TS_OK : add_bound(d, &d->high, until - end);
}

/* ---- which syncs are whose ---- */

static uint32_t device_of_sync(const struct ts_work *work, const struct ts_work_sync *sync)
{
	const struct ts_work_rank *rank = &work->ranks[sync->rank];
	uint32_t stream = sync->kind == TS_SYNC_EVENT ? sync->on_stream : sync->stream;

	if (sync->kind == TS_SYNC_STREAM_WAIT || sync->kind == TS_SYNC_OTHER)
		return TS_WORK_NONE;
	if (sync->kind != TS_SYNC_CONTEXT)
		return stream < work->stream_count ? work->streams[stream].device : TS_WORK_NONE;
	if (sync->device < work->device_count)
		return sync->device;
	return rank->device_count == 1 ? rank->first_device : TS_WORK_NONE;
}

static int sort_syncs(struct devices *d)
{
	const struct ts_work *work = d->work;
	uint32_t *next;

	d->first_sync = calloc((size_t)work->device_count + 2, sizeof(*d->first_sync));
	d->device_syncs = ts_alloc_array(work->sync_count, sizeof(*d->device_syncs));
	if (!d->first_sync || !d->device_syncs)
		return no_memory(d);
	next = d->first_sync + 1;
	for (uint32_t i = 0; i < work->sync_count; i++) {
		uint32_t device = device_of_sync(work, &work->syncs[i]);

		if (device != TS_WORK_NONE)
			next[device + 1]++;
	}
	for (uint32_t i = 1; i <= work->device_count; i++)
		next[i] += next[i - 1];
	for (uint32_t i = 0; i < work->sync_count; i++) {
		uint32_t device = device_of_sync(work, &work->syncs[i]);

		if (device != TS_WORK_NONE)
			d->device_syncs[next[device]++] = i;
	}
	return TS_OK;
}

/* Collects marks that some sync needs, and the calls that recorded events. */
static int prepare(struct devices *d)
{
	const struct ts_work *work = d->work;
	bool of_streams = false, of_devices = false;
	int rc = sort_syncs(d);

	for (uint32_t i = 0; i < work->sync_count; i++) {
		of_streams |= work->syncs[i].kind == TS_SYNC_STREAM ||
			      work->syncs[i].kind == TS_SYNC_EVENT;
		of_devices |= work->syncs[i].kind == TS_SYNC_CONTEXT;
	}
	for (uint32_t i = 0; i < work->call_count && !rc; i++) {
		const struct ts_work_call *call = &work->calls[i];

		of_devices |= call->kind == TS_API_DEVICE_SYNC;
		if (call->kind == TS_API_EVENT_RECORD && call->correlation != TS_ABSENT &&
		    ts_pairmap_put(&d->records, call->rank, (uint64_t)call->correlation, i))
			rc = no_memory(d);
	}
	if (!rc && of_streams)
		rc = mark_streams(d);
	if (!rc && of_devices)
		rc = mark_devices(d);
	return rc;
}

/* Device-wide waits that the trace shows only as calls; the device must be unambiguous. */
static int add_device_calls(struct devices *d, uint32_t device)
{
	const struct ts_work_rank *rank = &d->work->ranks[d->work->devices[device].rank];
	int rc = TS_OK;

	if (rank->device_count != 1)
		return TS_OK;
	for (uint32_t t = rank->first_thread; t < rank->first_thread + rank->thread_count; t++) {
		const struct ts_work_thread *thread = &d->work->threads[t];

		for (uint32_t i = 0; i < thread->call_count && !rc; i++) {
			const struct ts_work_call *call = &d->work->calls[thread->first_call + i];
			const struct ts_work_sync sync = { .start = call->start,
							   .end = call->end,
							   .call = TS_WORK_NONE,
							   .kind = TS_SYNC_CONTEXT };

			if (call->kind == TS_API_DEVICE_SYNC)
				rc = add_sync(d, &sync, device);
		}
	}
	return rc;
}

/* ---- the offset ---- */

static int compare_values(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

static size_t count_below(const struct list *list, int64_t value)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (list->values[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int64_t magnitude(int64_t value)
{
	return value < 0 ? -value : value;
}

struct choice {
	int64_t offset;
	size_t broken;
};

static void try_offset(const struct devices *d, int64_t offset, struct choice *best)
{
	/* Counts lower bounds above it and upper bounds below it. */
	size_t broken = d->low.count - count_below(&d->low, offset + 1) +
			count_below(&d->high, offset);

	if (broken > best->broken ||
	    (broken == best->broken && magnitude(offset) >= magnitude(best->offset)))
		return;
	*best = (struct choice){ offset, broken };
}

static struct choice choose_offset(const struct devices *d)
{
	struct choice best = { .broken = SIZE_MAX };

	best.broken = d->low.count - count_below(&d->low, 1) + count_below(&d->high, 0);
	if (!best.broken)
		return best;
	for (size_t i = 0; i < d->low.count; i++)
		try_offset(d, d->low.values[i], &best);
	for (size_t i = 0; i < d->high.count; i++)
		try_offset(d, d->high.values[i], &best);
	return best;
}

/* If all bounds are consistent, the tightest ones determine the range. */
static bool tighten(struct devices *d)
{
	int64_t low = INT64_MIN, high = INT64_MAX;

	for (size_t i = 0; i < d->low.count; i++)
		low = TS_MAX(low, d->low.values[i]);
	for (size_t i = 0; i < d->high.count; i++)
		high = TS_MIN(high, d->high.values[i]);
	if (low > high)
		return false;
	d->low.count = TS_MIN(d->low.count, 1);
	d->high.count = TS_MIN(d->high.count, 1);
	if (d->low.count)
		d->low.values[0] = low;
	if (d->high.count)
		d->high.values[0] = high;
	return true;
}

static void sort_bounds(struct list *list)
{
	if (list->count)
		ts_sort(list->values, list->count, sizeof(*list->values), compare_values);
}

/* Times in full us may have lost almost one us each. */
static void loosen(struct list *list, int64_t slack)
{
	for (size_t i = 0; i < list->count; i++)
		list->values[i] += slack;
}

/* How far the satisfied bounds let the offset move; TS_ABSENT: open on one side. */
static int64_t reach(const struct devices *d, int64_t offset)
{
	size_t low = count_below(&d->low, offset + 1), high = count_below(&d->high, offset);

	if (!low || high == d->high.count)
		return TS_ABSENT;
	return TS_MAX(offset - d->low.values[low - 1], d->high.values[high] - offset);
}

static void estimate(struct devices *d, struct ts_clock_estimate *estimate)
{
	struct choice choice;

	if (!d->low.count && !d->high.count)
		return;
	estimate->points = d->low.count + d->high.count;
	loosen(&d->low, 1 - d->resolution);
	loosen(&d->high, d->resolution - 1);
	if (!tighten(d)) {
		sort_bounds(&d->low);
		sort_bounds(&d->high);
	}
	choice = choose_offset(d);
	estimate->known = true;
	estimate->offset_ns = choice.offset;
	estimate->outliers = choice.broken;
	estimate->uncertainty_ns = estimate->bound_ns = reach(d, choice.offset);
	estimate->method = !d->high.count  ? "launches"
			   : !d->low.count ? "syncs"
					   : "launches and syncs";
}

static int fit_device(struct devices *d, uint32_t index)
{
	const struct ts_work_device *device = &d->work->devices[index];
	struct ts_clock_estimate *out = &d->out->devices[index];
	int rc;

	*out = (struct ts_clock_estimate){ .rank = device->rank,
					   .device = index,
					   .method = "none" };
	out->domain = d->out->ranks[device->rank].domain;
	d->low.count = d->high.count = 0;
	d->resolution = 1000;
	rc = add_launches(d, device);
	for (uint32_t i = d->first_sync[index]; i < d->first_sync[index + 1] && !rc; i++)
		rc = add_sync(d, &d->work->syncs[d->device_syncs[i]], index);
	if (!rc)
		rc = add_device_calls(d, index);
	if (!rc)
		estimate(d, out);
	return rc;
}

static int fit_devices(struct devices *d)
{
	int rc = prepare(d);

	for (uint32_t i = 0; i < d->work->device_count && !rc; i++)
		rc = fit_device(d, i);
	return rc;
}

int ts_clock_alignment_fit_devices(struct ts_clock_alignment *clocks, const struct ts_work *work,
				   struct ts_error *err)
{
	struct devices d = { .work = work, .out = clocks, .err = err };
	int rc;

	clocks->devices = calloc(TS_MAX(work->device_count, 1), sizeof(*clocks->devices));
	if (!clocks->devices)
		return no_memory(&d);
	ts_pairmap_init(&d.records);
	ts_map_init(&d.blocking);
	rc = fit_devices(&d);
	ts_pairmap_release(&d.records);
	ts_map_release(&d.blocking);
	free(d.of_streams);
	free(d.of_devices);
	free(d.device_syncs);
	free(d.first_sync);
	free(d.low.values);
	free(d.high.values);
	return rc;
}
