/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what this machine permits, by trying it. Each capability is one check; one table lists
 * those of the machine, and each backend brings its own (include/tracesmith/backend.h).
 *
 * To add a check `lasers` of the machine:
 *
 *  1. Write ts_check_lasers(const struct ts_machine *, struct ts_finding *) in the file of its
 *     group and declare it in checks.h. It runs in its own process, which is killed on a timeout:
 *     it may crash, hang, print, load libraries, change its environment and start processes (which
 *     end with it).
 *  2. Try the thing itself. Settings, versions and capabilities only explain the result. An
 *     unexpected error is TS_CHECK_UNKNOWN; missing hardware or software is TS_CHECK_ABSENT.
 *  3. Add a line to the table in doctor.c. `used_by` NULL: TraceSmith does not use it yet.
 */
#ifndef TS_DOCTOR_DOCTOR_H
#define TS_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/backend.h>

#include "base/finding.h"
#include "base/machine.h"

#define TS_CHECK_STATES (TS_CHECK_ABSENT + 1)

struct ts_check {
	const char *id; /* stable: scripts depend on it */
	const char *group;
	const char *title;
	const char *used_by; /* the verb or feature that needs it; NULL: nothing yet */
	const char *caution; /* what the author could not test, or NULL */
	bool is_basic;       /* nothing can be recorded without it */
	/* One of these; `run` is the check of a backend. */
	void (*probe)(const struct ts_machine *machine, struct ts_finding *ret_finding);
	void (*run)(struct ts_finding *ret_finding);
};

/* Runs a check in this process. */
void ts_check_run(const struct ts_check *check, const struct ts_machine *machine,
		  struct ts_finding *ret_finding);

/* All checks in display order, groups together. Valid until the next call. */
const struct ts_check *ts_check_list(size_t *ret_count);

/* ---- running ---- */

#define TS_PROBE_LIMIT_NS INT64_C(3000000000)

/* A check to run, and its result. Zero all but `check`. */
struct ts_probe {
	const struct ts_check *check;
	struct ts_finding finding;
	int64_t took_ns;
	bool is_done;
};

struct ts_probe_options {
	int64_t limit_ns; /* time limit of each check; 0: TS_PROBE_LIMIT_NS */
	/* Called about ten times a second while checks are running; may be NULL. */
	void (*waiting)(void *context, const struct ts_probe *probes, size_t count,
			int64_t since_start_ns);
	void *context;
};

/*
 * Runs all checks in parallel, each in a child process. A check that crashes, hangs or returns
 * garbage gives TS_CHECK_UNKNOWN. Returns shortly after the time limit at the latest. The caller
 * must be single-threaded and must not have changed SIGCHLD.
 */
void ts_probes_run(struct ts_probe *probes, size_t count, const struct ts_machine *machine,
		   const struct ts_probe_options *options);

#endif
