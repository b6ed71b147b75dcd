/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest value of everything that `top` shows, given by sources on their threads. Missing is
 * NAN, never 0; a value that has not been renewed for a while is missing again.
 */
#ifndef TS_CLI_TOP_TOP_VALUES_H
#define TS_CLI_TOP_TOP_VALUES_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "sample/metrics/metric_rows.h"

/* Metrics that are kept; top_values.c has their names and series. */
enum ts_top_metric {
	/* of the machine */
	TS_TOP_CPU_USER,
	TS_TOP_CPU_SYSTEM,
	TS_TOP_CPU_IOWAIT,
	TS_TOP_CPU_STEAL,
	TS_TOP_MEMORY_USED,
	TS_TOP_MEMORY_AVAILABLE,
	TS_TOP_SWAP_USED,
	/* of a process */
	TS_TOP_CPU,
	TS_TOP_RSS,
	TS_TOP_VMS,
	TS_TOP_THREADS,
	/* of a device, the first two also of a process on a device */
	TS_TOP_DEVICE_PERCENT,
	TS_TOP_DEVICE_MEMORY,
	TS_TOP_DEVICE_POWER,
	TS_TOP_DEVICE_TEMPERATURE,
	TS_TOP_DEVICE_CLOCK,
	TS_TOP_DEVICE_MEMORY_CLOCK,
	TS_TOP_METRICS,
};

#define TS_TOP_REASON_BYTES 64u
#define TS_TOP_MESSAGES 8u
#define TS_TOP_DEVICES 1024u

struct ts_top_subject {
	struct ts_metrics_subject subject;
	double values[TS_TOP_METRICS];
	int64_t times_ns[TS_TOP_METRICS];
	/* Why a device is throttled; "" if it is not. */
	char throttled[TS_TOP_REASON_BYTES];
	int64_t throttled_ns; /* when that was reported; 0: never */
};

struct ts_top_device {
	uint32_t number; /* as subjects have it */
	char vendor[32], model[64];
	double memory_bytes;
};

struct ts_top_message {
	char source[32], text[256];
	uint64_t serial; /* counts messages */
};

/* In static storage: a source that hangs may return at any time. */
struct ts_top_values {
	pthread_mutex_t lock;
	struct ts_metrics_consumer consumer;
	struct ts_top_subject *subjects;
	size_t subject_count, subject_capacity;
	struct ts_pairmap indices; /* (kind and device, pid) -> index in subjects */
	struct ts_top_device *devices;
	size_t device_count, device_capacity;
	struct ts_top_message messages[TS_TOP_MESSAGES]; /* the newest ones */
	uint64_t message_count;
};

void ts_top_values_init(struct ts_top_values *values);
void ts_top_values_release(struct ts_top_values *values);

/*
 * All values that are not older, by kind, pid and device. Caller frees. Older values are dropped.
 */
int ts_top_values_copy(struct ts_top_values *values, int64_t oldest_ns, int64_t oldest_device_ns,
		       struct ts_top_subject **ret_subjects, size_t *ret_count);
/* Caller frees. By number. */
int ts_top_values_devices(struct ts_top_values *values, struct ts_top_device **ret_devices,
			  size_t *ret_count);
/* The newest, oldest first; returns their number. */
size_t ts_top_values_messages(struct ts_top_values *values,
			      struct ts_top_message ret_messages[TS_TOP_MESSAGES]);

#endif
