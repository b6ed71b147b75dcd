/* SPDX-License-Identifier: Apache-2.0 */
/* A row's arguments as JSON. */
#include "cli/common/show.h"
#include "trace/json_row.h"

bool ts_show_json_fields(const struct ts_show *show, struct ts_text *out, const struct ts_row *row,
			 int beside)
{
	size_t before = out->length;

	ts_text_append_char(out, '{');
	if (!ts_json_row_fields(show->reader, out, row, beside)) {
		out->length = before;
		return false;
	}
	ts_json_row_close(out, '}');
	return true;
}

static void append_member(const struct ts_show *show, struct ts_text *out, const struct ts_row *row,
			  const char *key, int beside)
{
	size_t before = out->length;

	ts_text_append_str(out, key);
	if (ts_show_json_fields(show, out, row, beside))
		ts_text_append_char(out, ',');
	else
		out->length = before;
}

void ts_show_json_args(const struct ts_show *show, struct ts_text *out, const struct ts_row *row)
{
	append_member(show, out, row, "\"args\":", 0);
	append_member(show, out, row, "\"beside\":", 1);
}
