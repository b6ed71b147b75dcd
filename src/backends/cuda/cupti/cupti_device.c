/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of device recording (docs/cuda.md, section 3): starts after cuInit, enables activity
 * kinds while events are recorded, steps aside for another tool, resumes, and stops with the
 * program.
 *
 *	NONE -> IDLE <-> ON <-> ASIDE; any -> OFF, for good; in a forked child: FORKED
 *
 * The state changes under `lock`. CUPTI is called under it to enable and disable, which causes no
 * callback; never to flush.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/cuda/cupti/cupti_device.h"

#define WHY_BYTES 256
#define NO_CALLS "driver calls are not recorded: another tool has subscribed to CUPTI"
/* How long the start of another tool waits for running device work, in steps. */
#define ASIDE_TRIES 25
/* How long a thread waits for another one that loads CUPTI. */
#define REACH_TRIES 500
/* How long the end of a recording, or of the program, waits for running device work. */
#define FINISH_TRIES 100
#define TRY_NS 2000000

static const uint32_t kinds[] = { CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_MEMCPY,
				  CUPTI_KIND_MEMCPY2, CUPTI_KIND_MEMSET };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t current_state; /* atomic */
static uint64_t missed;     /* commands submitted while another tool used the activities; atomic */
static uint64_t idle_since; /* ts_now(); only for the helper */

enum cuda_device_state cuda_device_state(void)
{
	return __atomic_load_n(&current_state, __ATOMIC_ACQUIRE);
}

static void set_state(enum cuda_device_state state)
{
	__atomic_store_n(&current_state, state, __ATOMIC_RELEASE);
}

void cuda_device_missed(void)
{
	__atomic_add_fetch(&missed, 1, __ATOMIC_RELAXED);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = TRY_NS }, NULL);
}

/* ---- kinds ---- */

/* Under the lock. */
static int enable_kinds(void)
{
	int result = cupti.ActivityEnable(kinds[0]);

	for (size_t i = 1; i < KINDS && result == CUPTI_OK; i++)
		cupti.ActivityEnable(kinds[i]);
	return result;
}

static void disable_kinds(void)
{
	for (size_t i = 0; i < KINDS; i++)
		cupti.ActivityDisable(kinds[i]);
}

static void set_zeroed(uint8_t is_zeroed)
{
	size_t bytes = sizeof(is_zeroed);

	if (cupti.ActivitySetAttribute)
		cupti.ActivitySetAttribute(CUPTI_ATTRIBUTE_ZEROED, &bytes, &is_zeroed);
}

static void use_our_clock(void)
{
	cuda_clock_use_callback(cupti.ActivityRegisterTimestampCallback &&
				cupti.ActivityRegisterTimestampCallback(cuda_clock_timestamp) ==
					CUPTI_OK);
}

/* ---- facts ---- */

static const char *reason_of(int result)
{
	const char *text = NULL;

	switch (result) {
	case CUPTI_NO_PRIVILEGES:
	case CUPTI_VIRTUALIZED_NO_PRIVILEGES:
		return "CUPTI is denied access: load the driver with "
		       "NVreg_RestrictProfilingToAdminUsers=0, or give the program CAP_SYS_ADMIN";
	case CUPTI_OTHER_SUBSCRIBER:
	case CUPTI_LIMIT_REACHED:
		return "another tool has subscribed to CUPTI";
	case CUPTI_OLD_PROFILER:
		return "the legacy CUPTI profiler is in use";
	case CUPTI_NOT_INITIALIZED:
		return "CUPTI does not start with this driver";
	case CUPTI_VIRTUALIZED:
		return "CUPTI does not support this virtual GPU";
	case CUPTI_CONFIDENTIAL:
		return "CUPTI does not support confidential computing";
	case CUPTI_MIG:
		return "CUPTI does not support this MIG instance";
	case CUPTI_WSL:
		return "CUPTI does not support this device under WSL";
	default:
		break;
	}
	if (cupti.GetResultString && !cupti.GetResultString((uint32_t)result, &text) && text)
		return text;
	return "CUPTI failed";
}

/* Copies text from elsewhere so that it is valid in JSON. */
static void put_text(char *to, size_t bytes, const char *text)
{
	size_t length = 0;

	for (; text[length] && length + 1 < bytes; length++)
		to[length] = text[length] == '"' || text[length] == '\\' ||
					     (unsigned char)text[length] < ' '
				     ? '?'
				     : text[length];
	to[length] = 0;
}

