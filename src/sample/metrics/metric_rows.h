/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink that collects values into rows and passes them on. One thread each; a consumer may have
 * several of these, and is then called from several threads.
 */
#ifndef TS_SAMPLE_METRICS_METRIC_ROWS_H
#define TS_SAMPLE_METRICS_METRIC_ROWS_H

#include <stdint.h>

#include <tracesmith/emit.h>
#include <tracesmith/metrics.h>

/*
 * Receives rows. Device numbers are the source's, with the source's index in the bits above 16. No
 * text is NULL; all are one line of UTF-8 without control characters.
 */
struct ts_metrics_consumer {
	void *context;
	void (*device)(void *context, const struct ts_metrics_device *device);
	void (*row)(void *context, const struct ts_metrics_subject *subject, const char *name,
		    const struct ts_emit_arg *values, unsigned int count);
	void (*message)(void *context, const char *source, const char *text);
};

#define TS_METRICS_SERIES 32u /* limit per row: further ones start another row */
#define TS_METRICS_NAME_BYTES 64u
#define TS_METRICS_MESSAGES 64u

struct ts_metrics_rows {
	struct ts_metrics_sink sink; /* to pass to a source */
	const struct ts_metrics_consumer *consumer;
	const char *source;
	uint32_t source_index; /* index of the source, below 256 */
	/* The current row. */
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
			  const char *source, uint32_t source_index);
/* Passes on the last row; call after each sample. */
void ts_metrics_rows_flush(struct ts_metrics_rows *rows);

/* The device number in its vendor's tools. */
static inline uint32_t ts_metrics_device_number(uint32_t device)
{
	return device & 0xffff;
}

#endif
