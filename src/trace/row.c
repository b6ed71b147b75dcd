/* SPDX-License-Identifier: Apache-2.0 */
/* See row.h. */
#include "trace/row.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

int ts_row_name_column(const struct ts_table_info *table)
{
	static const char *const names[] = { "name", "module", "what", "key", "pool" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		int position = ts_column_by_name(table, names[i]);

		if (position >= 0)
			return position;
	}
	return -1;
}

int ts_row_duration_column(const struct ts_table_info *table)
{
	if (table->id == TS_TABLE_TORCH_TRACE)
		return (int)TS_COLUMN_OF(torch_trace, duration);
	return table->duration;
}

int64_t ts_row_duration_ns(const struct ts_table_info *table, int64_t value)
{
	double ns;

	if (table->id != TS_TABLE_TORCH_TRACE)
		return value;
	memcpy(&ns, &value, sizeof(ns));
	ns *= 1e9;
	/* Files of others may have anything. */
	return ns >= 0 && ns < 9e18 ? (int64_t)llround(ns) : 0;
}
