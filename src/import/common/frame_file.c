/* SPDX-License-Identifier: Apache-2.0 */
/* Files in the texts of frames. */
#include "import/common/frame_file.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum ts_frame_kind ts_frame_file_kind(const char *path, size_t length)
{
	if (ts_ends_with_len(path, length, ".py"))
		return TS_FRAME_PYTHON;
	if (ts_ends_with_len(path, length, ".js") || ts_ends_with_len(path, length, ".mjs") ||
	    ts_ends_with_len(path, length, ".ts"))
		return TS_FRAME_SCRIPT;
	return TS_FRAME_UNKNOWN;
}

/* ":12" at the end of a path, which it then does not count. */
static int64_t split_line(struct ts_frame_file *file)
{
	const char *colon = memrchr(file->path, ':', file->path_length);
	size_t length = colon ? (size_t)(file->path + file->path_length - colon - 1) : 0;
	int64_t line;

	if (!length || ts_parse_int64(colon + 1, length, &line) || line < 0)
		return TS_ABSENT;
	file->path_length -= length + 1;
	return line;
}

static bool looks_like_file(const struct ts_frame_file *file)
{
	return file->path_length &&
	       (file->line != TS_ABSENT || memchr(file->path, '.', file->path_length) ||
		memchr(file->path, '/', file->path_length));
}

void ts_frame_file_split(const char *text, size_t length, struct ts_frame_file *ret_file)
{
	struct ts_frame_file file = { .line = TS_ABSENT };
	size_t at = length;

	*ret_file = (struct ts_frame_file){ .name_length = length, .line = TS_ABSENT };
	if (!length || text[length - 1] != ')')
		return;
	/* Files have parentheses, too, but seldom after a blank. */
	while (at > 1 && !(text[at - 1] == '(' && text[at - 2] == ' '))
		at--;
	if (at < 2)
		return;
	file.name_length = at - 2;
	file.path = text + at;
	file.path_length = length - 1 - at;
	if (file.path_length)
		file.line = split_line(&file);
	if (looks_like_file(&file))
		*ret_file = file;
}
