/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery of traces for the recorder, which knows more about them than their file says. */
#ifndef TS_SBT_RECOVER_H
#define TS_SBT_RECOVER_H

#include <stdint.h>

#include <tracesmith/reader.h>

struct sbt_recover_options {
	uint64_t bytes;       /* recovers only the first `bytes` of the file; 0: all */
	uint64_t next_string; /* string ids below are taken; 0: unknown */
	const char *lost;     /* reason of another loss, of unknown size; NULL: none */
	int (*progress)(void *context, uint64_t done, uint64_t total); /* may be NULL */
	void *context;
};

/* ts_recover() with options. */
int sbt_recover(const char *from, const char *to, const struct sbt_recover_options *options,
		struct ts_recovery *ret_recovery, struct ts_error *err);

/*
 * Checks every checksum in the first `bytes` of a trace, the end of one of its chunks; decodes
 * nothing. TS_EFORMAT: it is damaged there, or shorter.
 */
int sbt_check_chunks(const char *path, uint64_t bytes, struct ts_error *err);

#endif
