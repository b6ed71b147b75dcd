/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates docs/schema.md from the schema. A test fails if the committed file differs; to update
 * it:
 *	build/tests/targets/schema_doc > docs/schema.md
 */
#include <stdio.h>
#include <string.h>

#include <tracesmith/schema.h>

static const char *const kinds[] = {
	[TS_KIND_EVENT] = "event",           [TS_KIND_ENTITY] = "entity",
	[TS_KIND_DICTIONARY] = "dictionary", [TS_KIND_RECORD] = "record",
	[TS_KIND_INTERNAL] = "internal",     [TS_KIND_DERIVED] = "derived",
};

static const char *const types[] = {
	[TS_COLUMN_TIME] = "time",   [TS_COLUMN_DURATION] = "duration",
	[TS_COLUMN_INT] = "int",     [TS_COLUMN_FLOAT] = "float",
	[TS_COLUMN_BOOL] = "bool",   [TS_COLUMN_STRING] = "string",
	[TS_COLUMN_JSON] = "json",   [TS_COLUMN_REF] = "ref",
	[TS_COLUMN_ENUM] = "enum",   [TS_COLUMN_SHAPE] = "arguments",
	[TS_COLUMN_BYTES] = "bytes",
};

static void print_table(const struct ts_table_info *table)
{
	printf("\n## %s\n\nTable %u, %s: %s.\n\n| id | column | type | none | meaning |\n"
	       "|---|---|---|---|---|\n",
	       table->name, table->id, kinds[table->kind], table->doc);
	for (int i = 0; i < table->column_count; i++) {
		const struct ts_column_info *column = &table->columns[i];
		int refers = strcmp(column->refers, "none") != 0;

		printf("| %u | %s | %s%s%s | %s | %s |\n", column->id, column->name,
		       types[column->type], refers ? " " : "", refers ? column->refers : "",
		       column->none == TS_ABSENT ? "absent" : "0", column->doc);
	}
}

static void print_enums(void)
{
	printf("\n# Enums\n");
#define TS_ENUM(name, doc) printf("\n## %s\n\n%s.\n\n| value | name |\n|---|---|\n", #name, doc);
#define TS_ENUM_VALUE(enumeration, CONSTANT, name, number) printf("| %d | %s |\n", number, #name);
#include <tracesmith/schema.def>
}

int main(void)
{
	puts("# Tables and columns\n\n"
	     "Generated from `include/tracesmith/schema.def` by `tests/targets/schema_doc.c`; do not edit.\n\n"
	     "- Ids of tables and columns are permanent; the file format ([format.md](format.md)) identifies\n"
	     "  columns by them.\n"
	     "- *event* tables have a time and are sorted by it within a chunk. *entity* rows are identified\n"
	     "  by their `id`; a later row with the same id replaces the earlier one. *dictionary* rows have\n"
	     "  implicit, dense ids from 1 and never change. *internal* tables describe the file itself.\n"
	     "  *derived* tables are computed by analyses and never stored.\n"
	     "- *time* and *duration* are in ns; a duration of -1 means that it did not end in the trace.\n"
	     "  *none* is the value that means \"no value\", also used for a column that is not stored:\n"
	     "  `absent` is -2^63.\n"
	     "- *string* and *json* are ids of strings; *ref* is the id of a row of the named table.\n\n"
	     "# Tables");
	for (unsigned int i = 0; i < TS_TABLE_COUNT; i++)
		if (ts_table_info(i))
			print_table(ts_table_info(i));
	print_enums();
	return 0;
}
