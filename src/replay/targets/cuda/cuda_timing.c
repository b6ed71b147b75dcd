/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One kernel, again and again on the same memory: what it changes is restored before each launch.
 * With a warm L2 cache it ran just before; with a cold one, other memory of twice the cache's size
 * was written in between.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/replay_internal.h"
#include "replay/targets/cuda/cuda_session.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };

uint32_t ts_cuda_timed_position(const struct ts_replay_session *session)
{
	const struct ts_replay_options *options = &session->replay->options;

	for (uint32_t i = session->plan->count;
	     i-- > 0 && options->kernel_number && options->kernel_repeats;)
		if (session->plan->kept[session->plan->order[i]] == TS_REPLAY_REQUESTED &&
		    session->steps[i].launch)
			return i;
	return TS_REPLAY_NONE;
}

/* ---- medians ---- */

static int compare_times(const void *a, const void *b)
{
	return TS_COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

/*
 * The median and its interval of 95 %: ranks around the middle that a binomial distribution leaves
 * with that probability.
 */
static void summarise(int64_t *times, uint32_t count, int64_t *ret_median, int64_t *ret_low,
		      int64_t *ret_high)
{
	double half = 0.98 * sqrt((double)count), middle = (double)count / 2;
	int64_t low = (int64_t)floor(middle - half), high = (int64_t)ceil(middle + half);

	if (!count)
		return;
	ts_sort(times, count, sizeof(*times), compare_times);
	*ret_median = count % 2 ? times[count / 2]
				: times[count / 2 - 1] +
					  (times[count / 2] - times[count / 2 - 1]) / 2;
	*ret_low = times[TS_MAX(low, 0)];
	*ret_high = times[TS_MIN(high, (int64_t)count - 1)];
}

/* ---- clocks ---- */

static bool read_clocks(const struct ts_cuda_device *device, unsigned int *ret_sm,
			unsigned int *ret_memory)
{
	void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL), *handle = NULL;
	int (*init)(void) = NULL, (*stop)(void) = NULL;
	int (*by_uuid)(const char *uuid, void **ret_handle) = NULL;
	int (*clock)(void *nvml_device, int type, unsigned int *ret_mhz) = NULL;
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "nvmlInit_v2", &init },
		{ "nvmlShutdown", &stop },
		{ "nvmlDeviceGetHandleByUUID", &by_uuid },
		{ "nvmlDeviceGetClockInfo", &clock },
	};
	const uint8_t *u = device->uuid;
	char uuid[64];
	bool is_known;

	if (!library)
		return false;
	for (size_t i = 0; i < TS_ARRAY_SIZE(functions); i++) {
		void *symbol = dlsym(library, functions[i].name);

		/* POSIX guarantees equal representation of both kinds of pointers. */
		memcpy(functions[i].to, &symbol, sizeof(symbol));
	}
	snprintf(uuid, sizeof(uuid),
		 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		 u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
		 u[14], u[15]);
	is_known = init && stop && by_uuid && clock && !init();
	if (is_known) {
		is_known = !by_uuid(uuid, &handle) && !clock(handle, NVML_CLOCK_SM, ret_sm) &&
			   !clock(handle, NVML_CLOCK_MEMORY, ret_memory);
		stop();
	}
	dlclose(library);
	return is_known;
}

static void note_clocks(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	unsigned int sm = 0, memory = 0;
	uint32_t context = ts_cuda_info(session, step->command->queue)->parent;
	const struct ts_cuda_device *device = &session->devices[session->objects[context].device];

	if (read_clocks(device, &sm, &memory))
		snprintf(session->timed.clocks, sizeof(session->timed.clocks),
			 "SM %u MHz, memory %u MHz", sm, memory);
	else
		snprintf(session->timed.clocks, sizeof(session->timed.clocks), "clocks unknown");
}

/* ---- launches ---- */

struct timing {
	struct ts_replay_session *session;
	const struct ts_cuda_step *step;
	uint32_t position;
	struct ts_cuda_keep keep;
	bool *changed;               /* pages that it changes */
	char *host;                  /* copies of all host memory, which it may change, too */
	uint64_t other, other_bytes; /* memory that is written to get a cold cache */
	void *begin, *end;
	volatile uint32_t *gate; /* pinned; NULL: none */
};

#define WAIT_EQUAL 1u

