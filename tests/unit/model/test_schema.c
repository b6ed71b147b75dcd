/* SPDX-License-Identifier: Apache-2.0 */
/* The schema as data: ids are unique and stable, roles are found, names resolve both ways. */
#include <string.h>

#include <tracesmith/error.h>
#include <tracesmith/schema.h>

#include "unit/runner.h"

TS_TEST(ids_are_unique)
{
	for (uint32_t t = 0; t < TS_TABLE_COUNT; t++) {
		const struct ts_table_info *table = ts_table_info(t);

		TS_CHECK(table != NULL);
		TS_CHECK_INT(table->id, t);
		TS_CHECK_INT(ts_table_by_name(table->name), t);
		for (int i = 0; i < table->column_count; i++) {
			TS_CHECK(table->columns[i].id > 0 && table->columns[i].id < 1000);
			TS_CHECK_INT(ts_column_by_id(table, table->columns[i].id), i);
			TS_CHECK_INT(ts_column_by_name(table, table->columns[i].name), i);
		}
	}
	TS_CHECK(ts_table_info(TS_TABLE_COUNT) == NULL);
	TS_CHECK_INT(ts_table_by_name("nonsense"), -1);
}

/* Numbers stored in existing files: if one of these checks fails, the file format is broken. */
TS_TEST(ids_are_for_ever)
{
	TS_CHECK_INT(TS_TABLE_STRING, 1);
	TS_CHECK_INT(TS_TABLE_SLICE, 9);
	TS_CHECK_INT(TS_TABLE_API_CALL, 10);
	TS_CHECK_INT(TS_TABLE_GPU_OP, 11);
	TS_CHECK_INT(TS_TABLE_META, 29);
	TS_CHECK_INT(ts_table_info(TS_TABLE_GPU_OP)->columns[TS_COLUMN_OF(gpu_op, correlation)].id,
		     8);
	TS_CHECK_INT(ts_table_info(TS_TABLE_GPU_OP)->columns[TS_COLUMN_OF(gpu_op, shape)].id, 27);
	TS_CHECK_INT(ts_table_info(TS_TABLE_SLICE)->columns[TS_COLUMN_OF(slice, shape)].id, 9);
	TS_CHECK_INT(TS_GPU_OP_COLLECTIVE, 8);
}

TS_TEST(roles)
{
	const struct ts_table_info *slice = ts_table_info(TS_TABLE_SLICE);
	const struct ts_table_info *mark = ts_table_info(TS_TABLE_MARK);
	const struct ts_table_info *meta = ts_table_info(TS_TABLE_META);

	TS_CHECK_INT(slice->start, TS_COLUMN_OF(slice, start));
	TS_CHECK_INT(slice->duration, TS_COLUMN_OF(slice, duration));
	TS_CHECK_INT(slice->shape, TS_COLUMN_OF(slice, shape));
	TS_CHECK_INT(mark->duration, -1);
	TS_CHECK_INT(mark->shape, TS_COLUMN_OF(mark, shape));
	TS_CHECK_INT(meta->start, -1);
	TS_CHECK_INT(meta->shape, -1);
	TS_CHECK_INT(ts_slice_none.start, TS_ABSENT);
	TS_CHECK_INT(ts_slice_none.name, 0);
}

TS_TEST(event_tables_start_with_their_start)
{
	for (uint32_t t = 0; t < TS_TABLE_COUNT; t++) {
		const struct ts_table_info *table = ts_table_info(t);

		if (table->kind != TS_KIND_EVENT)
			continue;
		TS_CHECK_STR(table->columns[0].name, "start");
		TS_CHECK_INT(table->columns[0].type, TS_COLUMN_TIME);
	}
}

TS_TEST(enums)
{
	int64_t value = 0;

	TS_CHECK_STR(ts_enum_name("gpu_op_kind", TS_GPU_OP_KERNEL), "kernel");
	TS_CHECK(ts_enum_name("gpu_op_kind", 99) == NULL);
	TS_CHECK_INT(ts_enum_value("gpu_op_kind", "fill", 4, &value), 0);
	TS_CHECK_INT(value, TS_GPU_OP_FILL);
	TS_CHECK_INT(ts_enum_value("gpu_op_kind", "fil", 3, &value), TS_ENOTFOUND);
}
