/* SPDX-License-Identifier: Apache-2.0 */
/* Opens what has been recorded of a process so far. */
#include <inttypes.h>

#include <tracesmith/open.h>

int ts_open_pid(struct ts_reader **ret_reader, pid_t pid, const struct ts_open_options *options,
		struct ts_error *err)
{
	(void)ret_reader;
	(void)options;
	return ts_error_set(err, TS_ECAP, "process %" PRId64 " cannot be opened as a trace",
			    (int64_t)pid);
}
