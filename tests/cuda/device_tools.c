/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device activity next to other users of CUPTI, and where it must not be used, on a stand-in for
 * CUPTI.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/played.h"

/* As another tool sees them: the functions of src/backends/cuda/cupti/cupti_sharing.c. */
#define CUPTI_FUNCTION(name, parameters) int cupti##name parameters;
CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION

/* ---- other tools ---- */

static uint32_t their_callbacks, their_requests, their_records;
static uint8_t their_buffer[65536];

static void their_callback(void *data, uint32_t domain, uint32_t number, const void *what)
{
	(void)domain, (void)number, (void)what;
	TS_CHECK(data == &their_callbacks);
	their_callbacks++;
}

static void their_requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	their_requests++;
	memset(their_buffer, 0, sizeof(their_buffer));
	*buffer = their_buffer;
	*bytes = sizeof(their_buffer);
	*most_records = 0;
}

static void their_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			    size_t valid)
{
	(void)context, (void)stream, (void)bytes;
	TS_CHECK(buffer == their_buffer);
	their_records += (uint32_t)(valid / cupti_played->kernel_bytes);
}

static uint64_t their_clock(void)
{
	return 42;
}

/*
 * Like torch.profiler: subscribes once, permanently; each session registers, enables, disables,
 * flushes.
 */
TS_TEST(torch_profiler_has_its_events_and_we_come_back)
{
	void *subscriber = NULL;
	uint64_t ns = 0;

	begin();
	launch(1);
	TS_CHECK_INT(cuptiSubscribe(&subscriber, their_callback, &their_callbacks), CUPTI_OK);
	TS_CHECK(subscriber != NULL);
	TS_CHECK_INT(cupti_played->subscriptions, 1);
	for (uint32_t session = 0; session < 3; session++) {
		TS_CHECK_INT(cuptiActivityRegisterCallbacks(their_requested, their_completed), 0);
		TS_CHECK_INT(cuptiActivityRegisterTimestampCallback(their_clock), 0);
		TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ON);
		TS_CHECK_INT(cuptiGetTimestamp(&ns), CUPTI_OK);
		TS_CHECK_INT(ns, 42);
		cupti_played->complete(1, 10, 20);
		TS_CHECK_INT(cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
		TS_CHECK_INT(cuptiActivityEnable(CUPTI_KIND_RUNTIME), CUPTI_OK);
		TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ASIDE);
		TS_CHECK(!cupti_played->kinds[CUPTI_KIND_MEMCPY]); /* ours only */
		TS_CHECK_INT(cupti_played->registered, 1);
		TS_CHECK(cupti_played->timestamp == their_clock);
		TS_CHECK_INT(cupti_played->zeroed, 0);
		/* Our own records are read, theirs are not. */
		await_ops(session + 1);
		for (uint32_t i = 0; i < 5; i++)
			TS_CHECK_INT(launch(100 + i), 0);
		cupti_played->complete(5, 30, 40);
		let_helper_look();
		TS_CHECK_INT(their_records, session * 5);
		TS_CHECK_INT(cuptiActivityDisable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
		TS_CHECK_INT(cuptiActivityDisable(CUPTI_KIND_RUNTIME), CUPTI_OK);
		TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ASIDE); /* it has not flushed */
		TS_CHECK_INT(cuptiActivityFlushAll(1), CUPTI_OK);
		TS_CHECK_INT(their_records, session * 5 + 5);
		TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ON);
		TS_CHECK_INT(lost, session * 5 + 5);
		TS_CHECK_STR(lost_reason, "another tool used CUPTI");
		TS_CHECK(cupti_played->kinds[CUPTI_KIND_MEMCPY]);
		TS_CHECK(cupti_played->timestamp == cuda_clock_timestamp);
		TS_CHECK_INT(cupti_played->zeroed, 1);
		TS_CHECK(launch(2) != 0);
	}
	cupti_played->complete(1, 10, 20);
	await_ops(4);
	TS_CHECK_INT(their_requests, 3);
}

/*
 * A kernel still runs while the other tool starts: its record is not waited for, and does not end
 * up in the other's buffer.
 */
