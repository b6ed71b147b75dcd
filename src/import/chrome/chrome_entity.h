/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, threads, devices, streams and categories of a Chrome file, with their rows. */
#ifndef TS_IMPORT_CHROME_CHROME_ENTITY_H
#define TS_IMPORT_CHROME_CHROME_ENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

#include "import/chrome/chrome_event.h"

struct ts_chrome;

struct ts_chrome_category {
	struct ts_kineto_category meaning;
	uint32_t string;
	uint32_t roots[3];    /* roots in the shape tree: slice and others, api_call, gpu_op */
	uint32_t roots_epoch; /* for which tree */
	bool is_arrow;
};

struct ts_chrome_process {
	struct ts_process_row row;
	bool changed; /* since its row was added */
};

struct ts_chrome_thread {
	struct ts_thread_row row;
	uint32_t process; /* index */
	bool changed;
	int64_t source; /* id */
	/* The stream looked up last for this thread. */
	int64_t device_number, stream_number;
	uint32_t stream;       /* index plus 1; 0: none yet */
	uint32_t fixed_stream; /* index plus 1: the TraceSmith export says that the row shows this
				  stream */
	bool nowhere; /* not in the trace: for events of a TraceSmith export without a thread */
	/* Clock of its source. */
	int64_t shift; /* added to ts */
	uint32_t clock;
};

struct ts_chrome_device {
	struct ts_device_row row;
	bool changed;
};

struct ts_chrome_stream {
	struct ts_stream_row row;
};

int ts_chrome_entities_init(struct ts_chrome *c);
void ts_chrome_entities_release(struct ts_chrome *c);

/* Id of a text in c->texts, cleaned; 0: out of memory. */
uint32_t ts_chrome_keep_text(struct ts_chrome *c, const struct ts_json_string *string);

/* Index of a category; UINT32_MAX: out of memory. */
uint32_t ts_chrome_category(struct ts_chrome *c, const struct ts_json_string *text);

/* Index of a process or thread, whose row is added on first use; UINT32_MAX: out of memory. */
uint32_t ts_chrome_process(struct ts_chrome *c, const struct ts_chrome_id *pid);
uint32_t ts_chrome_thread_slow(struct ts_chrome *c, const struct ts_chrome_id *pid,
			       const struct ts_chrome_id *tid);

/* Registers a thread described by a TraceSmith export under the ids that the file uses for it. */
int ts_chrome_adopt_thread(struct ts_chrome *c, const struct ts_chrome_id *pid,
			   const struct ts_chrome_id *tid, uint32_t thread);

/* Index of a device of a source by number, added on first use; UINT32_MAX: out of memory. */
uint32_t ts_chrome_device(struct ts_chrome *c, int64_t source, int64_t number);
int ts_chrome_adopt_device(struct ts_chrome *c, const struct ts_device_row *row);

int ts_chrome_adopt_stream(struct ts_chrome *c, const struct ts_stream_row *row,
			   uint32_t *ret_stream);

/* Device and stream of a gpu_op. */
int ts_chrome_set_gpu_op_entities(struct ts_chrome *c, uint32_t thread,
				  const struct ts_chrome_args *args, struct ts_gpu_op_row *row);

/* Creates the source of this file on first use, and the clock of its events. */
int ts_chrome_start_source(struct ts_chrome *c);

/* Writes entity rows that changed since they were added. */
void ts_chrome_write_changed(struct ts_chrome *c);

#endif
