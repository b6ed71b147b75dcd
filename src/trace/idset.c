/* SPDX-License-Identifier: Apache-2.0 */
/* See idset.h. */
#include "trace/idset.h"
#include "base/text.h"
#include "trace/stack_lists.h"

bool ts_patterns_match(const struct ts_patterns *globs, struct ts_string text)
{
	for (size_t i = 0; i < globs->count; i++) {
		if (ts_glob_match(globs->items[i], text.data, text.length))
			return true;
	}
	return false;
}

void ts_idset_init(struct ts_idset *set, enum ts_idset_kind kind, struct ts_reader *reader,
		   const struct ts_patterns *globs)
{
	*set = (struct ts_idset){ .kind = kind, .reader = reader, .globs = globs };
}

void ts_idset_release(struct ts_idset *set)
{
	ts_map_release(&set->answers);
}

int ts_idset_add(struct ts_idset *set, int64_t id)
{
	return ts_map_put(&set->answers, (uint64_t)id, 1);
}

bool ts_idset_decide_(struct ts_idset *set, int64_t id)
{
	struct ts_string text;
	bool yes;

	if (set->kind == TS_IDSET_STACKS)
		text = ts_stack_leaf_name(set->reader, id);
	else
		text = ts_reader_string(set->reader, id);
	yes = ts_patterns_match(set->globs, text);
	/* If the answer cannot be cached, it is computed again next time. */
	(void)ts_map_put(&set->answers, (uint64_t)id, yes);
	return yes;
}
