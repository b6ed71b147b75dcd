/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps values under one lock, which is held for copies only. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/top/top_values.h"

/* A hostile number of processes must not fill our memory. */
#define MAX_SUBJECTS 65536u

static const struct {
	enum ts_metrics_kind kind;
	enum ts_top_metric metric;
	const char *name, *series;
} metrics[] = {
	{ TS_METRICS_SYSTEM, TS_TOP_CPU_USER, "cpu_percent", "user" },
	{ TS_METRICS_SYSTEM, TS_TOP_CPU_SYSTEM, "cpu_percent", "system" },
	{ TS_METRICS_SYSTEM, TS_TOP_CPU_IOWAIT, "cpu_percent", "iowait" },
	{ TS_METRICS_SYSTEM, TS_TOP_CPU_STEAL, "cpu_percent", "steal" },
	{ TS_METRICS_SYSTEM, TS_TOP_MEMORY_USED, "memory_bytes", "used" },
	{ TS_METRICS_SYSTEM, TS_TOP_MEMORY_AVAILABLE, "memory_bytes", "available" },
	{ TS_METRICS_SYSTEM, TS_TOP_SWAP_USED, "swap_bytes", "used" },
	{ TS_METRICS_PROCESS, TS_TOP_CPU, "cpu_percent", "all" },
	{ TS_METRICS_PROCESS, TS_TOP_RSS, "memory_bytes", "rss" },
	{ TS_METRICS_PROCESS, TS_TOP_VMS, "memory_bytes", "vms" },
	{ TS_METRICS_PROCESS, TS_TOP_THREADS, "threads", "count" },
	{ TS_METRICS_DEVICE, TS_TOP_DEVICE_PERCENT, "utilization_percent", "compute" },
	{ TS_METRICS_DEVICE, TS_TOP_DEVICE_MEMORY, "memory_bytes", "used" },
	{ TS_METRICS_DEVICE, TS_TOP_DEVICE_POWER, "power_W", "draw" },
	{ TS_METRICS_DEVICE, TS_TOP_DEVICE_POWER, "power_W",
	  "card" }, /* of an NPU: no other is reported */
	{ TS_METRICS_DEVICE, TS_TOP_DEVICE_TEMPERATURE, "temperature_C", "core" },
	{ TS_METRICS_DEVICE, TS_TOP_DEVICE_CLOCK, "clock_MHz", "compute" },
	{ TS_METRICS_DEVICE, TS_TOP_DEVICE_MEMORY_CLOCK, "clock_MHz", "memory" },
	{ TS_METRICS_PROCESS_ON_DEVICE, TS_TOP_DEVICE_PERCENT, "utilization_percent", "compute" },
	{ TS_METRICS_PROCESS_ON_DEVICE, TS_TOP_DEVICE_MEMORY, "memory_bytes", "used" },
};

/* ---- input from sources ---- */

static bool has_device(const struct ts_metrics_subject *subject)
{
	return subject->kind == TS_METRICS_DEVICE || subject->kind == TS_METRICS_PROCESS_ON_DEVICE;
}

static bool has_process(const struct ts_metrics_subject *subject)
{
	return subject->kind == TS_METRICS_PROCESS || subject->kind == TS_METRICS_PROCESS_ON_DEVICE;
}

static uint64_t first_key(const struct ts_metrics_subject *subject)
{
	return (uint64_t)subject->kind << 32 | (has_device(subject) ? subject->device : 0);
}

static uint64_t second_key(const struct ts_metrics_subject *subject)
{
	return has_process(subject) ? (uint64_t)(uint32_t)subject->pid : 0;
}

static void clear_subject(struct ts_top_subject *entry, const struct ts_metrics_subject *subject)
{
	*entry = (struct ts_top_subject){ .subject = *subject };
	for (size_t i = 0; i < TS_TOP_METRICS; i++)
		entry->values[i] = NAN;
}

