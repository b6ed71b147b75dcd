/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent inside the recorder. The recorder emits its measurements of the machine, processes and
 * devices into a live area of its own, and drains that like any other. For the tool only; targets
 * load the shared object.
 */
#ifndef TS_AGENT_EMBEDDED_H
#define TS_AGENT_EMBEDDED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Creates the area of the process-wide tracer (ts_tracer_process()) in that session. `ring_bytes`
 * is the initial size of a thread's ring, a power of two; 0: as in programs. A larger ring needs to
 * be drained less often. `redact`: it stores no string arguments. Returns 0, or an errno: there is
 * no area then.
 */
int ts_agent_host(uint64_t session, uint32_t ring_bytes, bool redact);

#endif
