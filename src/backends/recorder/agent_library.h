/* SPDX-License-Identifier: Apache-2.0 */
/* Where the agent and the libraries of built-in backends are. */
#ifndef TS_BACKENDS_RECORDER_AGENT_LIBRARY_H
#define TS_BACKENDS_RECORDER_AGENT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include <tracesmith/error.h>

#define TS_AGENT_LIBRARY "libtracesmith-agent.so"
#define TS_AGENT_PATH_BYTES 4096

/*
 * Finds the agent: $TRACESMITH_AGENT_PATH, else next to the tool, else in the Python package that
 * was installed with the tool, else in ../lib. TS_ECAP, with what to do, if it is missing, of
 * another build than the tool, or its path cannot be used in LD_PRELOAD.
 */
int ts_agent_library_find(char *buffer, size_t bytes, struct ts_error *err);

/* The path of a file next to the agent, which may not exist. Errors as above. */
int ts_agent_library_find_beside(const char *name, char *buffer, size_t bytes,
				 struct ts_error *err);

/*
 * The folder that makes the Python package known to a program when it is in PYTHONPATH
 * (docs/install.md). False: there is none, or its path contains a colon.
 */
bool ts_agent_library_find_injection(char *buffer, size_t bytes);

#endif
