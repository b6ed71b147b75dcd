/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores rows of torch_trace from several threads, whose device times another thread adds:
 *
 *	torch_rows THREADS ROWS [MODE]   MODE late: every tenth device time never comes;
 *	                                 wait: does not exit, but waits for a signal
 *
 * Row i of a thread has step i, seq = its thread, module "thread.T", i + 1 us on the host and
 * 2 (i + 1) us on device 0; every third is on the host only.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/torch.h>

enum { THREADS_MOST = 16, PENDING = 256 };

static int64_t rows;
static int is_late;

/* Rows whose device has not finished, from the thread to its device. */
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct {
		uint64_t serial;
		int64_t device_ns;
	} pending[PENDING];
	int64_t added, done;
	int is_over;
};
static struct queue queues[THREADS_MOST];

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void *run_device(void *queue_of)
{
	struct queue *queue = queue_of;

	pthread_mutex_lock(&queue->lock);
	for (;;) {
		while (queue->done < queue->added) {
			int64_t i = queue->done++ % PENDING;

			ts_torch_device_time(queue->pending[i].serial, queue->pending[i].device_ns);
		}
		pthread_cond_signal(&queue->changed);
		if (queue->is_over)
			break;
		pthread_cond_wait(&queue->changed, &queue->lock);
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

static void enqueue(struct queue *queue, uint64_t serial, int64_t device_ns)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->added - queue->done == PENDING)
		pthread_cond_wait(&queue->changed, &queue->lock);
	queue->pending[queue->added % PENDING].serial = serial;
	queue->pending[queue->added++ % PENDING].device_ns = device_ns;
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

static void *run_modules(void *queue_of)
{
	struct queue *queue = queue_of;
	int thread = (int)(queue - queues);
	pthread_t device;
	char path[32];
	uint32_t module;

	snprintf(path, sizeof(path), "thread.%d", thread);
	module = ts_torch_module(path);
	pthread_create(&device, NULL, run_device, queue);
	for (int64_t i = 0; i < rows; i++) {
		int is_on_host = i % 3 == 2;
		struct ts_torch_row row = { .size = sizeof(row),
					    .start_ns = now_ns(),
					    .duration_ns = (i + 1) * 1000,
					    .step = i,
					    .seq = thread,
					    .module = module,
					    .stage = TS_TORCH_FORWARD,
					    .allocated = (double)i,
					    .device = is_on_host ? TS_TORCH_HOST : 0,
					    .rank = TS_TORCH_NO_RANK,
					    .device_ns = TS_TORCH_ABSENT };
		uint64_t serial = ts_torch_row(&row);

		if (!is_on_host && !(is_late && i % 10 == 0))
			enqueue(queue, serial, (i + 1) * 2000);
	}
	pthread_mutex_lock(&queue->lock);
	queue->is_over = 1;
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	pthread_join(device, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MOST];
	int count = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
	const char *mode = argc > 3 ? argv[3] : "";

	if (count < 1 || count > THREADS_MOST) {
		fprintf(stderr, "usage: torch_rows THREADS ROWS [late|wait]\n");
		return 2;
	}
	rows = strtoll(argv[2], NULL, 10);
	is_late = !strcmp(mode, "late");
	for (int i = 0; i < count; i++) {
		pthread_mutex_init(&queues[i].lock, NULL);
		pthread_cond_init(&queues[i].changed, NULL);
		pthread_create(&threads[i], NULL, run_modules, &queues[i]);
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	puts("done");
	fflush(stdout);
	if (!strcmp(mode, "wait"))
		pause();
	return 0;
}