static int launch(struct timing *timing, struct ts_error *err)
{
	struct ts_replay_session *session = timing->session;
	int code = ts_cuda_enter(session, timing->step->context);

	if (!code)
		code = ts_cuda_launch(session, timing->step);
	if (!code)
		code = session->cu.StreamSynchronize(timing->step->stream);
	__atomic_fetch_add(&session->progress, 1, __ATOMIC_RELEASE);
	return code ? ts_cuda_fail_command(session, timing->position, code, err) : TS_OK;
}

/*
 * Everything is idle before. The device waits for the host until all is submitted: else the time
 * that the host needs to submit the launch would count. Devices that cannot wait do not.
 */
static int submit_timed(struct timing *timing)
{
	struct ts_replay_session *session = timing->session;
	const struct cuda_driver_functions *cu = &session->cu;
	void *stream = timing->step->stream;
	int code = ts_cuda_enter(session, timing->step->context);

	if (timing->gate)
		*timing->gate = 0;
	if (!code && timing->gate &&
	    cu->StreamWaitValue32(stream, (uintptr_t)timing->gate, 1, WAIT_EQUAL))
		timing->gate = NULL;
	if (!code)
		code = cu->EventRecord(timing->begin, stream);
	if (!code)
		code = ts_cuda_launch(session, timing->step);
	if (!code)
		code = cu->EventRecord(timing->end, stream);
	if (timing->gate)
		__atomic_store_n(timing->gate, 1, __ATOMIC_SEQ_CST);
	return code;
}

static int launch_timed(struct timing *timing, int64_t *ret_ns, struct ts_error *err)
{
	struct ts_replay_session *session = timing->session;
	float ms = 0;
	int code = submit_timed(timing);

	if (!code)
		code = session->cu.EventSynchronize(timing->end);
	if (!code)
		code = session->cu.EventElapsedTime(&ms, timing->begin, timing->end);
	__atomic_fetch_add(&session->progress, 1, __ATOMIC_RELEASE);
	if (code || !ts_cuda_activity_last(session, timing->position, ret_ns))
		*ret_ns = (int64_t)((double)ms * 1e6);
	return code ? ts_cuda_fail_command(session, timing->position, code, err) : TS_OK;
}

/* Copies all mapped host memory to the copies, or back; its bytes. NULL: only counts. */
static uint64_t copy_host(const struct ts_replay_session *session, char *copies, bool back)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		const struct ts_cuda_ranges *mapped = &session->objects[i].mapped;

		for (size_t j = 0; j < mapped->count && ts_cuda_is_host(session, i); j++) {
			void *host = (void *)(uintptr_t)mapped->items[j].offset;

			if (copies)
				memcpy(back ? host : copies + bytes, back ? copies + bytes : host,
				       mapped->items[j].bytes);
			bytes += mapped->items[j].bytes;
		}
	}
	return bytes;
}

static int restore(struct timing *timing, struct ts_error *err)
{
	copy_host(timing->session, timing->host, true);
	return ts_cuda_put_pages(timing->session, &timing->keep, timing->changed, err);
}

static int cool(struct timing *timing, struct ts_error *err)
{
	struct ts_replay_session *session = timing->session;
	int code = ts_cuda_enter(session, timing->step->context);

	if (!code && timing->other)
		code = session->cu.MemsetD8(timing->other, 0x5a, timing->other_bytes);
	if (!code)
		code = session->cu.CtxSynchronize();
	return code ? ts_cuda_fail(session, code, err, "cannot write memory") : TS_OK;
}

static int time_once(struct timing *timing, int64_t *ret_warm, int64_t *ret_cold,
		     struct ts_error *err)
{
	int rc = launch(timing, err);

	if (!rc)
		rc = restore(timing, err);
	if (!rc)
		rc = launch_timed(timing, ret_warm, err);
	if (!rc)
		rc = restore(timing, err);
	if (!rc)
		rc = cool(timing, err);
	if (!rc)
		rc = launch_timed(timing, ret_cold, err);
	return rc ? rc : restore(timing, err);
}

