/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending commands, on a fake driver whose events are set by each test. The source is part of the
 * agent, so it is included here.
 */
#include "tracesmith_config.h"
#include "unit/runner.h"

#ifdef TS_HAVE_OPENCL

#include <tracesmith/accelerator.h>

/* Emitted records go to the test. */
#define ts_accelerator_op emitted_op
#define ts_accelerator_lost emitted_lost
static void emitted_op(struct ts_emit_site *site, const struct ts_gpu_op *op);
static void emitted_lost(const char *what, uint64_t count, const char *reason);

#include "backends/opencl/calls/opencl_profile.c" /* NOLINT(bugprone-suspicious-include) */

struct ocl ocl;

/* The fake clock in nanoseconds, and how much passes whenever the driver is asked for times. */
static uint64_t clock_ns, question_ns;

uint64_t ts_now(void)
{
	return clock_ns;
}

int64_t ts_ticks_ns(uint64_t ticks)
{
	return (int64_t)ticks;
}

/* ---- emitted records ---- */

static struct ts_gpu_op emitted[1000];
static uint64_t emitted_waits[1000][TS_GPU_OP_WAITS];
static unsigned int emitted_count, lost_count, unhold_count, bracket_count;

static void emitted_op(struct ts_emit_site *site, const struct ts_gpu_op *op)
{
	unsigned int waits = op->wait_count < TS_GPU_OP_WAITS ? op->wait_count : TS_GPU_OP_WAITS;

	(void)site;
	emitted[emitted_count] = *op;
	memcpy(emitted_waits[emitted_count], op->waits, waits * sizeof(*op->waits));
	emitted_count++;
}

static void emitted_lost(const char *what, uint64_t count, const char *reason)
{
	(void)what;
	(void)reason;
	lost_count += (unsigned int)count;
}

/* ---- stubs for the neighbouring files ---- */

void ocl_event_add(cl_event event, uint64_t correlation, struct ocl_object *queue, bool we_hold)
{
	(void)event;
	(void)correlation;
	(void)queue;
	TS_CHECK(we_hold);
}

void ocl_event_unhold(cl_event event)
{
	(void)event;
	unhold_count++;
}

/* Events are numbers, and so are correlations. */
uint64_t ocl_event_find(cl_event event, struct ocl_object **ret_queue)
{
	(void)ret_queue;
	return (uint64_t)(uintptr_t)event % 7 == 0 ? 0 : (uint64_t)(uintptr_t)event;
}

void ocl_helper_add(struct ocl_object *queue)
{
	(void)queue;
}

void ocl_helper_wake(void)
{
}

void ocl_helper_look(void)
{
}

void ocl_clock_bracket(struct ocl_object *device, int64_t queued, uint64_t before, uint64_t after)
{
	(void)device;
	(void)queued;
	TS_CHECK(after - before == 10);
	bracket_count++;
}

void ocl_clock_emit(struct ocl_object *device)
{
	(void)device;
	/* Before the commands that need it. */
	TS_CHECK_INT(emitted_count, 0);
}

int64_t ocl_clock_estimate(struct ocl_object *device, uint64_t at)
{
	(void)device;
	return (int64_t)at + 1000000;
}

/* ---- the driver ---- */

enum { EVENTS = 1000 };

static cl_int status[EVENTS]; /* CL_QUEUED (3) and below; 42: complete, without times */
static int references[EVENTS];

static size_t number_of(cl_event event)
{
	size_t number = (size_t)(uintptr_t)event;

	TS_CHECK(number && number < EVENTS);
	return number;
}

