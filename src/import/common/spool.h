/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole content of an input as a file that can be read anywhere, for formats that cannot be
 * read from front to back: the file itself where it is plain, else a copy in $TMPDIR (/tmp) that
 * nobody else sees, and that is gone with the process, also when that is killed.
 */
#ifndef TS_IMPORT_COMMON_SPOOL_H
#define TS_IMPORT_COMMON_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>

struct ts_import;

struct ts_spool {
	int fd;         /* for pread(2) */
	uint64_t bytes; /* of the content */
	char *path; /* under which it can be opened; a copy is gone from there after ts_spool_hide()
		     */
	bool is_copy, is_hidden;
	struct ts_error damage; /* of a packed input, behind these bytes: for who has read them;
				   code 0: none */
};

/* The stream of the import is used up where a copy is made. Progress is told meanwhile. */
int ts_spool_open(struct ts_spool *spool, struct ts_import *import, struct ts_error *err);

/* Whoever needed the path has opened it: a kill from now on leaves nothing behind. */
void ts_spool_hide(struct ts_spool *spool);

void ts_spool_close(struct ts_spool *spool);

#endif