TS_TEST(what_runs_when_we_step_aside_is_given_up)
{
	begin();
	launch(1);
	cuptiActivityRegisterCallbacks(their_requested, their_completed);
	TS_CHECK_INT(cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	TS_CHECK_INT(cupti_played->forced, 1);
	TS_CHECK_INT(cupti_played->outstanding, 0);
	TS_CHECK_INT(their_records, 0);
	let_helper_look();
	TS_CHECK_INT(ops_now(), 0);
}

TS_TEST(their_subscriber_gets_what_it_enabled_and_ours_stays)
{
	void *subscriber, *second;
	uint32_t is_on = 9;

	begin();
	TS_CHECK_INT(cuptiSubscribe_v2(&subscriber, their_callback, &their_callbacks, NULL), 0);
	TS_CHECK_INT(cuptiSubscribe(&second, their_callback, NULL), CUPTI_OTHER_SUBSCRIBER);
	launch(1);
	TS_CHECK_INT(their_callbacks, 0);
	TS_CHECK_INT(cuptiEnableCallback(1, subscriber, CUPTI_DOMAIN_DRIVER, LAUNCH), CUPTI_OK);
	launch(1);
	TS_CHECK_INT(their_callbacks, 2);
	TS_CHECK_INT(cuptiGetCallbackState(&is_on, subscriber, CUPTI_DOMAIN_DRIVER, LAUNCH), 0);
	TS_CHECK_INT(is_on, 1);
	TS_CHECK_INT(cuptiEnableCallback(0, subscriber, CUPTI_DOMAIN_DRIVER, LAUNCH), CUPTI_OK);
	TS_CHECK(launch(1) != 0); /* ours is called next */
	TS_CHECK_INT(cuptiEnableDomain(1, subscriber, CUPTI_DOMAIN_DRIVER), CUPTI_OK);
	cupti_played->call(&(struct stand_in_work){ .number = 1 });
	TS_CHECK_INT(their_callbacks, 4);
	TS_CHECK_INT(cuptiEnableDomain(0, subscriber, CUPTI_DOMAIN_DRIVER), CUPTI_OK);
	TS_CHECK(launch(1) != 0);
	TS_CHECK_INT(their_callbacks, 4);
	TS_CHECK_INT(cuptiEnableAllDomains(1, subscriber), CUPTI_OK);
	TS_CHECK_INT(cuptiUnsubscribe(subscriber), CUPTI_OK);
	TS_CHECK(launch(1) != 0);
	TS_CHECK_INT(their_callbacks, 4);
	TS_CHECK_INT(cuptiEnableCallback(1, NULL, 1, LAUNCH), CUPTI_INVALID_PARAMETER);
	TS_CHECK_INT(cuptiSubscribe(NULL, their_callback, NULL), CUPTI_INVALID_PARAMETER);
}

/* We want nothing: what they switch off is off. */
TS_TEST(callbacks_stay_off_while_nothing_is_wanted)
{
	void *subscriber;

	begin();
	__atomic_store_n(&is_enabled, 0, __ATOMIC_SEQ_CST);
	await_state(CUDA_DEVICE_IDLE);
	TS_CHECK_INT(cuptiSubscribe(&subscriber, their_callback, &their_callbacks), CUPTI_OK);
	TS_CHECK_INT(cuptiEnableCallback(1, subscriber, CUPTI_DOMAIN_DRIVER, LAUNCH), CUPTI_OK);
	TS_CHECK(cupti_played->is_called_back(CUPTI_DOMAIN_DRIVER, LAUNCH));
	TS_CHECK_INT(cuptiEnableCallback(0, subscriber, CUPTI_DOMAIN_DRIVER, LAUNCH), CUPTI_OK);
	TS_CHECK(!cupti_played->is_called_back(CUPTI_DOMAIN_DRIVER, LAUNCH));
	TS_CHECK_INT(cuptiEnableDomain(1, subscriber, CUPTI_DOMAIN_DRIVER), CUPTI_OK);
	TS_CHECK_INT(cuptiEnableDomain(0, subscriber, CUPTI_DOMAIN_DRIVER), CUPTI_OK);
	TS_CHECK(!cupti_played->is_called_back(CUPTI_DOMAIN_DRIVER, LAUNCH));
	TS_CHECK_INT(cuptiEnableDomain(1, subscriber, CUPTI_DOMAIN_DRIVER), CUPTI_OK);
	TS_CHECK_INT(cuptiUnsubscribe(subscriber), CUPTI_OK);
	TS_CHECK(!cupti_played->is_called_back(CUPTI_DOMAIN_DRIVER, LAUNCH));
	__atomic_store_n(&is_enabled, 1, __ATOMIC_SEQ_CST);
	TS_CHECK(launch(1) != 0);
}

/*
 * They came first, the process forked, and the child initializes CUDA: it says why there is no
 * device activity.
 */
TS_TEST(a_child_of_a_process_that_they_began_in)
{
	void *subscriber;
	pid_t child;
	int status;

	open_stand_in();
	TS_CHECK_INT(cuptiSubscribe(&subscriber, their_callback, &their_callbacks), CUPTI_OK);
	child = fork();
	if (!child) {
		begin();
		_exit(!strstr(fact, "\"state\": \"off\"") || !strstr(fact, "forked"));
	}
	TS_CHECK(waitpid(child, &status, 0) == child);
	TS_CHECK(WIFEXITED(status));
	TS_CHECK_INT(WEXITSTATUS(status), 0);
}

/* Before cuInit: torch subscribes while it is imported. */
TS_TEST(they_may_come_first)
{
	void *subscriber;

	open_stand_in();
	TS_CHECK_INT(cuptiSubscribe(&subscriber, their_callback, &their_callbacks), CUPTI_OK);
	TS_CHECK_INT(cupti_played->subscriptions, 1);
	TS_CHECK_INT(cuptiActivityRegisterCallbacks(their_requested, their_completed), CUPTI_OK);
	TS_CHECK_INT(cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	begin();
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ASIDE);
	launch(1);
	cupti_played->complete(1, 10, 20);
	TS_CHECK_INT(cuptiActivityDisable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	TS_CHECK_INT(cuptiActivityFlushAll(0), CUPTI_OK);
	TS_CHECK_INT(their_records, 1);
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ON);
	launch(2);
	cupti_played->complete(1, 10, 20);
	await_ops(1);
}

/* If nothing ran, torch.profiler has no buffers, and does not flush. */
TS_TEST(they_may_end_without_a_flush)
{
	begin();
	cuptiActivityRegisterCallbacks(their_requested, their_completed);
	TS_CHECK_INT(cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	TS_CHECK_INT(cuptiActivityEnable(CUPTI_KIND_RUNTIME), CUPTI_OK);
	TS_CHECK_INT(cuptiActivityDisable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ASIDE);
	TS_CHECK_INT(cuptiActivityDisable(CUPTI_KIND_RUNTIME), CUPTI_OK);
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ON);
	TS_CHECK_INT(lost, 0);
}

/* A kernel of theirs outlasts their session: they get its record, and we resume with it. */
TS_TEST(their_buffers_come_back_late)
{
	begin();
	cuptiActivityRegisterCallbacks(their_requested, their_completed);
	TS_CHECK_INT(cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	launch(1);
	TS_CHECK_INT(cuptiActivityDisable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	TS_CHECK_INT(cuptiActivityFlushAll(0), CUPTI_OK);
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ASIDE);
	TS_CHECK_INT(their_records, 0);
	cupti_played->complete(1, 10, 20);
	await_state(CUDA_DEVICE_ON);
	TS_CHECK_INT(their_records, 1);
	TS_CHECK_INT(ops_now(), 0);
}

/* A spare buffer of ours is not theirs, and does not make us resume. */
TS_TEST(spare_buffers_are_not_theirs)
{
	uint8_t *buffer;
	size_t bytes, most;

	begin();
	do
		cuda_buffers_requested(&buffer, &bytes, &most);
	while (bytes == 16384);
	cuda_buffers_completed(NULL, 0, buffer, bytes, 0);
	launch(1);
	cuptiActivityRegisterCallbacks(their_requested, their_completed);
	cupti_played->complete(1, 10, 20);
	TS_CHECK_INT(cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	TS_CHECK_INT(cupti_played->outstanding, 0);
	TS_CHECK_INT(their_records, 0);
	launch(2);
	cupti_played->complete(1, 10, 20);
	TS_CHECK_INT(cuptiActivityDisable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ASIDE);
	TS_CHECK_INT(cuptiActivityFlushAll(0), CUPTI_OK);
	TS_CHECK_INT(their_records, 1);
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ON);
}

/* Their flush, while the activities are ours, does not cut short what runs. */
TS_TEST(their_flush_does_not_force_ours)
{
	begin();
	launch(1);
	TS_CHECK_INT(cuptiActivityFlushAll(1), CUPTI_OK);
	TS_CHECK_INT(cupti_played->forced, 0);
	cupti_played->complete(1, 10, 20);
	await_ops(1);
}

TS_TEST(kinds_that_they_did_not_enable_stay_on)
{
	begin();
	TS_CHECK_INT(cuptiActivityDisable(CUPTI_KIND_CONCURRENT_KERNEL), CUPTI_OK);
	TS_CHECK_INT(cuptiActivityFlushAll(0), CUPTI_OK);
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ON);
	TS_CHECK(cupti_played->kinds[CUPTI_KIND_CONCURRENT_KERNEL]);
}

TS_TEST(finalized_by_another)
{
	begin();
	TS_CHECK_INT(cuptiFinalize(), CUPTI_OK);
	TS_CHECK_INT(cupti_played->finalized, 1);
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_OFF);
	TS_CHECK(strstr(fact, "another tool stopped CUPTI") != NULL);
}

