/* SPDX-License-Identifier: Apache-2.0 */
/* For opencl_features.c: queues, events, callbacks, threads. */
#ifndef OPENCL_FEATURES_ORDER_H
#define OPENCL_FEATURES_ORDER_H

#include <pthread.h>

#include "opencl_features.h"

/* ---- order ---- */

static void out_of_order(void)
{
	cl_command_queue ooo = new_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_mem a = numbers(1), b = numbers(2);
	cl_event events[4], marker;

	scale(ooo, a, N, 3, 0, NULL, &events[0]);
	scale(ooo, b, N, 5, 0, NULL, &events[1]);
	check(clEnqueueMarkerWithWaitList(ooo, 1, events, &marker), "marker");
	check(clEnqueueBarrierWithWaitList(ooo, 0, NULL, NULL), "barrier");
	scale(ooo, a, N, 7, 0, NULL, &events[2]);
	check(clEnqueueCopyBuffer(ooo, a, b, 0, 0, 4000, 1, &events[2], &events[3]), "copy");
	check(clEnqueueReadBuffer(ooo, b, CL_FALSE, 0, BYTES, back, 1, &events[3], NULL), "read");
	check(clEnqueueBarrierWithWaitList(ooo, 1, &marker, NULL), "barrier");
	check(clFinish(ooo), "clFinish");
	mix(back, N);
	expect(back[0] == 21, "the order");
	for (int i = 0; i < 4; i++)
		clReleaseEvent(events[i]);
	clReleaseEvent(marker);
	clReleaseCommandQueue(ooo);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
}

static void two_queues(void)
{
	cl_command_queue other = new_queue(devices[device_count - 1], 0);
	cl_mem a = numbers(1);
	cl_event events[2];

	scale(queue, a, N, 3, 0, NULL, &events[0]);
	clFlush(queue);
	scale(other, a, N, 5, 1, &events[0], &events[1]);
	clFlush(other);
	check(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, BYTES, back, 1, &events[1], NULL), "read");
	mix(back, N);
	expect(back[0] == 15, "the order");
	clReleaseEvent(events[0]);
	clReleaseEvent(events[1]);
	clReleaseCommandQueue(other);
	clReleaseMemObject(a);
}

/* More events than fit into one record of a trace, in two queues. */
static void long_waits(void)
{
	enum { WRITES = 2000 };
	static cl_event events[WRITES];
	cl_command_queue ooo = new_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_mem a = numbers(0);

	number(data, N, 5);
	for (size_t i = 0; i < WRITES; i++)
		check(clEnqueueWriteBuffer(ooo, a, CL_FALSE, i * 4, 4, &data[i], 0, NULL,
					   &events[i]),
		      "write");
	clFlush(ooo);
	scale(queue, a, N, 3, WRITES, events, NULL);
	read_all(a, back);
	expect(back[WRITES - 1] == data[WRITES - 1] * 3, "the order");
	for (size_t i = 0; i < WRITES; i++)
		clReleaseEvent(events[i]);
	check(clFinish(ooo), "clFinish");
	clReleaseCommandQueue(ooo);
	clReleaseMemObject(a);
}

static void user_events(void)
{
	cl_mem a = numbers(1);
	cl_int rc, status = CL_QUEUED;
	cl_event user = clCreateUserEvent(context, &rc), done;

	check(rc, "clCreateUserEvent");
	scale(queue, a, N, 3, 1, &user, NULL);
	check(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, back, 0, NULL, &done), "read");
	check(clSetUserEventStatus(user, CL_COMPLETE), "clSetUserEventStatus");
	clFlush(queue);
	/* Polls until it is complete. */
	while (status > CL_COMPLETE) {
		check(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				     &status, NULL),
		      "clGetEventInfo");
		usleep(200);
	}
	mix(back, N);
	expect(back[1] == 12, "what was read");
	clReleaseEvent(user);
	clReleaseEvent(done);
	clReleaseMemObject(a);
}

struct called {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_done;
};

static void CL_CALLBACK called_back(cl_event event, cl_int status, void *context_)
{
	struct called *called = context_;

	(void)event;
	(void)status;
	pthread_mutex_lock(&called->lock);
	mix(back, N);
	called->is_done = true;
	pthread_cond_signal(&called->changed);
	pthread_mutex_unlock(&called->lock);
}

static void callbacks(void)
{
	struct called called = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false };
	cl_mem a = numbers(21);
	cl_event event;

	scale(queue, a, N, 3, 0, NULL, NULL);
	check(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, back, 0, NULL, &event), "read");
	check(clSetEventCallback(event, CL_COMPLETE, called_back, &called), "clSetEventCallback");
	clFlush(queue);
	pthread_mutex_lock(&called.lock);
	while (!called.is_done)
		pthread_cond_wait(&called.changed, &called.lock);
	pthread_mutex_unlock(&called.lock);
	clReleaseEvent(event);
	clReleaseMemObject(a);
}

struct worker {
	pthread_t thread;
	uint32_t number, sum;
};

/* A recorder's own objects hold the context: it releases them before it answers. */
static void count_references(void)
{
	cl_uint references = 0;

	for (int i = 0; i < 30; i++) {
		cl_mem fresh = buffer(CL_MEM_READ_WRITE, 64, NULL);

		check(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof(references),
				       &references, NULL),
		      "references");
		clReleaseMemObject(fresh);
	}
}

/* Its own queue and buffer. */
static void *work(void *context_)
{
	struct worker *worker = context_;
	cl_command_queue private_queue = new_queue(devices[0], 0);
	uint32_t *numbers_of = malloc(BYTES), sum = 0;
	cl_mem memory = buffer(CL_MEM_READ_WRITE, BYTES, NULL);

	for (uint32_t round = 0; round < 10; round++) {
		number(numbers_of, N, worker->number + round);
		check(clEnqueueWriteBuffer(private_queue, memory, CL_FALSE, 0, BYTES, numbers_of, 0,
					   NULL, NULL),
		      "write");
		scale(private_queue, memory, N, 3 + worker->number, 0, NULL, NULL);
		check(clEnqueueReadBuffer(private_queue, memory, CL_FALSE, 0, BYTES, numbers_of, 0,
					  NULL, NULL),
		      "read");
		check(clFinish(private_queue), "clFinish");
		for (size_t i = 0; i < N; i++)
			sum = sum * 31 + numbers_of[i];
		count_references();
	}
	worker->sum = sum;
	clReleaseMemObject(memory);
	clReleaseCommandQueue(private_queue);
	free(numbers_of);
	return NULL;
}

static void threads(void)
{
	struct worker workers[4];

	for (uint32_t i = 0; i < 4; i++) {
		workers[i].number = i;
		expect(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "thread");
	}
	for (uint32_t i = 0; i < 4; i++) {
		pthread_join(workers[i].thread, NULL);
		mix(&workers[i].sum, 1);
	}
}

#endif
