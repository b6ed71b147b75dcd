/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the tool as a process that does not depend on this one, without side effects here: no
 * SIGCHLD, no child that wait() would return.
 */
#ifndef TS_RECORD_CONTROL_SPAWN_TOOL_H
#define TS_RECORD_CONTROL_SPAWN_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include <tracesmith/error.h>

/*
 * $TRACESMITH_RECORDER, or `tracesmith` next to this library, in the bin/ of its prefix, or in
 * PATH. The message of TS_ENOTFOUND says what to do.
 */
int ts_tool_find(char *ret_path, size_t bytes, struct ts_error *err);

/* The descriptor that the tool has its socket at. */
#define TS_TOOL_SOCKET_FD 3

/*
 * Runs the program at arguments[0]. Of our descriptors it has the standard ones, and `socket_fd` as
 * TS_TOOL_SOCKET_FD; ignored signals and the mask are ours. `alone`: in a session of its own, with
 * /dev/null as standard input and output, and without LD_PRELOAD. The variables that make a program
 * a target are removed in any case.
 */
int ts_tool_spawn(const char *const *arguments, int socket_fd, bool alone, struct ts_error *err);

#endif
