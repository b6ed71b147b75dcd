/* SPDX-License-Identifier: Apache-2.0 */
/* See row.h. */
#include "trace/row.h"

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
