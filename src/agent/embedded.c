/* SPDX-License-Identifier: Apache-2.0 */
/* The agent inside the recorder: its own live area, created when there is something to record. */
#include "agent/embedded.h"

#include <errno.h>

#include "agent/tracer.h"

int ts_agent_host(uint64_t session, uint32_t ring_bytes, bool redact)
{
	const struct core *core;

	agent_settings_host(session, ring_bytes, redact);
	if (agent_start(&ts_process_tracer))
		return 0;
	core = ts_process_tracer.core;
	return core && core->error ? core->error : ENOMEM;
}
