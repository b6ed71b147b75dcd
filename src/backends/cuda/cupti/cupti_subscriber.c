/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only subscription to CUPTI's callbacks (docs/cuda.md, section 3): passes the correlation id
 * of a call to the wrapper on its thread, records calls that bypassed all wrappers, and keeps the
 * correlation ids submitted outside of windows. Forwards what another tool subscribed to.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "backends/cuda/cupti/cupti_device.h"

#define NUMBERS 1024u /* of driver functions; CUDA 13.0 has 800 */
/* Pauses between windows whose commands may still arrive. */
#define PAUSES 64u
/* Calls submitted while a window opened. */
#define EXCEPTIONS 16u

static void *subscriber;
static uint8_t wanted[NUMBERS]; /* driver functions that submit device work */
static struct ts_emit_site *sites[NUMBERS];
static uint32_t was_busy;

/* Start of a call that bypassed all wrappers. */
static __thread uint64_t entered __attribute__((tls_model("initial-exec")));

/* ---- outside of windows ---- */

/*
 * Correlation ids increase, so those submitted outside of a window are a range. Guarded by the
 * lock; nothing is called under it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pause {
	uint32_t first, last;
} pauses[PAUSES];
static uint32_t pause_count;
static uint32_t is_paused;
static uint32_t latest_pause; /* the last correlation id in any of them; also read without the lock,
				 as a fast path */
static uint32_t exceptions[EXCEPTIONS];
static uint32_t exception_count;