/*
 * The helper thread is inside CUPTI at that moment: it is waited for, and calls nothing afterwards.
 */
TS_TEST(finalized_while_the_helper_flushes)
{
	begin();
	launch(1);
	cupti_played->complete(1, 10, 20);
	cupti_played->flush_us = 50000;
	for (int i = 0; i < WAIT_TRIES; i++) {
		launch(2);
		if (__atomic_load_n(&cupti_played->flushing, __ATOMIC_SEQ_CST))
			break;
		usleep(1000);
	}
	TS_CHECK(__atomic_load_n(&cupti_played->flushing, __ATOMIC_SEQ_CST) > 0);
	TS_CHECK_INT(cuptiFinalize(), CUPTI_OK);
	TS_CHECK_INT(cupti_played->overlapping, 0);
	TS_CHECK_INT(cuda_stream_number((void *)13, NULL), UINT32_MAX);
	TS_CHECK(cuda_cupti("cuptiPCSamplingGetData") == NULL);
	let_helper_look();
	cuda_device_end();
	TS_CHECK_INT(cupti_played->late, 0);
}

TS_TEST(names_that_are_replaced)
{
	TS_CHECK(cuda_other_tool("cuptiSubscribe") == (void *)(uintptr_t)cuptiSubscribe);
	TS_CHECK(cuda_other_tool("cuptiActivityEnable") == (void *)(uintptr_t)cuptiActivityEnable);
	TS_CHECK(cuda_other_tool("cuptiActivityGetNextRecord") == NULL);
	TS_CHECK(cuda_other_tool("cuptiNothing") == NULL);
}

