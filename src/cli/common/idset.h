/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of ids of a trace: chosen one by one, or by globs over the texts that the ids stand for,
 * which are looked at once an id and only when asked for. One thread at a time.
 */
#ifndef TS_CLI_COMMON_IDSET_H
#define TS_CLI_COMMON_IDSET_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/map.h"
#include "cli/common/options.h"

enum ts_idset_kind {
	TS_IDSET_CHOSEN,  /* what ts_idset_add() was told */
	TS_IDSET_STRINGS, /* ids of strings that match a glob */
	TS_IDSET_STACKS,  /* ids of stacks whose innermost function matches a glob */
};

struct ts_idset {
	enum ts_idset_kind kind;
	struct ts_reader *reader;
	const struct ts_word_list *globs; /* not for chosen ids */
	struct ts_map answers;            /* id to 1, yes, or 0, no */
};

/* An empty set. `globs` must stay; NULL for chosen ids. */
void ts_idset_init(struct ts_idset *set, enum ts_idset_kind kind, struct ts_reader *reader,
		   const struct ts_word_list *globs);
void ts_idset_release(struct ts_idset *set);

/* Chooses an id; 0 or TS_ENOMEM. */
int ts_idset_add(struct ts_idset *set, int64_t id);

/* Finds the answer for an id that has none yet, and notes it. */
bool ts_idset_decide_(struct ts_idset *set, int64_t id);

static inline bool ts_idset_has(struct ts_idset *set, int64_t id)
{
	uint64_t answer;

	if (ts_map_get(&set->answers, (uint64_t)id, &answer))
		return answer;
	return set->kind != TS_IDSET_CHOSEN && ts_idset_decide_(set, id);
}

/* Does any glob of the list match? */
bool ts_globs_match(const struct ts_word_list *globs, struct ts_string text);

#endif
