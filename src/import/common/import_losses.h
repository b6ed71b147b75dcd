/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses of an import: what could not be imported is counted while reading, and reported at the end
 * as rows of `loss` and as a note.
 */
#ifndef TS_IMPORT_COMMON_IMPORT_LOSSES_H
#define TS_IMPORT_COMMON_IMPORT_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ts_import;

/* Static, one per kind of loss; identified by address. */
struct ts_loss_kind {
	const char *what;       /* table or kind of item: "event" */
	const char *one, *many; /* "event without time", "events without time" */
	bool is_rest;           /* has no count: "unread rest of the file" */
};

/* Further kinds are counted with the last one. */
#define TS_IMPORT_LOSSES_MAX 32

struct ts_loss_count {
	const struct ts_loss_kind *kind;
	uint64_t count;
	int64_t first, last; /* times of the nearest events */
};

/* Zero-initialized: empty. */
struct ts_import_losses {
	struct ts_loss_count list[TS_IMPORT_LOSSES_MAX];
	size_t count;
};

/* The file was not read to its end; common to all importers. */
extern const struct ts_loss_kind ts_loss_rest;

void ts_import_losses_add(struct ts_import_losses *losses, const struct ts_loss_kind *kind,
			  int64_t time, uint64_t count);

/*
 * Adds the rows in the writer's clock, and the note to the import's result; also what the writer
 * has cut, at `time`.
 */
void ts_import_losses_write(struct ts_import_losses *losses, struct ts_import *import,
			    int64_t source, int64_t time);

#endif
