/* SPDX-License-Identifier: Apache-2.0 */
/* Pending commands, a list per queue; completed ones become gpu_ops. */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl_internal.h"

/*
 * A queue is collected when this many commands were enqueued since the last time. The number grows
 * if collecting is expensive, as with drivers that respond slowly while the device works. Then the
 * helper does it, or the program when it waits anyway.
 */
#define LOOK_EVERY_LEAST 64
#define LOOK_EVERY_MOST 65536
#define DEAR_NS 1000 /* per command */
/* Incomplete commands of an out-of-order queue, before the rest is left for later. */
#define INCOMPLETE_AT_MOST 256
#define PENDING_AT_ONCE 32

struct ocl_pending {
	struct ocl_pending *next;
	cl_event event;
	struct ts_emit_site *site;
	uint64_t before, after; /* ts_now() around the call */
	bool program_has_it;
	struct ts_gpu_op op;
	uint64_t waits[TS_GPU_OP_WAITS];
};

/* ---- enqueued commands ---- */

static void make_more(struct ocl_object *queue)
{
	struct ocl_pending *nodes = calloc(PENDING_AT_ONCE, sizeof(*nodes));

	for (int i = 0; nodes && i < PENDING_AT_ONCE; i++) {
		nodes[i].next = queue->spare;
		queue->spare = &nodes[i];
	}
}

/* The events of the wait list whose commands we know. */
static void fill_waits(const struct ocl_command *command, struct ts_gpu_op *op, uint64_t *waits)
{
	unsigned int count = 0;

	for (cl_uint i = 0; i < command->wait_count; i++) {
		uint64_t correlation = ocl_event_find(command->waits[i], NULL);

		if (correlation && count < TS_GPU_OP_WAITS)
			waits[count] = correlation;
		count += correlation != 0;
	}
	op->wait_count = (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX);
	op->waits = waits;
}

/* Only the time of its enqueue is known. */
static void set_untimed(const struct ocl_object *queue, struct ts_gpu_op *op, uint64_t before)
{
	op->queued = queue->device ? ocl_clock_estimate(queue->device, before) : TS_UNKNOWN;
	op->submitted = op->start = op->end = TS_UNKNOWN;
}

/* It has no event. */
static void emit_untimed(const struct ocl_command *command, const struct ts_gpu_op *op,
			 uint64_t before)
{
	uint64_t waits[TS_GPU_OP_WAITS];
	struct ts_gpu_op untimed = *op;

	fill_waits(command, &untimed, waits);
	set_untimed(command->queue, &untimed, before);
	ts_accelerator_op(command->op_site, &untimed);
}

/* Under the lock. NULL: no memory. */
static struct ocl_pending *append(struct ocl_object *queue)
{
	struct ocl_pending *node;

	if (!queue->spare)
		make_more(queue);
	node = queue->spare;
	if (!node)
		return NULL;
	queue->spare = node->next;
	node->next = NULL;
	if (queue->last)
		queue->last->next = node;
	else
		__atomic_store_n(&queue->first, node, __ATOMIC_RELAXED);
	queue->last = node;
	/* Before checking whether the helper sleeps (opencl_helper.c). */
	__atomic_fetch_add(&queue->pending_count, 1, __ATOMIC_SEQ_CST);
	queue->since_look++;
	return node;
}

static void lose(const struct ocl_command *command)
{
	if (command->program_event)
		ocl_event_unhold(command->event);
	ocl.next.clReleaseEvent(command->event);
	ts_accelerator_lost("gpu_op", 1, "no memory");
}

