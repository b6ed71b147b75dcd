/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent as a shared object: it begins when it is loaded and ends with its process; the table of
 * its backends. Not part of the tool, which has the rest of the agent inside to emit what it
 * measures itself (embedded.h).
 */
#include "agent/tracer.h"
#include "tracesmith_config.h"

#ifdef TS_HAVE_OPENCL
#include "backends/opencl/opencl_internal.h"
#endif

const struct ts_backend *const agent_backends[] = {
#ifdef TS_HAVE_OPENCL
	&ts_opencl_backend,
#endif
	NULL
};

/*
 * True where the process has another agent already, ahead of this one, which then gets all events:
 * a copy at another path, or that inside the tool, which has loaded a backend that is linked with
 * this one.
 */
static bool is_second(void)
{
	return ts_tracer_process() != &ts_process_tracer;
}

__attribute__((constructor)) static void load(void)
{
	if (!is_second())
		agent_load();
}

__attribute__((destructor)) static void unload(void)
{
	if (!is_second())
		agent_unload();
}
