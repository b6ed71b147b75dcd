/* SPDX-License-Identifier: Apache-2.0 */
/* The target `opencl` of a build without OpenCL headers: reports that. */
#include "tracesmith_config.h"

#ifndef TS_HAVE_OPENCL

#include "replay/replay.h"

static int open_session(struct ts_replay *replay, struct ts_replay_session **ret_session,
			struct ts_error *err)
{
	return ts_error_set(
		err, TS_ECAP,
		"this build has no OpenCL support: the headers were missing (Debian: opencl-headers); use --target emulator");
}

static int run_session(struct ts_replay_session *session, unsigned int number,
		       struct ts_replay_outcome *outcome, struct ts_error *err)
{
	return ts_error_set(err, TS_ECAP, "this build has no OpenCL support");
}

static const char *describe_session(const struct ts_replay_session *session)
{
	return "opencl: not in this build";
}

static void close_session(struct ts_replay_session *session)
{
}

const struct ts_replay_target ts_replay_target_opencl = {
	.name = "opencl",
	.summary = "runs a recorded command stream through OpenCL (not in this build)",
	.needs = TS_REPLAY_NEEDS_STREAM,
	.can = TS_REPLAY_CAN_ALL,
	.default_check = TS_REPLAY_CHECK_FINAL,
	.open = open_session,
	.run = run_session,
	.device = describe_session,
	.close = close_session,
};

#endif