/* The last one; empty: none yet. Under a lock of its own: the other may be held by a driver call.
 */
static char status[1600];
static pthread_mutex_t status_lock = PTHREAD_MUTEX_INITIALIZER;

void cuda_device_describe(void)
{
	char text[sizeof(status)];

	pthread_mutex_lock(&status_lock);
	memcpy(text, status, sizeof(text));
	pthread_mutex_unlock(&status_lock);
	if (text[0])
		ts_accelerator_fact("cuda_device_side", text);
}

static void emit_status(bool is_on, const char *why)
{
	char text[WHY_BYTES], path[1024];

	put_text(text, sizeof(text), why);
	put_text(path, sizeof(path), cuda_cupti_path());
	pthread_mutex_lock(&status_lock);
	snprintf(status, sizeof(status),
		 "{\"state\": \"%s\", \"reason\": \"%s\", \"cupti\": \"%s\", \"version\": %u}",
		 is_on ? "on" : "off", text, path, cuda_cupti_version());
	pthread_mutex_unlock(&status_lock);
	cuda_device_describe();
}

void cuda_device_refuse(const char *why)
{
	enum cuda_device_state before;

	pthread_mutex_lock(&lock);
	before = cuda_device_state();
	if (before == CUDA_DEVICE_ON)
		disable_kinds();
	if (before != CUDA_DEVICE_FORKED)
		set_state(CUDA_DEVICE_OFF);
	pthread_mutex_unlock(&lock);
	if (before == CUDA_DEVICE_OFF || before == CUDA_DEVICE_FORKED)
		return;
	emit_status(false, why);
}

/*
 * ---- buffers: of the current user of activities; returned buffers go to the user that supplied
 * them ----
 */

static void requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	int saved = errno;

	if (cuda_device_state() != CUDA_DEVICE_ASIDE ||
	    !cuda_other_tool_requested(buffer, bytes, most_records))
		cuda_buffers_requested(buffer, bytes, most_records);
	errno = saved;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	int saved = errno;

	if (cuda_buffers_has(buffer))
		cuda_buffers_completed(context, stream, buffer, bytes, valid);
	else
		cuda_other_tool_completed(context, stream, buffer, bytes, valid);
	errno = saved;
}

/* ---- start ---- */

/* A child has neither the helper nor a working CUDA. */
static void forked(void)
{
	if (cuda_device_state() != CUDA_DEVICE_NONE)
		set_state(CUDA_DEVICE_FORKED);
}

/* Subscribes and registers our buffers. Returns NULL, or why not. */
static const char *take_cupti(char *why)
{
	int result;

	if (!cuda_cupti_open(why, WHY_BYTES))
		return why;
	cuda_layout_begin(cuda_cupti_version());
	if (cuda_buffers_init())
		return "no memory for CUPTI's buffers";
	result = cuda_subscriber_start();
	/* Its activities pass us: they are ours while it uses none. */
	if (cuda_imports_were_redirected() &&
	    (result == CUPTI_OTHER_SUBSCRIBER || result == CUPTI_LIMIT_REACHED))
		result = CUPTI_OK;
	if (result == CUPTI_OK)
		result = cupti.ActivityRegisterCallbacks(requested, completed);
	if (result != CUPTI_OK)
		return reason_of(result);
	set_zeroed(1);
	use_our_clock();
	return NULL;
}

/* Without the lock: loads libraries, whose constructors may call this function. */
static void reach_once(void)
{
	const char *reason = cuda_cupti_rival();
	char why[WHY_BYTES];

	if (!reason)
		reason = take_cupti(why);
	if (reason) {
		cuda_device_refuse(reason);
		return;
	}
	pthread_atfork(NULL, NULL, forked);
	set_state(CUDA_DEVICE_IDLE);
}

bool cuda_device_reach(void)
{
	static uint32_t was_tried;
	enum cuda_device_state state = cuda_device_state();

	if (state == CUDA_DEVICE_NONE && cuda_is_wanted() && !cuda_is_forked()) {
		cuda_thread.is_ours++;
		if (!__atomic_exchange_n(&was_tried, 1, __ATOMIC_ACQ_REL))
			reach_once();
		for (int i = 0; i < REACH_TRIES && cuda_device_state() == CUDA_DEVICE_NONE; i++)
			nap(); /* another thread does it */
		cuda_thread.is_ours--;
		state = cuda_device_state();
	}
	return state == CUDA_DEVICE_IDLE || state == CUDA_DEVICE_ON || state == CUDA_DEVICE_ASIDE;
}

