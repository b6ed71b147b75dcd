/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of ids. */
#include "cli/common/idset.h"
#include "base/text.h"
#include "cli/common/show.h"

bool ts_globs_match(const struct ts_word_list *globs, struct ts_string text)
{
	for (size_t i = 0; i < globs->count; i++) {
		if (ts_glob_match(globs->words[i], text.data, text.length))
			return true;
	}
	return false;
}

void ts_idset_init(struct ts_idset *set, enum ts_idset_kind kind, struct ts_reader *reader,
		   const struct ts_word_list *globs)
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
		text = ts_show_stack_name(set->reader, id);
	else
		text = ts_reader_string(set->reader, id);
	yes = ts_globs_match(set->globs, text);
	/* Without memory for the answer it is found again next time. */
	(void)ts_map_put(&set->answers, (uint64_t)id, yes);
	return yes;
}
