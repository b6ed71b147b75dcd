/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of devices for a part of a trace: the modules that frames of its samples are in, so that
 * these can be read without the whole. Frames have been copied by then.
 */
#include "base/local/hash.h"
#include "trace/extract_internal.h"

/* Equal texts may have several ids; this is the same for all of them. */
static int64_t text_of(const struct extract *extract, int64_t string)
{
	struct ts_string text = ts_reader_string(extract->reader, string);

	return (int64_t)ts_hash64(text.data, text.length);
}

/* Names of the files and modules of the copied frames. */
static void find_modules(struct extract *extract, struct ts_map *names)
{
	uint64_t mapping, unused;
	size_t cursor = 0;

	while (ts_map_next(&extract->mappings, &cursor, &mapping, &unused)) {
		const struct ts_mapping_row *row =
			ts_reader_entity(extract->reader, TS_TABLE_MAPPING, (int64_t)mapping);

		if (row && row->path)
			extract_remember(extract, names, text_of(extract, row->path), 1);
	}
}

static bool is_code(const struct extract *extract, const struct ts_map *names, int64_t id,
		    const struct ts_object_row *row)
{
	return row->kind == TS_OBJECT_MODULE && row->blob &&
	       extract_has(names, text_of(extract, row->name)) &&
	       extract_has(&extract->processes, row->process) &&
	       !extract_has(&extract->objects, id);
}

void extract_code(struct extract *extract)
{
	const struct ts_table_info *table = ts_table_info(TS_TABLE_OBJECT);
	const struct ts_object_row *row;
	struct ts_map names = { 0 };
	size_t cursor = 0;
	int64_t id;

	find_modules(extract, &names);
	while (!extract->failure &&
	       (row = ts_reader_entity_next(extract->reader, TS_TABLE_OBJECT, &cursor, &id))) {
		struct ts_object_row copy = *row;

		if (!is_code(extract, &names, id, row))
			continue;
		copy.parent = 0; /* may not be copied */
		extract->is_code = true;
		extract_row(extract, table, (int64_t *)&copy);
		extract->is_code = false;
		ts_writer_add(extract->writer, TS_TABLE_OBJECT, &copy, NULL);
	}
	ts_map_release(&names);
}
