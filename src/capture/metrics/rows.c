/* SPDX-License-Identifier: Apache-2.0 */
/* Values become rows, see rows.h. What a source gives is not trusted. Must not know what becomes of rows. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "capture/metrics/rows.h"

#define DEVICE_BITS 16

/* Cut where a character ends. */
static void copy_name(char *target, const char *name)
{
	size_t length = strnlen(name ? name : "", TS_METRICS_NAME_BYTES - 1);

	length = ts_utf8_valid_prefix(name ? name : "", length);
	memcpy(target, name ? name : "", length);
	target[length] = '\0';
}

static uint32_t numbered(const struct ts_metrics_rows *rows, uint32_t device)
{
	return rows->place << DEVICE_BITS | ts_metrics_device_number(device);
}

/* Only what its kind has. False: no such kind. */
static bool normalize(const struct ts_metrics_rows *rows, const struct ts_metrics_subject *subject,
		      struct ts_metrics_subject *ret_subject)
{
	bool has_process = subject->kind == TS_METRICS_PROCESS ||
			   subject->kind == TS_METRICS_PROCESS_ON_DEVICE;
	bool has_device = subject->kind == TS_METRICS_DEVICE ||
			  subject->kind == TS_METRICS_PROCESS_ON_DEVICE;

	*ret_subject = (struct ts_metrics_subject){ .kind = subject->kind };
	if (has_process) {
		ret_subject->pid = subject->pid;
		ret_subject->start_time = subject->start_time;
	}
	if (has_device)
		ret_subject->device = numbered(rows, subject->device);
	return (has_process || has_device || subject->kind == TS_METRICS_SYSTEM) &&
	       (!has_device || subject->device >> DEVICE_BITS == 0);
}

static bool is_same_subject(const struct ts_metrics_subject *a, const struct ts_metrics_subject *b)
{
	return a->kind == b->kind && a->device == b->device && a->pid == b->pid &&
	       a->start_time == b->start_time;
}

static bool has_series(const struct ts_metrics_rows *rows, const char *key)
{
	for (unsigned int i = 0; i < rows->count; i++) {
		if (strcmp(rows->keys[i], key) == 0)
			return true;
	}
	return false;
}

void ts_metrics_rows_flush(struct ts_metrics_rows *rows)
{
	if (rows->count)
		rows->consumer->row(rows->consumer->context, &rows->subject, rows->name,
				    rows->values, rows->count);
	rows->count = 0;
}

/* The next value of the row that it belongs to, or NULL. */
static struct ts_emit_arg *add(struct ts_metrics_rows *rows,
			       const struct ts_metrics_subject *subject, const char *name,
			       const char *series)
{
	struct ts_metrics_subject whom;
	char row_name[TS_METRICS_NAME_BYTES], key[TS_METRICS_NAME_BYTES];
	struct ts_emit_arg *value;

	if (!normalize(rows, subject, &whom))
		return NULL;
	copy_name(row_name, name);
	copy_name(key, series);
	if (rows->count == TS_METRICS_SERIES || !is_same_subject(&rows->subject, &whom) ||
	    strcmp(rows->name, row_name) != 0 || has_series(rows, key))
		ts_metrics_rows_flush(rows);
	rows->subject = whom;
	memcpy(rows->name, row_name, strlen(row_name) + 1);
	value = &rows->values[rows->count];
	memcpy(rows->keys[rows->count], key, strlen(key) + 1);
	value->key = rows->keys[rows->count++];
	return value;
}

/* ---- the sink ---- */

static void sink_real(void *context, const struct ts_metrics_subject *subject, const char *name,
		      const char *series, double real)
{
	struct ts_emit_arg *value = isfinite(real) ? add(context, subject, name, series) : NULL;

	if (!value)
		return;
	value->type = TS_EMIT_DOUBLE;
	value->value.real = real;
}

static void sink_integer(void *context, const struct ts_metrics_subject *subject, const char *name,
			 const char *series, int64_t integer)
{
	struct ts_emit_arg *value =
		integer != TS_METRICS_UNKNOWN ? add(context, subject, name, series) : NULL;

	if (!value)
		return;
	value->type = TS_EMIT_INT;
	value->value.integer = integer;
}

static void sink_device(void *context, const struct ts_metrics_device *device)
{
	struct ts_metrics_rows *rows = context;
	struct ts_metrics_device described = *device;

	if (device->number >> DEVICE_BITS)
		return;
	described.number = numbered(rows, device->number);
	rows->consumer->device(rows->consumer->context, &described);
}

static void sink_message(void *context, const char *text)
{
	struct ts_metrics_rows *rows = context;
	uint64_t hash = ts_hash64(text, strlen(text));
	unsigned int known = TS_MIN(rows->message_count, TS_METRICS_MESSAGES);

	for (unsigned int i = 0; i < known; i++) {
		if (rows->messages[i] == hash)
			return;
	}
	rows->messages[rows->message_count++ % TS_METRICS_MESSAGES] = hash;
	rows->consumer->message(rows->consumer->context, rows->source, text);
}

void ts_metrics_rows_init(struct ts_metrics_rows *rows, const struct ts_metrics_consumer *consumer,
			  const char *source, uint32_t place)
{
	*rows = (struct ts_metrics_rows){
		.sink = { .size = sizeof(rows->sink),
			  .context = rows,
			  .device = sink_device,
			  .real = sink_real,
			  .integer = sink_integer,
			  .message = sink_message },
		.consumer = consumer,
		.source = source,
		.place = place,
	};
}