/* The first time takes long, so it does not wait for a window. */
static const char *start(void)
{
	int result = cuda_subscriber_enable();

	if (result != CUPTI_OK)
		return reason_of(result);
	if (cuda_helper_start())
		return "cannot start the thread for CUPTI's buffers";
	pthread_mutex_lock(&lock);
	if (cuda_device_state() == CUDA_DEVICE_IDLE && cuda_is_wanted()) {
		result = enable_kinds();
		if (result == CUPTI_OK)
			set_state(CUDA_DEVICE_ON);
	}
	pthread_mutex_unlock(&lock);
	return result == CUPTI_OK ? NULL : reason_of(result);
}

void cuda_device_begin(void)
{
	static uint32_t is_begun;
	int saved = errno;
	const char *why;

	if (!cuda_is_wanted() || __atomic_exchange_n(&is_begun, 1, __ATOMIC_ACQ_REL))
		return;
	if (cuda_device_reach()) {
		cuda_thread.is_ours++;
		why = start();
		cuda_thread.is_ours--;
		if (why)
			cuda_device_refuse(why);
		else
			emit_status(true, cuda_subscriber_handle() ? "" : NO_CALLS);
	} else if (cuda_device_state() == CUDA_DEVICE_FORKED) {
		emit_status(false, "CUPTI was started before this process was forked");
	} else if (cuda_device_state() == CUDA_DEVICE_NONE) {
		__atomic_store_n(&is_begun, 0, __ATOMIC_RELEASE); /* it is not wanted any more */
	}
	errno = saved;
}

/* ---- windows ---- */

static void open_window(void)
{
	int saved = errno;

	cuda_thread.is_ours++;
	pthread_mutex_lock(&lock);
	if (cuda_device_state() == CUDA_DEVICE_IDLE && cuda_is_wanted()) {
		cuda_subscriber_switch(true);
		if (enable_kinds() == CUPTI_OK)
			set_state(CUDA_DEVICE_ON);
	}
	pthread_mutex_unlock(&lock);
	cuda_thread.is_ours--;
	errno = saved;
}

static void close_window(bool is_stopped)
{
	pthread_mutex_lock(&lock);
	if (cuda_device_state() == CUDA_DEVICE_ON && (is_stopped || !ts_enabled())) {
		disable_kinds();
		cuda_subscriber_switch(false);
		set_state(CUDA_DEVICE_IDLE);
	}
	pthread_mutex_unlock(&lock);
}

void cuda_device_pause(void)
{
	int saved = errno;

	cuda_thread.is_ours++;
	close_window(true);
	cuda_thread.is_ours--;
	errno = saved;
}

void cuda_device_prepare(void)
{
	enum cuda_device_state state = __atomic_load_n(&current_state, __ATOMIC_RELAXED);

	if (__builtin_expect(state == CUDA_DEVICE_IDLE, 0) && ts_enabled())
		open_window();
}

void cuda_device_flush(void)
{
	int saved = errno;

	if (cuda_device_state() != CUDA_DEVICE_ON || !cuda_buffers_held())
		return;
	cuda_thread.is_ours++;
	cupti.ActivityFlushAll(0);
	cuda_thread.is_ours--;
	errno = saved;
}

/* Commands that were submitted while another tool used the activities. */
static void emit_missed(bool was_aside)
{
	uint64_t count = __atomic_exchange_n(&missed, 0, __ATOMIC_ACQ_REL);

	/* Without callbacks they are not counted. */
	if (was_aside && ts_enabled() && !cuda_subscriber_handle())
		count = UINT64_MAX;
	if (count)
		ts_accelerator_lost("gpu_op", count, "another tool used CUPTI");
}

void cuda_device_catch_up(void)
{
	int saved = errno;

	if (cuda_device_state() == CUDA_DEVICE_ASIDE)
		emit_missed(true);
	if (cuda_device_state() != CUDA_DEVICE_ON)
		return;
	cuda_thread.is_ours++;
	cupti.ActivityFlushAll(0);
	for (int i = 0; i < FINISH_TRIES && cuda_buffers_pending(); i++) {
		nap();
		cupti.ActivityFlushAll(0);
	}
	cuda_helper_catch_up();
	cuda_thread.is_ours--;
	errno = saved;
}

