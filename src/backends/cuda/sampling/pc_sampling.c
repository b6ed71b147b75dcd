/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program counters sampled on the device by CUPTI: which contexts are sampled, and their samples,
 * which the helper drains a few times a second: a row for each instruction and stall reason with
 * its count. We hold no lock while calling CUPTI, because it calls us with its own locks held: one
 * thread at a time drains, and a second one returns at once.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include <tracesmith/sample.h>

#include "backends/cuda/sampling/pc_sampling.h"

#define CONTEXTS 64u
#define TICKS 4u              /* ticks of the helper between two drains */
#define MOST_TURNS 256u       /* calls of GetData in a row */
#define END_WAIT_NS 100000000 /* wait for another thread's drain when a context is destroyed */
#define NAP_NS 200000
#define LEAST_SAMPLES 1000 /* needed to find out how they are counted */

typedef int cupti_function(void *params);

static struct sampled contexts[CONTEXTS];
static uint32_t draining;           /* a thread drains */
static struct sampling_data buffer; /* used by that thread */

static struct {
	uint64_t samples, stored, dropped, non_user;
	uint64_t plain, not_issued; /* samples by kind of reason */
} counts;
/*
 * Samples of cycles in which nothing was issued have their own reasons. It is not documented
 * whether the plain reasons include them: the sums show it. Until that is known, we assume that
 * they do.
 */
static bool is_apart;
/* ts_now() of the latest recorded launch, and of the last drain. */
static uint64_t launched, drained;

/* ---- exclusive draining ---- */

static bool enter(void)
{
	return !__atomic_exchange_n(&draining, 1, __ATOMIC_ACQUIRE);
}

static void leave(void)
{
	__atomic_store_n(&draining, 0, __ATOMIC_RELEASE);
}

