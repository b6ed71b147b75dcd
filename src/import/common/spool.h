/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random access to an input, for formats that cannot be read sequentially: the file itself if it is
 * plain, else a private copy in $TMPDIR (/tmp) that disappears with the process, even if it is
 * killed.
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
	char *path;     /* for opening it; a copy is unlinked by ts_spool_hide() */
	bool is_copy, is_hidden;
	struct ts_error damage; /* decompression error after these bytes, to report once they are
				   read; code 0: none */
};

/* Consumes the import's stream if a copy is made, and reports progress meanwhile. */
int ts_spool_open(struct ts_spool *spool, struct ts_import *import, struct ts_error *err);

/* Call after the path has been opened: from now on a kill leaves nothing behind. */
void ts_spool_hide(struct ts_spool *spool);

void ts_spool_close(struct ts_spool *spool);

#endif