void cuda_device_rest(void)
{
	enum cuda_device_state state = cuda_device_state();

	if (ts_enabled()) {
		idle_since = 0;
		if (state == CUDA_DEVICE_IDLE)
			open_window();
		return;
	}
	if (state != CUDA_DEVICE_ON)
		return;
	if (!idle_since) {
		idle_since = ts_now();
		return;
	}
	close_window(false);
	idle_since = 0;
}

void cuda_device_settle(void)
{
	pthread_mutex_lock(&lock);
	if (cuda_device_state() == CUDA_DEVICE_IDLE)
		cuda_subscriber_switch(false);
	pthread_mutex_unlock(&lock);
}

/* ---- another tool ---- */

static uint64_t real_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * CUDA_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* Flushes all that CUPTI holds: its records must not go to our buffers, nor ours to its. */
static void empty_cupti(void)
{
	for (int i = 0; i < ASIDE_TRIES && cuda_buffers_held(); i++) {
		cupti.ActivityFlushAll(0);
		if (cuda_buffers_held())
			nap();
	}
	if (cuda_buffers_held())
		cuda_buffers_force();
}

/* The timestamps that it would get without us: its own, else CUPTI's default. */
void cuda_device_lend_clock(void)
{
	cupti_timestamp theirs = cuda_other_tool_timestamp();

	if (cupti.ActivityRegisterTimestampCallback)
		cupti.ActivityRegisterTimestampCallback(theirs ? theirs : real_time);
}

void cuda_device_step_aside(void)
{
	bool is_stepping;

	cuda_thread.is_ours++;
	pthread_mutex_lock(&lock);
	is_stepping = cuda_device_state() == CUDA_DEVICE_ON ||
		      cuda_device_state() == CUDA_DEVICE_IDLE;
	if (is_stepping) {
		if (cuda_device_state() == CUDA_DEVICE_ON)
			disable_kinds();
		else
			cuda_subscriber_switch(true); /* counts what is missed */
		set_state(CUDA_DEVICE_ASIDE);
	}
	pthread_mutex_unlock(&lock);
	if (is_stepping) {
		empty_cupti();
		set_zeroed(0);
		cuda_device_lend_clock();
	}
	cuda_thread.is_ours--;
}

void cuda_device_come_back(void)
{
	bool was_aside;

	cuda_thread.is_ours++;
	pthread_mutex_lock(&lock);
	was_aside = cuda_device_state() == CUDA_DEVICE_ASIDE;
	if (was_aside) {
		set_zeroed(1);
		use_our_clock();
		if (ts_enabled() && cuda_is_wanted() && enable_kinds() == CUPTI_OK) {
			set_state(CUDA_DEVICE_ON);
		} else {
			cuda_subscriber_switch(false);
			set_state(CUDA_DEVICE_IDLE);
		}
	}
	pthread_mutex_unlock(&lock);
	cuda_thread.is_ours--;
	if (was_aside)
		emit_missed(true);
}

/* ---- exit ---- */

void cuda_device_finish(void)
{
	enum cuda_device_state before;

	pthread_mutex_lock(&lock);
	before = cuda_device_state();
	if (before == CUDA_DEVICE_ON)
		disable_kinds();
	if (before != CUDA_DEVICE_FORKED)
		set_state(CUDA_DEVICE_OFF);
	pthread_mutex_unlock(&lock);
	if (before == CUDA_DEVICE_ON || before == CUDA_DEVICE_IDLE) {
		cupti.ActivityFlushAll(0);
		cuda_buffers_read();
		for (int i = 0; i < FINISH_TRIES && cuda_buffers_pending(); i++) {
			nap();
			cupti.ActivityFlushAll(0);
			cuda_buffers_read();
		}
		if (cuda_buffers_held())
			cuda_buffers_force();
	}
	cuda_buffers_read();
	emit_missed(before == CUDA_DEVICE_ASIDE);
}

void cuda_device_end(void)
{
	enum cuda_device_state state = cuda_device_state();
	int saved = errno;

	if (state != CUDA_DEVICE_NONE && state != CUDA_DEVICE_FORKED && !cuda_helper_stop())
		emit_status(false, "the driver did not respond when the program exited");
	errno = saved;
}