/* A context that is being destroyed cannot wait for long: the draining thread may wait for us. */
static bool enter_in_time(void)
{
	struct timespec nap = { 0, NAP_NS };

	for (int64_t waited = 0; waited < END_WAIT_NS; waited += NAP_NS) {
		if (enter())
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

/* ---- samples ---- */

static bool is_counted(const struct sampled *sampled, const struct sampling_reason *reason)
{
	bool is_not_issued = sampled->is_not_issued[reason->index];

	*(is_not_issued ? &counts.not_issued : &counts.plain) += reason->samples;
	return !is_not_issued || is_apart;
}

static void put_pc(const struct sampled *sampled, const struct sampling_pc *pc, uint64_t now)
{
	uint64_t frame = ts_code_frame(sampling_function(pc), (uint32_t)pc->offset);
	struct ts_sample sample = { .size = sizeof(sample),
				    .tid = pc->correlation,
				    .state = TS_SAMPLE_ON_DEVICE,
				    .time = now,
				    .frames = &frame,
				    .count = 1 };

	for (size_t i = 0; i < pc->reason_count && i < sampled->reason_count; i++) {
		const struct sampling_reason *reason = &pc->reasons[i];

		if (!reason->samples || reason->index >= SAMPLING_REASONS ||
		    !sampled->sites[reason->index] || !is_counted(sampled, reason))
			continue;
		sample.weight_ns = reason->samples;
		ts_sample(sampled->sites[reason->index], &sample, NULL, 0);
		counts.stored += reason->samples;
	}
}

/*
 * 0: not recorded. After a window, samples still arrive for launches inside it; they get the time
 * of the launch.
 */
static uint64_t time_of_samples(void)
{
	uint64_t newest = __atomic_load_n(&launched, __ATOMIC_RELAXED);

	if (ts_enabled())
		return ts_now();
	return newest > drained ? newest : 0;
}

static void put_data(const struct sampled *sampled, const struct sampling_data *data)
{
	uint64_t now = time_of_samples();

	if (!now)
		return;
	counts.samples += data->samples;
	counts.dropped += data->dropped;
	counts.non_user += data->non_user_samples;
	if (data->dropped)
		ts_accelerator_lost("pc samples", data->dropped, "dropped by the device");
	for (size_t i = 0; i < data->count && i < data->capacity; i++)
		put_pc(sampled, &data->pcs[i], now);
}

/* Called when all samples have been read. */
static void compare_counts(void)
{
	uint64_t user_samples = counts.samples - counts.dropped - counts.non_user;

	if (user_samples < LEAST_SAMPLES || user_samples > counts.samples || !counts.not_issued)
		return;
	is_apart = counts.plain + counts.not_issued <= user_samples + user_samples / 64;
}

static void reset(struct sampling_data *data)
{
	data->samples = data->dropped = data->non_user_samples = 0;
	data->count = data->remaining = 0;
	data->is_hardware_full = 0;
	for (size_t i = 0; i < data->capacity; i++)
		data->pcs[i].size = sizeof(data->pcs[i]);
}

/* Reads the samples of a context. */
static void take(const struct sampled *sampled)
{
	cupti_function *get = (cupti_function *)cuda_cupti("cuptiPCSamplingGetData");
	struct sampling_get_params params = { .size = sizeof(params),
					      .context = sampled->context,
					      .data = &buffer };

	if (!get ||
	    (!buffer.pcs && !sampling_make_buffer(&buffer, SAMPLING_BUFFER_PCS, SAMPLING_REASONS)))
		return;
	for (unsigned int turn = 0; turn < MOST_TURNS; turn++) {
		int result;

		reset(&buffer);
		result = get(&params);
		if (result == SAMPLING_OUT_OF_MEMORY || buffer.is_hardware_full)
			ts_accelerator_lost("pc samples", 1,
					    "the device's buffer was full: unknown number");
		if (result)
			return;
		put_data(sampled, &buffer);
		if (!buffer.remaining)
			return;
	}
}

/* Stops sampling a context, which the caller owns. */
static void end(struct sampled *sampled)
{
	cupti_function *disable = (cupti_function *)cuda_cupti("cuptiPCSamplingDisable");
	struct sampling_context_params params = { .size = sizeof(params),
						  .context = sampled->context };

	take(sampled);
	reset(&sampled->at_end);
	if (disable && disable(&params) == SAMPLING_OK)
		put_data(sampled, &sampled->at_end);
}

static void emit_counts(void)
{
	char json[256];

	snprintf(json, sizeof(json),
		 "{\"samples\":%llu,\"stored\":%llu,\"dropped\":%llu,\"other_kernels\":%llu,"
		 "\"not_issued\":%llu}",
		 (unsigned long long)counts.samples, (unsigned long long)counts.stored,
		 (unsigned long long)counts.dropped, (unsigned long long)counts.non_user,
		 (unsigned long long)counts.not_issued);
	ts_accelerator_fact("pc_samples", json);
}

/* ---- contexts ---- */

static bool claim(struct sampled *sampled, uint32_t from)
{
	return __atomic_compare_exchange_n(&sampled->state, &from, SAMPLED_CHANGES, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void release(struct sampled *sampled, uint32_t to)
{
	__atomic_store_n(&sampled->state, to, __ATOMIC_RELEASE);
}

static void begin(void *context)
{
	for (size_t i = 0; i < CONTEXTS; i++) {
		struct sampled *sampled = &contexts[i];

		if (!claim(sampled, SAMPLED_FREE))
			continue;
		sampled->context = context;
		release(sampled, sampling_begin(sampled) ? SAMPLED_ON : SAMPLED_FREE);
		return;
	}
}

/*
 * If another thread drains for too long, CUPTI stops with the context, and the remaining samples
 * are lost.
 */
static void leave_context(const void *context)
{
	bool is_entered = enter_in_time();

	for (size_t i = 0; i < CONTEXTS; i++) {
		struct sampled *sampled = &contexts[i];

		if (__atomic_load_n(&sampled->state, __ATOMIC_ACQUIRE) != SAMPLED_ON ||
		    sampled->context != context || !claim(sampled, SAMPLED_ON))
			continue;
		if (is_entered)
			end(sampled);
		release(sampled, SAMPLED_FREE);
	}
	if (is_entered)
		leave();
}

static void drain_all(bool is_last)
{
	for (size_t i = 0; i < CONTEXTS; i++) {
		struct sampled *sampled = &contexts[i];

		if (!claim(sampled, SAMPLED_ON))
			continue;
		if (is_last)
			end(sampled);
		else
			take(sampled);
		release(sampled, is_last ? SAMPLED_FREE : SAMPLED_ON);
	}
}

/* ---- from outside ---- */

static bool is_on(void)
{
	return cuda_sampling_is_wanted() && !cuda_is_forked();
}

void cuda_sampling_context(void *context, bool is_created)
{
	int saved_errno = errno;

	if (!is_on())
		return;
	cuda_thread.is_ours++;
	if (is_created)
		begin(context);
	else
		leave_context(context);
	cuda_thread.is_ours--;
	errno = saved_errno;
}

static void drain(bool is_last)
{
	int saved_errno = errno;
	uint64_t started;

	if (!(is_last ? enter_in_time() : enter()))
		return;
	cuda_thread.is_ours++;
	started = ts_now();
	drain_all(is_last);
	drained = started;
	compare_counts();
	if (is_last && counts.samples)
		emit_counts();
	cuda_thread.is_ours--;
	leave();
	errno = saved_errno;
}

/* Called before a module is unloaded: another one may get its offsets. */
void sampling_drain_now(void)
{
	if (is_on())
		drain(false);
}

void cuda_sampling_launched(void)
{
	if (!is_on())
		return;
	if (ts_enabled())
		__atomic_store_n(&launched, ts_now(), __ATOMIC_RELAXED);
	if (sampling_settings()->is_serialized)
		drain(false);
}

void cuda_sampling_drain(bool is_last)
{
	static uint32_t ticks;

	if (!is_on())
		return;
	if (is_last || ++ticks % TICKS == 0)
		drain(is_last);
	sampling_store_images(is_last);
}
