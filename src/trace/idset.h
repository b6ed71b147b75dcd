/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of ids of a trace: listed one by one, or defined by globs over the texts of the ids. A text
 * is matched once, when its id is first looked up. One thread at a time.
 */
#ifndef TS_TRACE_IDSET_H
#define TS_TRACE_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/map.h"

/* Globs or numbers as text. Borrowed. */
struct ts_patterns {
	char *const *items;
	size_t count;
};

/* Does any glob match? */
bool ts_patterns_match(const struct ts_patterns *globs, struct ts_string text);

enum ts_idset_kind {
	TS_IDSET_LISTED,  /* ids given to ts_idset_add() */
	TS_IDSET_STRINGS, /* ids of strings that match a glob */
	TS_IDSET_STACKS,  /* ids of stacks whose innermost function matches a glob */
};

struct ts_idset {
	enum ts_idset_kind kind;
	struct ts_reader *reader;
	const struct ts_patterns *globs; /* NULL for listed ids */
	struct ts_map answers;           /* id to 1 (in the set) or 0 */
};

/* An empty set. `globs` must outlive it; NULL for listed ids. */
void ts_idset_init(struct ts_idset *set, enum ts_idset_kind kind, struct ts_reader *reader,
		   const struct ts_patterns *globs);
void ts_idset_release(struct ts_idset *set);

/* 0 or TS_ENOMEM. */
int ts_idset_add(struct ts_idset *set, int64_t id);

/* Matches the text of an id that was not looked up before, and caches the answer. */
bool ts_idset_decide_(struct ts_idset *set, int64_t id);

static inline bool ts_idset_has(struct ts_idset *set, int64_t id)
{
	uint64_t answer;

	if (ts_map_get(&set->answers, (uint64_t)id, &answer))
		return answer;
	return set->kind != TS_IDSET_LISTED && ts_idset_decide_(set, id);
}

#endif
