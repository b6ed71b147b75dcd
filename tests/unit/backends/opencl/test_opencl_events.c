/* SPDX-License-Identifier: Apache-2.0 */
/* Events that a program holds. The source is part of the agent, so it is included here. */
#include "tracesmith_config.h"
#include "unit/runner.h"

#ifdef TS_HAVE_OPENCL

#include "backends/opencl/calls/opencl_events.c" /* NOLINT(bugprone-suspicious-include) */

static cl_event event_at(uintptr_t number)
{
	return (cl_event)(void *)(0x10000 + number * 0x40);
}

TS_TEST(events_know_their_command_and_queue)
{
	struct ocl_object queue = { .kind = OCL_QUEUE }, *found = NULL;

	TS_CHECK_INT(ocl_event_find(event_at(1), &found), 0);
	TS_CHECK(!found);
	ocl_event_add(event_at(1), 17, &queue, true);
	ocl_event_add(event_at(2), 18, NULL, false);
	TS_CHECK_INT(ocl_event_find(event_at(1), &found), 17);
	TS_CHECK(found == &queue);
	TS_CHECK_INT(ocl_event_find(event_at(2), NULL), 18);
	TS_CHECK_INT(ocl_event_holds(event_at(1)), 1);
	TS_CHECK_INT(ocl_event_holds(event_at(2)), 0);
	TS_CHECK_INT(ocl_event_holds(event_at(3)), 0);
	ocl_event_unhold(event_at(1));
	ocl_event_unhold(event_at(3));
	TS_CHECK_INT(ocl_event_holds(event_at(1)), 0);
}

TS_TEST(events_are_forgotten_with_the_last_reference)
{
	ocl_event_add(event_at(1), 5, NULL, true);
	ocl_event_retain(event_at(1));
	ocl_event_retain(event_at(9));
	TS_CHECK(!ocl_event_release(event_at(1)));
	TS_CHECK_INT(ocl_event_find(event_at(1), NULL), 5);
	TS_CHECK(ocl_event_release(event_at(1)));
	TS_CHECK_INT(ocl_event_find(event_at(1), NULL), 0);
	TS_CHECK(!ocl_event_release(event_at(1)));
	/* The driver reuses the handle for another event. */
	ocl_event_add(event_at(1), 6, NULL, false);
	TS_CHECK_INT(ocl_event_find(event_at(1), NULL), 6);
	TS_CHECK(ocl_event_release(event_at(1)));
	TS_CHECK_INT(known, 0);
}

TS_TEST(events_may_be_many)
{
	enum { COUNT = 100000 };

	for (uintptr_t i = 1; i <= COUNT; i++)
		ocl_event_add(event_at(i), i, NULL, i % 2);
	for (uintptr_t i = 1; i <= COUNT; i++) {
		TS_CHECK_INT(ocl_event_find(event_at(i), NULL), i);
		TS_CHECK_INT(ocl_event_holds(event_at(i)), i % 2);
	}
	for (uintptr_t i = 1; i <= COUNT; i += 2)
		TS_CHECK(ocl_event_release(event_at(i)));
	for (uintptr_t i = 1; i <= COUNT; i++)
		TS_CHECK_INT(ocl_event_find(event_at(i), NULL), i % 2 ? 0 : i);
}

#else

TS_TEST(events_need_headers)
{
	ts_test_skip("built without OpenCL");
}

#endif