bool ocl_profile_given(const struct ocl_command *command, const struct ts_gpu_op *op,
		       uint64_t before, uint64_t after)
{
	struct ocl_object *queue = command->queue;
	struct ocl_pending *node;
	bool is_due;

	if (!command->event) {
		emit_untimed(command, op, before);
		return false;
	}
	if (command->program_event) {
		ocl.next.clRetainEvent(command->event);
		ocl_event_add(command->event, op->correlation, queue, true);
	}
	pthread_mutex_lock(&queue->pending_lock);
	node = append(queue);
	if (node) {
		node->event = command->event;
		node->site = command->op_site;
		node->before = before;
		node->after = after;
		node->program_has_it = command->program_event != NULL;
		node->op = *op;
		fill_waits(command, &node->op, node->waits);
	}
	is_due = queue->since_look >= queue->look_every;
	pthread_mutex_unlock(&queue->pending_lock);
	if (!node)
		lose(command);
	ocl_helper_wake();
	return is_due;
}

/* ---- collecting ---- */

static bool query(cl_event event, cl_profiling_info what, int64_t *ret_ns)
{
	cl_ulong value = 0;

	if (ocl.next.clGetEventProfilingInfo(event, what, sizeof(value), &value, NULL) !=
	    CL_SUCCESS)
		return false;
	*ret_ns = (int64_t)value;
	return true;
}

/* Drivers return times for complete commands only, so one query is enough for most. */
static bool query_times(const struct ocl_pending *node, struct ts_gpu_op *op)
{
	if (!query(node->event, CL_PROFILING_COMMAND_END, &op->end) || op->end <= 0 ||
	    !query(node->event, CL_PROFILING_COMMAND_QUEUED, &op->queued) ||
	    !query(node->event, CL_PROFILING_COMMAND_SUBMIT, &op->submitted) ||
	    !query(node->event, CL_PROFILING_COMMAND_START, &op->start))
		return false;
	/* NVIDIA's driver has no start time for markers and barriers. */
	if (op->start <= 0 || op->start > op->end)
		op->start = op->end;
	return true;
}

enum outcome { PENDING, RAN, FAILED, UNTIMED };

static enum outcome find_outcome(struct ocl_pending *node)
{
	cl_int status = CL_COMPLETE, error;

	if (query_times(node, &node->op))
		return RAN;
	error = ocl.next.clGetEventInfo(node->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
					sizeof(status), &status, NULL);
	if (error == CL_SUCCESS && status > CL_COMPLETE)
		return PENDING;
	/* It may have completed between the two queries. */
	if (status == CL_COMPLETE && query_times(node, &node->op))
		return RAN;
	return status < CL_COMPLETE ? FAILED : UNTIMED;
}

/* Commands taken out of a queue while they are collected. */
struct look {
	struct ocl_pending *over, **over_end; /* to be emitted */
	struct ocl_pending *left, **left_end; /* still pending */
	uint32_t over_count, incomplete;
	uint32_t failed, untimed;            /* of completed commands */
	const struct ocl_pending *narrowest; /* whose call was shortest; NULL: none has times */
};

static void add_over(const struct ocl_object *queue, struct look *look, struct ocl_pending *node,
		     enum outcome outcome)
{
	const struct ocl_pending *narrowest = look->narrowest;

	*look->over_end = node;
	look->over_end = &node->next;
	look->over_count++;
	look->failed += outcome == FAILED;
	look->untimed += outcome == UNTIMED;
	if (outcome != RAN)
		set_untimed(queue, &node->op, node->before);
	else if (!narrowest || node->after - node->before < narrowest->after - narrowest->before)
		look->narrowest = node;
}

static void sort_out(const struct ocl_object *queue, struct ocl_pending *node, struct look *look)
{
	uint32_t most = queue->out_of_order ? INCOMPLETE_AT_MOST : 1;

	while (node && look->incomplete < most) {
		struct ocl_pending *next = node->next;
		enum outcome outcome = find_outcome(node);

		node->next = NULL;
		if (outcome != PENDING) {
			add_over(queue, look, node, outcome);
		} else {
			*look->left_end = node;
			look->left_end = &node->next;
			look->incomplete++;
		}
		node = next;
	}
	/* In an in-order queue, nothing after an incomplete command is complete. */
	*look->left_end = node;
	while (*look->left_end)
		look->left_end = &(*look->left_end)->next;
}

