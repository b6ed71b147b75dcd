/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects values into rows. Sources are untrusted: texts may be NULL or contain terminal control
 * sequences.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/local/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "sample/metrics/metric_rows.h"

#define DEVICE_BITS 16
/* Limit of a text. */
#define TEXT_BYTES 128u
#define MESSAGE_BYTES 1024u

/* ---- texts ---- */

/* Complete characters, as many as fit; "" for NULL. Returns the target. */
static const char *copy_text(char *target, size_t bytes, const char *text)
{
	const char *at = text ? text : "", *end = at + strlen(at);
	size_t used = 0;

	while (at < end) {
		bool is_valid;
		size_t step = ts_utf8_step(at, end, &is_valid);
		const char *character = !is_valid ? TS_UTF8_REPLACEMENT
					: ts_utf8_is_control(ts_utf8_decode(at, step)) ? "?"
										       : at;
		size_t length = character == at ? step : strlen(character);

		if (used + length >= bytes)
			break;
		memcpy(target + used, character, length);
		used += length;
		at += step;
	}
	target[used] = '\0';
	return target;
}

/* ---- rows ---- */

static uint32_t numbered(const struct ts_metrics_rows *rows, uint32_t device)
{
	return rows->source_index << DEVICE_BITS | ts_metrics_device_number(device);
}

/* Only the members of its kind. False: unknown kind. */
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
	       (!has_process || subject->pid > 0) &&
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

/* The next value of its row, or NULL. */
static struct ts_emit_arg *add(struct ts_metrics_rows *rows,
			       const struct ts_metrics_subject *subject, const char *name,
			       const char *series)
{
	struct ts_metrics_subject whom;
	char row_name[TS_METRICS_NAME_BYTES], key[TS_METRICS_NAME_BYTES];
	struct ts_emit_arg *value;

	copy_text(row_name, sizeof(row_name), name);
	copy_text(key, sizeof(key), series);
	if (!row_name[0] || !subject || !normalize(rows, subject, &whom))
		return NULL;
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
	const struct ts_metrics_rows *rows = context;
	char vendor[TEXT_BYTES], model[TEXT_BYTES], uuid[TEXT_BYTES], bus[TEXT_BYTES];
	struct ts_metrics_device described;

	if (!device || device->number >> DEVICE_BITS)
		return;
	described = (struct ts_metrics_device){
		.number = numbered(rows, device->number),
		.vendor = copy_text(vendor, sizeof(vendor), device->vendor),
		.model = copy_text(model, sizeof(model), device->model),
		.uuid = copy_text(uuid, sizeof(uuid), device->uuid),
		.bus = copy_text(bus, sizeof(bus), device->bus),
		.memory_bytes = device->memory_bytes,
	};
	rows->consumer->device(rows->consumer->context, &described);
}

static void sink_message(void *context, const char *given)
{
	struct ts_metrics_rows *rows = context;
	unsigned int known = TS_MIN(rows->message_count, TS_METRICS_MESSAGES);
	char text[MESSAGE_BYTES];
	uint64_t hash;

	copy_text(text, sizeof(text), given);
	if (!text[0])
		return;
	hash = ts_hash64(text, strlen(text));
	for (unsigned int i = 0; i < known; i++) {
		if (rows->messages[i] == hash)
			return;
	}
	rows->messages[rows->message_count++ % TS_METRICS_MESSAGES] = hash;
	rows->consumer->message(rows->consumer->context, rows->source, text);
}

void ts_metrics_rows_init(struct ts_metrics_rows *rows, const struct ts_metrics_consumer *consumer,
			  const char *source, uint32_t source_index)
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
		.source_index = source_index,
	};
}
