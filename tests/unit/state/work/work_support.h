/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of everything based on a work: imports and loads traces of a few Kineto events, written
 * with ' for ". Numbers are texts, and times are us. Rows that no importer makes are written
 * between begin_trace() and end_trace().
 */
#ifndef TS_TESTS_UNIT_STATE_WORK_WORK_SUPPORT_H
#define TS_TESTS_UNIT_STATE_WORK_WORK_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/import.h>
#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "base/text.h"
#include "state/work/work.h"
#include "unit/runner.h"

#define EVENT(category, name, pid, tid, ts, dur, args)                                          \
	"{'ph':'X','cat':'" category "','name':'" name "','pid':" pid ",'tid':" tid ",'ts':" ts \
	",'dur':" dur ",'args':{" args "}},"

/* Host events; thread 1 by default. */
#define SLICE(category, name, tid, ts, dur) EVENT(category, name, "1", tid, ts, dur, "")
#define OP_BY(name, tid, ts, dur) EVENT("cpu_op", name, "1", tid, ts, dur, "'External id':1")
#define OP(name, ts, dur) OP_BY(name, "1", ts, dur)
#define CALL_BY(name, tid, ts, dur, correlation) \
	EVENT("cuda_runtime", name, "1", tid, ts, dur, "'correlation':" correlation)
#define NAMED_CALL(name, ts, dur, correlation) CALL_BY(name, "1", ts, dur, correlation)
#define CALL(ts, dur, correlation) NAMED_CALL("cudaLaunchKernel", ts, dur, correlation)

/* Device events; device 0 by default. */
#define DEVICE_(device, category, name, stream, ts, dur, correlation, rest) \
	EVENT(category, name, device, stream, ts, dur,                      \
	      "'device':" device ",'stream':" stream ",'correlation':" correlation rest)
#define ON_DEVICE(device, category, name, stream, ts, dur, correlation) \
	DEVICE_(device, category, name, stream, ts, dur, correlation, "")
#define DEVICE(category, name, stream, ts, dur, correlation, rest) \
	DEVICE_("0", category, name, stream, ts, dur, correlation, rest)
#define KERNEL(name, stream, ts, dur, correlation) \
	ON_DEVICE("0", "kernel", name, stream, ts, dur, correlation)
#define COPY_OF(name, stream, ts, dur, correlation) \
	DEVICE("gpu_memcpy", name, stream, ts, dur, correlation, ",'bytes':64")

/* One trace per rank, and the work loaded from them. */
struct loaded {
	struct ts_reader *readers[4];
	size_t count;
	struct ts_work *work;
};

/* `path` ends in XXXXXX, and then names the file. */
static inline struct ts_writer *begin_trace(char *path)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_writer *writer;
	struct ts_error err;
	int fd = mkstemp(path);

	TS_CHECK(fd >= 0);
	close(fd);
	if (ts_writer_open(&writer, path, &options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return writer;
}

/* The reader keeps the file open; its name is removed. */
static inline struct ts_reader *end_trace(struct ts_writer *writer, const char *path)
{
	struct ts_reader *reader;
	struct ts_error err;

	if (ts_writer_finish(writer, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_writer_close(writer);
	if (ts_reader_open(&reader, path, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	unlink(path);
	return reader;
}

static inline struct ts_reader *read_imported(const char *source)
{
	char path[] = "/tmp/tracesmith-work-XXXXXX";
	struct ts_writer *writer = begin_trace(path);
	struct ts_error err;

	if (ts_import_file(writer, source, NULL, NULL, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return end_trace(writer, path);
}

/* A rank below 0: the trace has none. */
static inline struct ts_reader *read_events(const char *events, int rank)
{
	char source[] = "/tmp/tracesmith-json-XXXXXX";
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_reader *reader;
	int fd = mkstemp(source);

	TS_CHECK(fd >= 0);
	ts_text_append_str(&text, "{'schemaVersion':1,");
	if (rank >= 0)
		ts_text_printf(&text, "'distributedInfo':{'rank':%d,'world_size':2},", rank);
	ts_text_printf(&text, "'traceEvents':[%s{'ph':'i','name':'x','ts':0,'pid':1,'tid':1}]}",
		       events);
	for (size_t i = 0; i < text.length; i++)
		if (text.data[i] == '\'')
			text.data[i] = '"';
	TS_CHECK_INT(write(fd, text.data, text.length), (ssize_t)text.length);
	close(fd);
	reader = read_imported(source);
	unlink(source);
	return reader;
}

/* For all open readers. */
static inline void load_readers(struct loaded *loaded, const struct ts_work_options *options)
{
	struct ts_error err;

	TS_CHECK_INT(ts_work_new(&loaded->work, options, &err), 0);
	for (size_t i = 0; i < loaded->count; i++)
		TS_CHECK_INT(ts_work_add(loaded->work, loaded->readers[i], &err), 0);
	TS_CHECK_INT(ts_work_finish(loaded->work, &err), 0);
}

/* Ranks 0 and 1; `second` may be NULL. */
static inline void load_events(struct loaded *loaded, const struct ts_work_options *options,
			       const char *first, const char *second)
{
	memset(loaded, 0, sizeof(*loaded));
	loaded->readers[loaded->count++] = read_events(first, 0);
	if (second)
		loaded->readers[loaded->count++] = read_events(second, 1);
	load_readers(loaded, options);
}

static inline void unload(struct loaded *loaded)
{
	ts_work_free(loaded->work);
	for (size_t i = 0; i < loaded->count; i++)
		ts_reader_close(loaded->readers[i]);
}

#endif
