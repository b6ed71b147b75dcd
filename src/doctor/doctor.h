/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine lets us do, found out by trying. Each capability is one check; all checks stand
 * in one table.
 *
 * How to add a check `lasers`:
 *
 *  1. Write `void ts_check_lasers(const struct ts_machine *machine, struct ts_finding
 *   *ret_finding)` in the file of its
 *     group and declare it in checks.h. It is called in a process of its own, which is killed when
 *     it takes too long: it
 *     may crash, hang, print, load libraries, change its environment and start processes (which end
 *     with it).
 *  2. Try the thing itself; settings, versions and capabilities only explain what came of it. Not
 *   listed errors are
 *     TS_CHECK_UNKNOWN, hardware or software that is not here is TS_CHECK_ABSENT.
 *  3. Add a line to the table in doctor.c. `used_by` NULL says that TraceSmith does not use it yet.
 */
#ifndef TS_DOCTOR_DOCTOR_H
#define TS_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "doctor/machine.h"

enum ts_check_state {
	TS_CHECK_UNKNOWN, /* could not be decided: no answer in time, a crash, an error that nobody
			     expected */
	TS_CHECK_YES,
	TS_CHECK_LIMITED, /* works, but for what `why` says */
	TS_CHECK_NO,      /* was refused or is broken, and it is known why */
	TS_CHECK_ABSENT,  /* nothing of the kind is here, which is no fault */
	TS_CHECK_STATES,
};

#define TS_FINDING_WHY_BYTES 384
#define TS_FINDING_MEND_BYTES 512

/* What a check found. Texts are one line each, "" where there is nothing to say. */
struct ts_finding {
	enum ts_check_state state;
	char why[TS_FINDING_WHY_BYTES];
	char mend[TS_FINDING_MEND_BYTES];      /* a command for a shell */
	char mend_note[TS_FINDING_MEND_BYTES]; /* where to run it, what it weakens, other ways */
};

/* All cut what is too long. */
void ts_finding_set(struct ts_finding *finding, enum ts_check_state state, const char *format, ...)
	TS_PRINTF_LIKE(3, 4);
void ts_finding_mend(struct ts_finding *finding, const char *format, ...) TS_PRINTF_LIKE(2, 3);
void ts_finding_note(struct ts_finding *finding, const char *format, ...) TS_PRINTF_LIKE(2, 3);

#define TS_QUOTED_BYTES TS_FINDING_MEND_BYTES

/*
 * A word for a shell, in quotes where it needs them; "PATH" where it is too long. Returns the
 * buffer.
 */
const char *ts_finding_quote(const char *word, char buffer[TS_QUOTED_BYTES]);

struct ts_check {
	const char *id; /* stable: scripts rely on it */
	const char *group;
	const char *title;
	const char *used_by; /* what of TraceSmith needs it; NULL: nothing yet */
	const char *caution; /* what its author could not try, or NULL */
	bool is_basic;       /* without it nothing can be recorded */
	void (*probe)(const struct ts_machine *machine, struct ts_finding *ret_finding);
	const struct ts_backend_check *backend_check; /* in place of `probe`, of a backend */
};

/* In this process. */
void ts_check_run(const struct ts_check *check, const struct ts_machine *machine,
		  struct ts_finding *ret_finding);

/*
 * In the order in which they are shown; those of a group stand together. Valid until the next call.
 */
const struct ts_check *ts_check_list(size_t *ret_count);

/* "yes", "limited", "no", "absent", "unknown". */
const char *ts_check_state_name(enum ts_check_state state);

/* ---- running them ---- */

#define TS_PROBE_LIMIT_NS INT64_C(3000000000)

/* A check to run, and what came of it. Zero all but `check`. */
struct ts_probe {
	const struct ts_check *check;
	struct ts_finding finding;
	int64_t took_ns;
	bool is_done;
};

struct ts_probe_options {
	int64_t limit_ns; /* that each may take; 0: TS_PROBE_LIMIT_NS */
	/* Called every tenth of a second or so while some are not done; may be NULL. */
	void (*waiting)(void *context, const struct ts_probe *probes, size_t count,
			int64_t since_start_ns);
	void *context;
};

/*
 * Runs all of them side by side, each in a child of the caller. One that crashes, hangs or answers
 * nonsense gives TS_CHECK_UNKNOWN, nothing else. Takes at most the limit and a little. The caller
 * must not have changed SIGCHLD, and must have one thread only.
 */
void ts_probes_run(struct ts_probe *probes, size_t count, const struct ts_machine *machine,
		   const struct ts_probe_options *options);

#endif