/* ---- refusals ---- */

static void check_refused(const char *why)
{
	begin();
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_OFF);
	TS_CHECK(strstr(fact, "\"state\": \"off\"") != NULL);
	if (!strstr(fact, why))
		ts_test_fail(__FILE__, __LINE__, "'%s' is not in %s", why, fact);
	TS_CHECK_INT(launch(1), 0);
	cuda_device_end();
}

TS_TEST(refused_for_another_subscriber)
{
	open_stand_in();
	cupti_played->subscribe_result = CUPTI_OTHER_SUBSCRIBER;
	check_refused("another tool has subscribed");
	TS_CHECK_INT(cuptiSubscribe(&(void *){ NULL }, their_callback, NULL),
		     CUPTI_OTHER_SUBSCRIBER);
}

TS_TEST(refused_for_want_of_privileges)
{
	open_stand_in();
	cupti_played->enable_result = CUPTI_NO_PRIVILEGES;
	check_refused("NVreg_RestrictProfilingToAdminUsers=0");
}

TS_TEST(refused_for_mig)
{
	open_stand_in();
	cupti_played->enable_result = CUPTI_MIG;
	check_refused("MIG");
}

TS_TEST(refused_with_the_text_of_cupti)
{
	open_stand_in();
	cupti_played->enable_result = 999;
	check_refused("an error of the ?stand-in?");
}

TS_TEST(refused_under_nsight)
{
	setenv("NSYS_PROFILING_SESSION_ID", "1", 1);
	open_stand_in();
	check_refused("Nsight");
	TS_CHECK_INT(cupti_played->subscriptions, 0);
}

TS_TEST(refused_beside_another_injection)
{
	setenv("CUDA_INJECTION64_PATH", "/opt/other/libother.so", 1);
	open_stand_in();
	check_refused("CUDA_INJECTION64_PATH");
}