static cl_int CL_API_CALL query_event(cl_event event, cl_event_info what, size_t size, void *value,
				      size_t *ret_size)
{
	cl_int answer_ = status[number_of(event)];

	(void)ret_size;
	TS_CHECK_INT(what, CL_EVENT_COMMAND_EXECUTION_STATUS);
	answer_ = answer_ == 42 ? CL_COMPLETE : answer_;
	memcpy(value, &answer_, size);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL query_profile(cl_event event, cl_profiling_info what, size_t size,
					void *value, size_t *ret_size)
{
	cl_ulong time = 1000 * number_of(event) + (what - CL_PROFILING_COMMAND_QUEUED);

	(void)ret_size;
	clock_ns += question_ns;
	if (status[number_of(event)] != CL_COMPLETE)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	memcpy(value, &time, size);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL retain(cl_event event)
{
	references[number_of(event)]++;
	return CL_SUCCESS;
}

static cl_int CL_API_CALL release(cl_event event)
{
	TS_CHECK(references[number_of(event)] > 0);
	references[number_of(event)]--;
	return CL_SUCCESS;
}

static struct ocl_object device = { .kind = OCL_DEVICE };
static struct ocl_object queue = { .kind = OCL_QUEUE, .device = &device };

static void begin(bool out_of_order)
{
	ocl.next.clGetEventInfo = query_event;
	ocl.next.clGetEventProfilingInfo = query_profile;
	ocl.next.clRetainEvent = retain;
	ocl.next.clReleaseEvent = release;
	pthread_mutex_init(&queue.looking, NULL);
	pthread_mutex_init(&queue.pending_lock, NULL);
	queue.out_of_order = out_of_order;
	ocl_profile_queue(&queue);
}

static struct ts_emit_site site = TS_GPU_OP_SITE("kernel", "kernel");

static bool give(size_t number, bool program_wants_it, cl_uint wait_count, const cl_event *waits)
{
	cl_event out = NULL;
	struct ocl_command command = { .verb = OCL_LAUNCH,
				       .queue = &queue,
				       .op_site = &site,
				       .event = (cl_event)(void *)(uintptr_t)number,
				       .program_event = program_wants_it ? &out : NULL,
				       .wait_count = wait_count,
				       .waits = waits };
	struct ts_gpu_op op = { .size = sizeof(op), .correlation = number };

	references[number] = 1;
	status[number] = CL_QUEUED;
	/* The narrowest bracket is that of number 3. */
	return ocl_profile_given(&command, &op, number * 100,
				 number * 100 + (number == 3 ? 10 : 50));
}

/* ---- tests ---- */

TS_TEST(commands_in_order_are_taken_up_to_the_first_that_is_not_complete)
{
	begin(false);
	for (size_t i = 1; i <= 6; i++)
		give(i, false, 0, NULL);
	status[1] = status[2] = status[3] = status[5] = CL_COMPLETE;
	ocl_profile_look(&queue);
	TS_CHECK_INT(emitted_count, 3);
	TS_CHECK_INT(emitted[2].correlation, 3);
	TS_CHECK_INT(emitted[2].queued, 3000);
	TS_CHECK_INT(emitted[2].submitted, 3001);
	TS_CHECK_INT(emitted[2].start, 3002);
	TS_CHECK_INT(emitted[2].end, 3003);
	TS_CHECK_INT(bracket_count, 1);
	TS_CHECK_INT(queue.pending_count, 3);
	TS_CHECK_INT(references[3], 0);
	TS_CHECK_INT(references[4], 1);
}

TS_TEST(commands_out_of_order_are_taken_as_they_complete)
{
	begin(true);
	for (size_t i = 1; i <= 6; i++)
		give(i, false, 0, NULL);
	status[3] = status[6] = CL_COMPLETE;
	ocl_profile_look(&queue);
	TS_CHECK_INT(emitted_count, 2);
	TS_CHECK_INT(emitted[1].correlation, 6);
	TS_CHECK_INT(queue.pending_count, 4);
	/* New commands queue up behind the remaining ones. */
	give(7, false, 0, NULL);
	TS_CHECK_INT(queue.first->op.correlation, 1);
	TS_CHECK_INT(queue.last->op.correlation, 7);
}

TS_TEST(a_list_that_is_left_whole_can_be_added_to)
{
	begin(false);
	give(1, false, 0, NULL);
	ocl_profile_look(&queue);
	give(2, false, 0, NULL);
	status[1] = status[2] = CL_COMPLETE;
	emitted_count = 0;
	queue.device = NULL;
	ocl_profile_look(&queue);
	TS_CHECK_INT(emitted_count, 2);
	TS_CHECK(!queue.first && !queue.last);
	give(3, false, 0, NULL);
	TS_CHECK(queue.first == queue.last && queue.first);
}

TS_TEST(failed_commands_have_the_time_of_their_call)
{
	begin(false);
	queue.device = &device;
	give(1, false, 0, NULL);
	give(2, false, 0, NULL);
	status[1] = -5;
	status[2] = 42;
	ocl_profile_look(&queue);
	TS_CHECK_INT(emitted_count, 2);
	TS_CHECK_INT(emitted[0].queued, 100 + 1000000);
	TS_CHECK_INT(emitted[0].start, TS_UNKNOWN);
	TS_CHECK_INT(emitted[1].end, TS_UNKNOWN);
	TS_CHECK_INT(lost_count, 2);
	TS_CHECK_INT(bracket_count, 0);
	TS_CHECK_INT(references[1] + references[2], 0);
}

TS_TEST(events_of_the_program_are_held_and_let_go)
{
	begin(false);
	give(1, true, 0, NULL);
	TS_CHECK_INT(references[1], 2);
	status[1] = CL_COMPLETE;
	queue.device = NULL;
	ocl_profile_look(&queue);
	TS_CHECK_INT(references[1], 1);
	TS_CHECK_INT(unhold_count, 1);
}

TS_TEST(waits_are_those_whose_commands_are_known)
{
	cl_event waits[40];

	begin(false);
	queue.device = NULL;
	for (uintptr_t i = 0; i < 40; i++)
		waits[i] = (cl_event)(void *)(i + 1);
	give(1, false, 3, waits);
	give(2, false, 40, waits);
	status[1] = status[2] = CL_COMPLETE;
	ocl_profile_look(&queue);
	TS_CHECK_INT(emitted[0].wait_count, 3);
	TS_CHECK_INT(emitted_waits[0][2], 3);
	/* Five of forty are unknown; not all of the others fit. */
	TS_CHECK_INT(emitted[1].wait_count, 35);
	TS_CHECK_INT(emitted_waits[1][31], 37);
}

TS_TEST(a_queue_is_due_at_every_64th_command)
{
	begin(false);
	queue.device = NULL;
	for (size_t i = 1; i <= 63; i++)
		TS_CHECK(!give(i, false, 0, NULL));
	TS_CHECK(give(64, false, 0, NULL));
	ocl_profile_look_between(&queue);
	TS_CHECK(!give(65, false, 0, NULL));
	TS_CHECK_INT(queue.look_every, 64);
}

TS_TEST(a_queue_that_is_dear_to_look_at_is_due_less_often)
{
	begin(false);
	queue.device = NULL;
	question_ns = 500;
	for (size_t i = 1; i <= 64; i++) {
		give(i, false, 0, NULL);
		status[i] = CL_COMPLETE;
	}
	ocl_profile_look_between(&queue);
	TS_CHECK_INT(emitted_count, 64);
	TS_CHECK_INT(queue.look_every, 256);
	/* When the program waits anyway, the interval stays. */
	give(65, false, 0, NULL);
	ocl_profile_look(&queue);
	TS_CHECK_INT(queue.look_every, 256);
}

TS_TEST(commands_without_an_event_are_told_at_once)
{
	struct ocl_command command = { .verb = OCL_BARRIER, .queue = &queue, .op_site = &site };
	struct ts_gpu_op op = { .size = sizeof(op), .correlation = 9 };

	begin(false);
	queue.device = &device;
	TS_CHECK(!ocl_profile_given(&command, &op, 500, 510));
	TS_CHECK_INT(emitted_count, 1);
	TS_CHECK_INT(emitted[0].queued, 1000500);
	TS_CHECK_INT(emitted[0].start, TS_UNKNOWN);
	TS_CHECK_INT(queue.pending_count, 0);
}

#else

TS_TEST(profile_needs_headers)
{
	ts_test_skip("built without OpenCL");
}

#endif