static void emit(struct ocl_object *queue, const struct look *look)
{
	struct ocl_object *device = queue->device;

	if (device && look->narrowest)
		ocl_clock_bracket(device, look->narrowest->op.queued, look->narrowest->before,
				  look->narrowest->after);
	if (device && look->over)
		ocl_clock_emit(device);
	for (const struct ocl_pending *node = look->over; node; node = node->next)
		ts_accelerator_op(node->site, &node->op);
	if (look->failed)
		ts_accelerator_lost("times of a gpu_op", look->failed, "the command failed");
	if (look->untimed)
		ts_accelerator_lost("times of a gpu_op", look->untimed,
				    "not reported by the driver");
}

/* Forget our reference first: after the release, the handle may be reused. */
static void let_go(const struct look *look)
{
	for (const struct ocl_pending *node = look->over; node; node = node->next) {
		if (node->program_has_it)
			ocl_event_unhold(node->event);
		ocl.next.clReleaseEvent(node->event);
	}
}

static struct ocl_pending *take_all(struct ocl_object *queue)
{
	struct ocl_pending *first;

	pthread_mutex_lock(&queue->pending_lock);
	first = queue->first;
	__atomic_store_n(&queue->first, NULL, __ATOMIC_RELAXED);
	queue->last = NULL;
	queue->since_look = 0;
	pthread_mutex_unlock(&queue->pending_lock);
	return first;
}

/* Pending commands go before those enqueued meanwhile. */
static void put_back(struct ocl_object *queue, struct look *look)
{
	pthread_mutex_lock(&queue->pending_lock);
	if (look->left) {
		*look->left_end = queue->first;
		__atomic_store_n(&queue->first, look->left, __ATOMIC_RELAXED);
		if (!queue->last)
			/* The end of the list is the `next` of its last. */
			queue->last =
				(struct ocl_pending *)(void *)((char *)look->left_end -
							       offsetof(struct ocl_pending, next));
	}
	__atomic_fetch_sub(&queue->pending_count, look->over_count, __ATOMIC_RELEASE);
	*look->over_end = queue->spare;
	queue->spare = look->over;
	pthread_mutex_unlock(&queue->pending_lock);
}

static uint32_t look_at(struct ocl_object *queue)
{
	struct look look = { .over_end = &look.over, .left_end = &look.left };
	struct ocl_pending *first = take_all(queue);

	if (!first)
		return 0;
	sort_out(queue, first, &look);
	emit(queue, &look);
	let_go(&look);
	put_back(queue, &look);
	return look.over_count;
}

void ocl_profile_look(struct ocl_object *queue)
{
	if (!queue) {
		ocl_helper_look();
	} else if (__atomic_load_n(&queue->first, __ATOMIC_RELAXED) &&
		   !pthread_mutex_trylock(&queue->looking)) {
		look_at(queue);
		pthread_mutex_unlock(&queue->looking);
	}
}

/* Between two commands of the program. */
void ocl_profile_look_between(struct ocl_object *queue)
{
	uint64_t start = ts_now();
	uint32_t every, count;

	if (pthread_mutex_trylock(&queue->looking))
		return;
	every = queue->look_every;
	count = look_at(queue);
	if (ts_ticks_ns(ts_now() - start) > (int64_t)DEAR_NS * (count + 1) &&
	    every < LOOK_EVERY_MOST)
		__atomic_store_n(&queue->look_every, every * 4, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&queue->looking);
}

void ocl_profile_queue(struct ocl_object *queue)
{
	queue->look_every = LOOK_EVERY_LEAST;
	ocl_helper_add(queue);
}

void ocl_profile_forked(struct ocl_object *queue)
{
	queue->first = queue->last = queue->spare = NULL;
	queue->pending_count = queue->since_look = 0;
	queue->is_profiled = false;
	queue->next_profiled = NULL;
}
