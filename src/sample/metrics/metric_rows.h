/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values become rows: a sink for sources that collects what belongs together and passes it on. For
 * one thread; the consumer behind it may have many of these, and so is called from several threads
 * at once.
 */
#ifndef TS_SAMPLE_METRICS_METRIC_ROWS_H
#define TS_SAMPLE_METRICS_METRIC_ROWS_H

#include <stdint.h>

#include <tracesmith/emit.h>
#include <tracesmith/metrics.h>

/*
 * Who wants rows. Device numbers are those of the source, with its place in the bits above 16. No
 * text is NULL, and all are one line of UTF-8 without control characters, whatever the source gave.
 */
struct ts_metrics_consumer {
	void *context;
	void (*device)(void *context, const struct ts_metrics_device *device);
	void (*row)(void *context, const struct ts_metrics_subject *subject, const char *name,
		    const struct ts_emit_arg *values, unsigned int count);
	void (*message)(void *context, const char *source, const char *text);
};

#define TS_METRICS_SERIES 32u /* of a row, at most: later ones begin another row */
#define TS_METRICS_NAME_BYTES 64u
#define TS_METRICS_MESSAGES 64u

struct ts_metrics_rows {
	struct ts_metrics_sink sink; /* to be given to a source */
	const struct ts_metrics_consumer *consumer;
	const char *source;
	uint32_t place; /* of the source, below 256 */
	/* The row being collected. */
	struct ts_metrics_subject subject;
	char name[TS_METRICS_NAME_BYTES];
	char keys[TS_METRICS_SERIES][TS_METRICS_NAME_BYTES];
	struct ts_emit_arg values[TS_METRICS_SERIES];
	unsigned int count;
	/* Hashes of the last messages: each is passed on once. */
	uint64_t messages[TS_METRICS_MESSAGES];
	unsigned int message_count;
};

void ts_metrics_rows_init(struct ts_metrics_rows *rows, const struct ts_metrics_consumer *consumer,
			  const char *source, uint32_t place);
/* Passes the last row on: after each sample. */
void ts_metrics_rows_flush(struct ts_metrics_rows *rows);

/* The number of a device as its maker's tools know it. */
static inline uint32_t ts_metrics_device_number(uint32_t device)
{
	return device & 0xffff;
}

#endif