/* NULL if out of memory, or too many. */
static struct ts_top_subject *find_subject(struct ts_top_values *values,
					   const struct ts_metrics_subject *subject)
{
	struct ts_top_subject *entry;
	uint64_t index;

	if (!ts_pairmap_get(&values->indices, first_key(subject), second_key(subject), &index)) {
		index = values->subject_count;
		if (index >= MAX_SUBJECTS ||
		    ts_grow_array((void **)&values->subjects, &values->subject_capacity, index + 1,
				  sizeof(*values->subjects)) ||
		    ts_pairmap_put(&values->indices, first_key(subject), second_key(subject),
				   index))
			return NULL;
		clear_subject(&values->subjects[index], subject);
		values->subject_count++;
	}
	entry = &values->subjects[index];
	/* The pid was reused. */
	if (entry->subject.start_time != subject->start_time)
		clear_subject(entry, subject);
	return entry;
}

static double number_of(const struct ts_emit_arg *value)
{
	if (value->type == TS_EMIT_DOUBLE)
		return value->value.real;
	return value->type == TS_EMIT_STRING ? NAN : (double)value->value.integer;
}

static void keep_value(struct ts_top_subject *entry, const char *name,
		       const struct ts_emit_arg *value, int64_t now)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(metrics); i++) {
		if (metrics[i].kind != entry->subject.kind || strcmp(metrics[i].name, name) ||
		    strcmp(metrics[i].series, value->key))
			continue;
		entry->values[metrics[i].metric] = number_of(value);
		entry->times_ns[metrics[i].metric] = now;
	}
}

/* The current reasons, as "power, heat". */
static void keep_reasons(struct ts_top_subject *entry, const struct ts_emit_arg *values,
			 unsigned int count, int64_t now)
{
	size_t length = 0;

	entry->throttled[0] = '\0';
	entry->throttled_ns = now;
	for (unsigned int i = 0; i < count; i++) {
		double value = number_of(&values[i]);
		size_t left = sizeof(entry->throttled) - length;

		if (isnan(value) || value == 0 || strlen(values[i].key) + 3 > left)
			continue;
		length += (size_t)snprintf(entry->throttled + length, left, "%s%s",
					   length ? ", " : "", values[i].key);
	}
}

static void on_row(void *context, const struct ts_metrics_subject *subject, const char *name,
		   const struct ts_emit_arg *row, unsigned int count)
{
	struct ts_top_values *values = context;
	int64_t now = ts_clock_monotonic_ns();
	struct ts_top_subject *entry;

	pthread_mutex_lock(&values->lock);
	entry = find_subject(values, subject);
	for (unsigned int i = 0; entry && i < count; i++)
		keep_value(entry, name, &row[i], now);
	if (entry && subject->kind == TS_METRICS_DEVICE && !strcmp(name, "throttled"))
		keep_reasons(entry, row, count, now);
	pthread_mutex_unlock(&values->lock);
}

static struct ts_top_device *find_device(struct ts_top_values *values, uint32_t number)
{
	for (size_t i = 0; i < values->device_count; i++) {
		if (values->devices[i].number == number)
			return &values->devices[i];
	}
	if (values->device_count >= TS_TOP_DEVICES ||
	    ts_grow_array((void **)&values->devices, &values->device_capacity,
			  values->device_count + 1, sizeof(*values->devices)))
		return NULL;
	return &values->devices[values->device_count++];
}

static void on_device(void *context, const struct ts_metrics_device *device)
{
	struct ts_top_values *values = context;
	struct ts_top_device *entry;

	pthread_mutex_lock(&values->lock);
	entry = find_device(values, device->number);
	if (entry) {
		*entry = (struct ts_top_device){
			.number = device->number,
			.memory_bytes = device->memory_bytes > 0 ? (double)device->memory_bytes
								 : NAN,
		};
		snprintf(entry->vendor, sizeof(entry->vendor), "%s",
			 device->vendor ? device->vendor : "");
		snprintf(entry->model, sizeof(entry->model), "%s",
			 device->model ? device->model : "");
	}
	pthread_mutex_unlock(&values->lock);
}

static void on_message(void *context, const char *source, const char *text)
{
	struct ts_top_values *values = context;
	struct ts_top_message message;

	pthread_mutex_lock(&values->lock);
	message.serial = ++values->message_count;
	snprintf(message.source, sizeof(message.source), "%s", source ? source : "");
	snprintf(message.text, sizeof(message.text), "%s", text ? text : "");
	values->messages[message.serial % TS_TOP_MESSAGES] = message;
	pthread_mutex_unlock(&values->lock);
}

/* ---- output ---- */