static int time_all(struct timing *timing, uint32_t count, struct ts_error *err)
{
	struct ts_replay_session *session = timing->session;
	TS_AUTO_FREE int64_t *warm = ts_alloc_array(count, sizeof(*warm));
	TS_AUTO_FREE int64_t *cold = ts_alloc_array(count, sizeof(*cold));
	int rc = TS_OK;

	if (!warm || !cold)
		return ts_error_set(err, TS_ENOMEM, "no memory for times");
	for (uint32_t i = 0; i < count && !rc; i++) {
		rc = ts_replay_progress(session->replay, "time", i, count, err);
		if (!rc)
			rc = time_once(timing, &warm[i], &cold[i], err);
	}
	if (rc)
		return rc;
	note_clocks(session, timing->step);
	session->timed.runs = count;
	summarise(warm, count, &session->timed.warm, &session->timed.warm_low,
		  &session->timed.warm_high);
	summarise(cold, count, &session->timed.cold, &session->timed.cold_low,
		  &session->timed.cold_high);
	if (!timing->other)
		session->timed.cold = session->timed.cold_low = session->timed.cold_high =
			TS_ABSENT;
	return TS_OK;
}

/* ---- memory around it ---- */

/* Runs it once to see which pages it changes. */
static int find_changed(struct timing *timing, struct ts_error *err)
{
	struct ts_replay_session *session = timing->session;
	int rc = ts_cuda_list_pages(session, err);

	if (!rc)
		rc = ts_cuda_hash_pages(session, NULL, 0, NULL, err);
	if (rc)
		return rc;
	timing->changed = calloc(session->pages.count + 1, sizeof(*timing->changed));
	timing->host = ts_alloc_array(copy_host(session, NULL, false), 1);
	if (timing->host)
		copy_host(session, timing->host, false);
	if (!timing->changed || !timing->host || !ts_cuda_keep_pages(session, &timing->keep))
		return ts_error_set(err, TS_ENOMEM,
				    "there is no memory for a copy of all memory, from which it is "
				    "restored before each launch");
	rc = launch(timing, err);
	if (!rc)
		rc = ts_cuda_hash_pages(session, NULL, 0, timing->changed, err);
	return rc ? rc : restore(timing, err);
}

/* With this variable a launch returns when the kernel has ended: behind a gate, never. */
static bool is_launch_blocking(void)
{
	const char *value = getenv("CUDA_LAUNCH_BLOCKING");

	return value && value[0] && strcmp(value, "0") != 0;
}

static void begin_timing(struct timing *timing)
{
	struct ts_replay_session *session = timing->session;
	uint32_t context = ts_cuda_info(session, timing->step->command->queue)->parent;

	if (!is_launch_blocking())
		timing->gate = ts_cuda_pinned(session, sizeof(*timing->gate));
	timing->begin = ts_cuda_take_event(session, timing->step->context);
	timing->end = ts_cuda_take_event(session, timing->step->context);
	timing->other_bytes = 2 * session->devices[session->objects[context].device].cache_bytes;
	if (timing->other_bytes && session->cu.MemAlloc(&timing->other, timing->other_bytes))
		timing->other = 0;
}

static void end_timing(struct timing *timing)
{
	struct ts_replay_session *session = timing->session;

	ts_cuda_spare_event(session, timing->begin);
	ts_cuda_spare_event(session, timing->end);
	if (timing->other && !ts_cuda_enter(session, timing->step->context))
		session->cu.MemFree(timing->other);
	ts_cuda_keep_release(session, &timing->keep);
	free(timing->changed);
	free(timing->host);
}

int ts_cuda_time_kernel(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	struct timing timing = { .session = session,
				 .step = &session->steps[position],
				 .position = position };
	int rc = ts_cuda_wait_all(session, position, err);
	size_t mark = ts_cuda_activity_mark(session);

	if (!rc && timing.step->command->queue == TS_REPLAY_NONE)
		rc = ts_error_set(err, TS_EFORMAT, "the launch has no stream");
	if (rc)
		return rc;
	__atomic_store_n(&session->running, position + 1, __ATOMIC_RELEASE);
	begin_timing(&timing);
	if (!timing.begin || !timing.end)
		rc = ts_error_set(err, TS_ECAP, "kernels of a second context are not timed");
	if (!rc)
		rc = find_changed(&timing, err);
	if (!rc)
		rc = time_all(&timing, session->replay->options.kernel_repeats, err);
	end_timing(&timing);
	ts_cuda_activity_forget(session, mark);
	/* The hashes are not those of what was restored. */
	session->knows_pages = false;
	if (!rc)
		__atomic_store_n(&session->running, 0, __ATOMIC_RELEASE);
	return rc;
}
