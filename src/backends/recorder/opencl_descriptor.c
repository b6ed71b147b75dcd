/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL as the tool sees it (docs/replay.md, section 3.1). The agent is a layer of OpenCL's
 * loader; loaders without layers get the library with OpenCL's calls by name.
 */
#include "backends/recorder/backend_table.h"
#include "backends/recorder/opencl_checks.h"
#include "tracesmith_config.h"

static const char *const preload[] = { "libtracesmith-opencl.so", NULL };

static const struct ts_backend_variable environment[] = {
	{ "OPENCL_LAYERS", TS_BACKEND_AGENT, TS_BACKEND_PREPEND, NULL },
	{ 0 },
};

static const struct ts_backend_check checks[] = {
	{ "opencl", "platforms", ts_check_opencl, "record, replay", NULL },
	{ "opencl_devices", "devices", ts_check_opencl_devices, "record, replay", NULL },
	{ "opencl_layers", "layers", ts_check_opencl_layers, NULL, NULL },
	{ "opencl_recording", "recording", ts_check_opencl_recording, "record, replay", NULL },
	{ "opencl_oclgrind", "Oclgrind", ts_check_opencl_oclgrind, "replay", NULL },
	{ 0 },
};

static const struct ts_backend_launcher launchers[] = {
	{ "oclgrind", "puts its own OpenCL before the recorded one",
	  "oclgrind [OPTION...] tracesmith record [OPTION...] -- PROGRAM" },
	{ 0 },
};

const struct ts_backend ts_opencl_descriptor = {
	.abi = TS_BACKEND_ABI,
	.size = sizeof(ts_opencl_descriptor),
	.name = "opencl",
	.summary = "OpenCL calls and commands, device times, replay",
	.flags = TS_BACKEND_REPLAYABLE,
	.preload = preload,
	.environment = environment,
	.checks = checks,
	.launchers = launchers,
#ifndef TS_HAVE_OPENCL
	.unavailable = "this build has no OpenCL support; install the headers (apt install "
		       "opencl-headers) and rebuild",
#endif
};