static void extend(uint32_t correlation)
{
	struct pause *pause;

	pthread_mutex_lock(&lock);
	if (!is_paused)
		pauses[pause_count % PAUSES] = (struct pause){ correlation, correlation };
	pause_count += !is_paused;
	__atomic_store_n(&is_paused, 1, __ATOMIC_RELEASE);
	pause = &pauses[(pause_count - 1) % PAUSES];
	if (correlation > pause->last)
		pause->last = correlation;
	__atomic_store_n(&latest_pause, pause->last, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

static void end_pause(void)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&is_paused, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

static void note_window(uint32_t correlation)
{
	if (!ts_enabled())
		extend(correlation);
	else if (__atomic_load_n(&is_paused, __ATOMIC_RELAXED))
		end_pause();
}

/* Under the lock. */
static bool is_in_pause(uint32_t correlation)
{
	for (uint32_t i = 0; i < PAUSES && i < pause_count; i++)
		if (correlation >= pauses[i].first && correlation <= pauses[i].last)
			return true;
	return false;
}

/* Its call was emitted: the window opened during the call. */
void cuda_device_given(uint32_t correlation)
{
	if (correlation > __atomic_load_n(&latest_pause, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	if (is_in_pause(correlation))
		exceptions[exception_count++ % EXCEPTIONS] = correlation;
	pthread_mutex_unlock(&lock);
}

bool cuda_subscriber_counts(uint32_t correlation)
{
	bool counts = true;

	if (correlation > __atomic_load_n(&latest_pause, __ATOMIC_ACQUIRE))
		return true;
	pthread_mutex_lock(&lock);
	if (is_in_pause(correlation)) {
		counts = false;
		for (uint32_t i = 0; i < EXCEPTIONS; i++)
			counts |= exceptions[i] == correlation;
	}
	pthread_mutex_unlock(&lock);
	return counts;
}

/* ---- our own commands ---- */

/*
 * A replayable recording copies, fills and hashes memory itself (stream/): these are no commands of
 * the program. The newest ids, at the position of each: records arrive within a second.
 */
#define OURS 65536u /* a power of two */
static uint32_t ours[OURS];

static void note_ours(uint32_t correlation)
{
	/* Inside a call of the program that CUPTI gives the same id, its record counts. */
	if (correlation != cuda_thread.correlation)
		__atomic_store_n(&ours[correlation % OURS], correlation, __ATOMIC_RELAXED);
}

/* The id is that of a call of the program after all. */
static void note_theirs(uint32_t correlation)
{
	if (__atomic_load_n(&ours[correlation % OURS], __ATOMIC_RELAXED) == correlation)
		__atomic_store_n(&ours[correlation % OURS], 0, __ATOMIC_RELAXED);
}

bool cuda_subscriber_is_ours(uint32_t correlation)
{
	return correlation &&
	       __atomic_load_n(&ours[correlation % OURS], __ATOMIC_RELAXED) == correlation;
}

bool cuda_subscriber_was_busy(void)
{
	return __atomic_exchange_n(&was_busy, 0, __ATOMIC_RELAXED) != 0;
}

/* ---- calls ---- */

static void entering(uint32_t number, const struct cupti_call *call)
{
	enum cuda_device_state state = cuda_device_state();

	note_theirs(call->correlation);
	if (state == CUDA_DEVICE_ON) {
		/* While another tool uses the activities, we have no record for it. */
		cuda_thread.correlation = call->correlation;
		note_window(call->correlation);
		if (!__atomic_load_n(&was_busy, __ATOMIC_RELAXED))
			__atomic_store_n(&was_busy, 1, __ATOMIC_RELAXED);
	}
	if (!cuda_thread.depth)
		cuda_call_bypassed(number);
	entered = !cuda_thread.depth && ts_enabled() ? ts_now() : 0;
	if (entered)
		cuda_thread.node = 0;
}

static struct ts_emit_site *site_of(uint32_t number)
{
	struct ts_emit_site *site = __atomic_load_n(&sites[number], __ATOMIC_RELAXED);

	if (!site) {
		site = cuda_call_site(number);
		__atomic_store_n(&sites[number], site, __ATOMIC_RELAXED);
	}
	return site;
}

/* The call reached the driver without passing through a wrapper. */
static void record_call(uint32_t number, const struct cupti_call *call)
{
	struct ts_accelerator_call row = { .size = sizeof(row), .start = entered };
	struct ts_emit_site *site = site_of(number);

	if (!site)
		return;
	if (call->result)
		memcpy(&row.result, call->result, sizeof(uint32_t));
	row.stack = ts_accelerator_stack();
	if (cuda_thread.node)
		cuda_device_captured(cuda_thread.node, row.stack);
	else if (!row.result && cuda_device_state() == CUDA_DEVICE_ON)
		row.correlation = call->correlation;
	ts_accelerator_call_with(site, &row);
}

static void leaving(uint32_t number, const struct cupti_call *call)
{
	if (cuda_device_state() == CUDA_DEVICE_ASIDE && !cuda_thread.node && ts_enabled())
		cuda_device_missed();
	if (entered && !cuda_thread.depth)
		record_call(number, call);
	entered = 0;
}

/* ---- resources ---- */

static void context_changed(const struct cupti_resource *resource, bool is_created)
{
	uint32_t device = 0;

	if (cuda_sampling_is_wanted() && cupti.GetDeviceId &&
	    !cupti.GetDeviceId(resource->context, &device))
		cuda_sampling_context(resource->context, is_created);
}

static void module_changed(const struct cupti_resource *resource, bool is_loaded)
{
	const struct cupti_module *module = resource->descriptor;

	if (module && cuda_sampling_is_wanted())
		cuda_sampling_module(resource->context, module->id, module->image, module->bytes,
				     is_loaded);
}

static void resource_changed(uint32_t number, const struct cupti_resource *resource)
{
	switch (number) {
	case CUPTI_CONTEXT_CREATED:
	case CUPTI_CONTEXT_DESTROY:
		context_changed(resource, number == CUPTI_CONTEXT_CREATED);
		break;
	case CUPTI_MODULE_LOADED:
	case CUPTI_MODULE_UNLOAD:
		module_changed(resource, number == CUPTI_MODULE_LOADED);
		break;
	case CUPTI_NODE_CREATED:
		cuda_graphs_created(resource->descriptor);
		break;
	case CUPTI_NODE_CLONED:
		cuda_graphs_cloned(resource->descriptor);
		break;
	default:
		break;
	}
}

/* ---- the subscription ---- */

static void handle(uint32_t domain, uint32_t number, const void *data)
{
	if (domain == CUPTI_DOMAIN_RESOURCE) {
		cuda_thread.is_ours++;
		resource_changed(number, data);
		cuda_thread.is_ours--;
	} else if (domain == CUPTI_DOMAIN_DRIVER && number < NUMBERS && wanted[number]) {
		const struct cupti_call *call = data;

		if (call->site == CUPTI_ENTER)
			entering(number, call);
		else
			leaving(number, call);
	}
}

/* Runs on threads of the program, inside driver calls. Our own calls are ignored. */
static void called_back(void *userdata, uint32_t domain, uint32_t number, const void *data)
{
	enum cuda_device_state state = cuda_device_state();
	int saved;

	(void)userdata;
	if (state == CUDA_DEVICE_FORKED || !data)
		return;
	if (cuda_thread.is_ours) {
		if (domain == CUPTI_DOMAIN_DRIVER && number < NUMBERS && wanted[number] &&
		    ((const struct cupti_call *)data)->site == CUPTI_ENTER)
			note_ours(((const struct cupti_call *)data)->correlation);
		return;
	}
	saved = errno;
	if (state != CUDA_DEVICE_NONE && state != CUDA_DEVICE_OFF)
		handle(domain, number, data);
	errno = saved;
	cuda_other_tool_callback(domain, number, data);
}

int cuda_subscriber_start(void)
{
	return subscriber ? CUPTI_OK : cupti.Subscribe(&subscriber, called_back, NULL);
}

void *cuda_subscriber_handle(void)
{
	return subscriber;
}

static const uint8_t resources[] = { CUPTI_NODE_CREATED,    CUPTI_NODE_CLONED,
				     CUPTI_CONTEXT_CREATED, CUPTI_CONTEXT_DESTROY,
				     CUPTI_MODULE_LOADED,   CUPTI_MODULE_UNLOAD };
#define RESOURCES_OF_GRAPHS 2

static uint32_t resource_count(void)
{
	return cuda_sampling_is_wanted() ? sizeof(resources) : RESOURCES_OF_GRAPHS;
}

bool cuda_subscriber_wants(uint32_t domain, uint32_t number)
{
	if (domain == CUPTI_DOMAIN_DRIVER)
		return number < NUMBERS && wanted[number];
	if (domain == CUPTI_DOMAIN_RESOURCE)
		for (uint32_t i = 0; i < resource_count(); i++)
			if (resources[i] == number)
				return true;
	return false;
}

/* The functions of cuda_calls.def that submit device work. */
static void want_calls(void)
{
#define CUDA_CALL(name, arguments, class, number, stream, replay)             \
	if ((number) > 0 && (number) < NUMBERS &&                             \
	    (CUDA_##class == CUDA_LAUNCH || CUDA_##class == CUDA_COPY ||      \
	     CUDA_##class == CUDA_FILL || CUDA_##class == CUDA_GRAPH_LAUNCH)) \
		wanted[(number) > 0 ? (number) : 0] = 1;
#include "backends/cuda/calls/cuda_calls.def"
#undef CUDA_CALL
}

void cuda_subscriber_switch(bool on)
{
	if (!subscriber)
		return;
	for (uint32_t number = 1; number < NUMBERS; number++)
		if (wanted[number] && (on || !cuda_other_tool_wants(CUPTI_DOMAIN_DRIVER, number)))
			cupti.EnableCallback(on, subscriber, CUPTI_DOMAIN_DRIVER, number);
}

/* A function that this CUPTI does not know is not in this driver either. */
int cuda_subscriber_enable(void)
{
	uint32_t enabled = 0;
	int result = CUPTI_OK, failed = CUPTI_OK;

	if (!subscriber)
		return CUPTI_OK;
	want_calls();
	for (uint32_t number = 1; number < NUMBERS; number++) {
		if (!wanted[number])
			continue;
		result = cupti.EnableCallback(1, subscriber, CUPTI_DOMAIN_DRIVER, number);
		wanted[number] = result == CUPTI_OK;
		enabled += result == CUPTI_OK;
		failed = result == CUPTI_OK ? failed : result;
	}
	for (uint32_t i = 0; i < resource_count(); i++)
		cupti.EnableCallback(1, subscriber, CUPTI_DOMAIN_RESOURCE, resources[i]);
	return enabled ? CUPTI_OK : failed;
}