void ts_top_values_init(struct ts_top_values *values)
{
	*values = (struct ts_top_values){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.consumer = { values, on_device, on_row, on_message },
	};
}

void ts_top_values_release(struct ts_top_values *values)
{
	free(values->subjects);
	free(values->devices);
	ts_pairmap_release(&values->indices);
	values->subjects = NULL;
	values->devices = NULL;
	values->subject_count = values->subject_capacity = 0;
	values->device_count = values->device_capacity = 0;
}

/* Drops old values; false if none is left. */
static bool is_alive(struct ts_top_subject *subject, int64_t oldest_ns)
{
	bool alive = subject->throttled_ns >= oldest_ns && subject->throttled_ns;

	if (!alive)
		subject->throttled[0] = '\0';
	for (size_t i = 0; i < TS_TOP_METRICS; i++) {
		if (subject->times_ns[i] < oldest_ns)
			subject->values[i] = NAN;
		alive = alive || !isnan(subject->values[i]);
	}
	return alive;
}

/* A pairmap cannot remove one entry: rebuild it. */
static void forget_old(struct ts_top_values *values, int64_t oldest_ns, int64_t oldest_device_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < values->subject_count; i++) {
		struct ts_top_subject *subject = &values->subjects[i];

		if (is_alive(subject, has_device(&subject->subject) ? oldest_device_ns : oldest_ns))
			values->subjects[kept++] = *subject;
	}
	if (kept == values->subject_count)
		return;
	values->subject_count = kept;
	ts_pairmap_clear(&values->indices);
	for (size_t i = 0; i < kept; i++) {
		const struct ts_metrics_subject *subject = &values->subjects[i].subject;

		/* Never more than before: needs no memory. */
		(void)!ts_pairmap_put(&values->indices, first_key(subject), second_key(subject), i);
	}
}

static int compare_subjects(const void *a, const void *b)
{
	const struct ts_metrics_subject *x = &((const struct ts_top_subject *)a)->subject;
	const struct ts_metrics_subject *y = &((const struct ts_top_subject *)b)->subject;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->device < y->device ? -1 : x->device > y->device;
}

static int compare_devices(const void *a, const void *b)
{
	const struct ts_top_device *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* A sorted copy of an array; not NULL if it is empty. */
static int copy_sorted(const void *array, size_t count, size_t bytes,
		       int (*compare)(const void *, const void *), void **ret_copy)
{
	void *copy = calloc(TS_MAX(count, 1u), bytes);

	if (!copy)
		return TS_ENOMEM;
	if (count) {
		memcpy(copy, array, count * bytes);
		qsort(copy, count, bytes, compare);
	}
	*ret_copy = copy;
	return TS_OK;
}

int ts_top_values_copy(struct ts_top_values *values, int64_t oldest_ns, int64_t oldest_device_ns,
		       struct ts_top_subject **ret_subjects, size_t *ret_count)
{
	int rc;

	pthread_mutex_lock(&values->lock);
	forget_old(values, oldest_ns, oldest_device_ns);
	rc = copy_sorted(values->subjects, values->subject_count, sizeof(*values->subjects),
			 compare_subjects, (void **)ret_subjects);
	if (!rc)
		*ret_count = values->subject_count;
	pthread_mutex_unlock(&values->lock);
	return rc;
}

int ts_top_values_devices(struct ts_top_values *values, struct ts_top_device **ret_devices,
			  size_t *ret_count)
{
	int rc;

	pthread_mutex_lock(&values->lock);
	rc = copy_sorted(values->devices, values->device_count, sizeof(*values->devices),
			 compare_devices, (void **)ret_devices);
	if (!rc)
		*ret_count = values->device_count;
	pthread_mutex_unlock(&values->lock);
	return rc;
}

size_t ts_top_values_messages(struct ts_top_values *values,
			      struct ts_top_message ret_messages[TS_TOP_MESSAGES])
{
	uint64_t first;
	size_t count = 0;

	pthread_mutex_lock(&values->lock);
	first = values->message_count > TS_TOP_MESSAGES ? values->message_count - TS_TOP_MESSAGES
							: 0;
	for (uint64_t serial = first + 1; serial <= values->message_count; serial++)
		ret_messages[count++] = values->messages[serial % TS_TOP_MESSAGES];
	pthread_mutex_unlock(&values->lock);
	return count;
}
