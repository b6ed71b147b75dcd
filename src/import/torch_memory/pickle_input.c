/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes of a pickle: numbers, lines, and error messages. */
#include <string.h>

#include "import/torch_memory/pickle_values.h"

int ts_pickle_error(const struct ts_pickle *p, struct ts_error *err)
{
	return p->damage ? ts_import_bad(p->import, p->damage_at, p->damage, err)
			 : ts_import_cut(p->import, p->damage_at, err);
}

static int damage(struct ts_pickle *p, uint64_t at, const char *reason, struct ts_error *err)
{
	p->damaged = true;
	p->damage_at = at;
	p->damage = reason;
	return ts_pickle_error(p, err);
}

int pickle_bad(struct ts_pickle *p, const char *reason, struct ts_error *err)
{
	return damage(p, p->at, reason, err);
}

/* The file ends `held` bytes from here. */
static int cut(struct ts_pickle *p, size_t held, struct ts_error *err)
{
	const struct ts_input_stream *stream = &p->import->stream;

	return damage(p, ts_input_stream_at(stream, stream->js.next) + held, NULL, err);
}

int pickle_no_memory(const struct ts_pickle *p, struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM,
			    "input '%s': out of memory for the values of the pickle",
			    p->import->path);
}

int pickle_need(struct ts_pickle *p, size_t bytes, const char **ret, struct ts_error *err)
{
	struct ts_json *js = &p->import->stream.js;
	size_t held = (size_t)(js->end - js->next);
	int rc = TS_OK;

	if (TS_UNLIKELY(held < bytes))
		rc = ts_import_need(p->import, bytes, &held, err);
	if (rc)
		return rc;
	if (held < bytes)
		return cut(p, held, err);
	*ret = js->next;
	js->next += bytes;
	return TS_OK;
}

int pickle_need_number(struct ts_pickle *p, size_t bytes, uint64_t *ret, struct ts_error *err)
{
	const char *data = "";
	int rc = pickle_need(p, bytes, &data, err);

	*ret = 0;
	for (size_t i = bytes; !rc && i-- > 0;)
		*ret = *ret << 8 | (unsigned char)data[i];
	return rc;
}

/* Up to the end of the line, which is not included. */
int pickle_need_line(struct ts_pickle *p, const char **ret, size_t *ret_length,
		     struct ts_error *err)
{
	struct ts_json *js = &p->import->stream.js;
	size_t seen = 0, held;
	const char *end = NULL;
	int rc;

	while (!end) {
		rc = ts_import_need(p->import, seen + 1, &held, err);
		if (rc)
			return rc;
		if (held <= seen)
			return cut(p, held, err);
		end = memchr(js->next + seen, '\n', held - seen);
		seen = held;
		if (!end && seen > TS_IMPORT_MAX_STRING)
			return pickle_bad(p, "a line is longer than 64 MiB", err);
	}
	*ret = js->next;
	*ret_length = (size_t)(end - js->next);
	js->next = end + 1;
	return TS_OK;
}
