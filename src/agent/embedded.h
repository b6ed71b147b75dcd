/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent inside the recorder: what it measures of the machine, of processes and of devices, it
 * emits into a live area of its own, and drains as it drains all others. For the tool only; targets
 * load the shared object.
 */
#ifndef TS_AGENT_EMBEDDED_H
#define TS_AGENT_EMBEDDED_H

#include <stdint.h>

/*
 * Makes the process-wide tracer (ts_tracer_process()) an area of that session. `ring_bytes`: how
 * large a thread's ring is from the start, a power of two; 0: as in programs. The larger, the more
 * rarely it must be drained. 0, or an errno: there is none then.
 */
int ts_agent_host(uint64_t session, uint32_t ring_bytes);

#endif
