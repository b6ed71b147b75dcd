/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of an import, and of the bytes that a probe sees. */
#include "import/common/text_lines.h"

#include <string.h>

int ts_import_next_line(struct ts_import *import, struct ts_text_line *ret_line,
			struct ts_error *err)
{
	struct ts_json *js = &import->stream.js;
	const char *stop;
	int rc;

	for (;;) {
		size_t held = (size_t)(js->end - js->next);

		stop = held ? memchr(js->next, '\n', held) : NULL;
		if (stop || js->last)
			break;
		rc = ts_import_refill(import, js->next, err);
		if (rc)
			return rc;
	}
	*ret_line = (struct ts_text_line){ .is_complete = stop != NULL };
	if (js->next == js->end)
		return TS_OK;
	stop = stop ? stop : js->end;
	ret_line->text = js->next;
	ret_line->length = (size_t)(stop - js->next);
	js->next = stop + ret_line->is_complete;
	return TS_OK;
}

static bool is_text(const char *line, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)line[i] < ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

const char *ts_probe_next_line(const char **data, const char *end, size_t *ret_length)
{
	const char *line = *data, *stop;

	if (line >= end)
		return NULL;
	stop = memchr(line, '\n', (size_t)(end - line));
	*ret_length = (size_t)((stop ? stop : end) - line);
	*data = line + *ret_length + 1;
	return is_text(line, *ret_length) ? line : NULL;
}
