/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what this machine permits, by trying it. Each capability is one check; one table lists
 * all checks.
 *
 * To add a check `lasers`:
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

#include <tracesmith/error.h>

#include "base/machine.h"

enum ts_check_state {
	TS_CHECK_UNKNOWN, /* undecided: timeout, crash, unexpected error */
	TS_CHECK_YES,
	TS_CHECK_LIMITED, /* works, with the restriction in `why` */
	TS_CHECK_NO,      /* refused or broken, for a known reason */
	TS_CHECK_ABSENT,  /* not present, which is not a fault */
	TS_CHECK_STATES,
};

#define TS_FINDING_WHY_BYTES 384
#define TS_FINDING_MEND_BYTES 512

/* The result of a check. Texts are one line each, or "". */
struct ts_finding {
	enum ts_check_state state;
	char why[TS_FINDING_WHY_BYTES];
	char mend[TS_FINDING_MEND_BYTES];      /* shell command that fixes it */
	char mend_note[TS_FINDING_MEND_BYTES]; /* where to run it, what it weakens, alternatives */
};

/* All truncate what is too long. */
void ts_finding_set(struct ts_finding *finding, enum ts_check_state state, const char *format, ...)
	TS_PRINTF_LIKE(3, 4);
void ts_finding_mend(struct ts_finding *finding, const char *format, ...) TS_PRINTF_LIKE(2, 3);
void ts_finding_note(struct ts_finding *finding, const char *format, ...) TS_PRINTF_LIKE(2, 3);

#define TS_QUOTED_BYTES TS_FINDING_MEND_BYTES

/* Quotes a word for a shell if needed; "PATH" if it is too long. Returns the buffer. */
const char *ts_finding_quote(const char *word, char buffer[TS_QUOTED_BYTES]);

struct ts_check {
	const char *id; /* stable: scripts depend on it */
	const char *group;
	const char *title;
	const char *used_by; /* the verb or feature that needs it; NULL: nothing yet */
	const char *caution; /* what the author could not test, or NULL */
	bool is_basic;       /* nothing can be recorded without it */
	void (*probe)(const struct ts_machine *machine, struct ts_finding *ret_finding);
	const struct ts_backend_check *backend_check; /* check of a backend, instead of `probe` */
};

/* Runs a check in this process. */
void ts_check_run(const struct ts_check *check, const struct ts_machine *machine,
		  struct ts_finding *ret_finding);

/* All checks in display order, groups together. Valid until the next call. */
const struct ts_check *ts_check_list(size_t *ret_count);

/* "yes", "limited", "no", "absent", "unknown". */
const char *ts_check_state_name(enum ts_check_state state);

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
