/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a command stream of CUDA that a test has made row by row (replay_cuda_fixture.h). */
#ifndef TS_TESTS_UNIT_REPLAY_STREAM_CUDA_STREAM_SUPPORT_H
#define TS_TESTS_UNIT_REPLAY_STREAM_CUDA_STREAM_SUPPORT_H

#include <unistd.h>

#include "replay/stream/stream_internal.h"
#include "unit/replay/replay_cuda_fixture.h"
#include "unit/runner.h"

static char path[64];
static struct fixture_trace fixture;
static struct ts_reader *reader;

static inline void begin(void)
{
	snprintf(path, sizeof(path), "/tmp/tracesmith-cuda-stream-%d.sbt", getpid());
	fixture_open(&fixture, path);
	cuda_objects(&fixture);
}

static inline int load_any(struct ts_replay_stream **ret_stream, struct ts_error *err)
{
	fixture_close(&fixture);
	TS_CHECK_INT(ts_reader_open(&reader, path, err), 0);
	return ts_replay_stream_load(ret_stream, reader, NULL, 0, err);
}

static inline struct ts_replay_stream *load(void)
{
	struct ts_replay_stream *stream;
	struct ts_error err;

	if (load_any(&stream, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return stream;
}

static inline void done(struct ts_replay_stream *stream)
{
	ts_replay_stream_free(stream);
	ts_reader_close(reader);
	unlink(path);
}

static inline void refuse(int code, const char *message)
{
	struct ts_replay_stream *stream;
	struct ts_error err;

	TS_CHECK_INT(load_any(&stream, &err), code);
	TS_CHECK_STR(err.message, message);
	ts_reader_close(reader);
	unlink(path);
}

#endif
