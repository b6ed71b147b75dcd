/* SPDX-License-Identifier: Apache-2.0 */
/* Common to all speedscope files: the head, the frames, names of profiles. See speedscope.h. */
#include "export/speedscope/speedscope.h"

#include "base/io.h"
#include "export/export.h"

void ts_speedscope_init(struct ts_speedscope *file, struct ts_reader *reader, int fd,
			const struct ts_export_options *options, struct ts_error *err)
{
	*file = (struct ts_speedscope){ .reader = reader, .fd = fd, .err = err };
	ts_frame_keys_init(&file->keys, reader, !(ts_export_flags(options) & TS_EXPORT_NO_LINES));
}

void ts_speedscope_release(struct ts_speedscope *file)
{
	ts_frame_keys_release(&file->keys);
	ts_text_release(&file->out);
}

void ts_speedscope_put_head(struct ts_speedscope *file)
{
	ts_text_append_str(&file->out,
			   "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
			   "\"exporter\":\"tracesmith\",\n");
}

int ts_speedscope_flush(struct ts_speedscope *file, size_t unless_below)
{
	int rc;

	if (ts_text_status(&file->out))
		return ts_error_set(file->err, TS_ENOMEM, "no memory");
	if (file->out.length < unless_below)
		return TS_OK;
	rc = ts_write_all(file->fd, file->out.data, file->out.length, file->err);
	ts_text_clear(&file->out);
	return rc;
}

static void put_frame(struct ts_speedscope *file, int64_t id)
{
	struct ts_string path = ts_frame_file(file->reader, id);
	int64_t line = ts_frame_line(file->reader, id);
	TS_SCOPED(ts_text) name = { 0 };

	ts_frame_append_function(file->reader, &name, id);
	ts_text_append_str(&file->out, "{\"name\":");
	ts_text_append_json(&file->out, name.data, name.length);
	if (path.length) {
		ts_text_append_str(&file->out, ",\"file\":");
		ts_text_append_json(&file->out, path.data, path.length);
	}
	if (file->keys.with_lines && line != TS_ABSENT) {
		ts_text_append_str(&file->out, ",\"line\":");
		ts_text_append_int(&file->out, line);
	}
	ts_text_append_char(&file->out, '}');
}

int ts_speedscope_put_frames(struct ts_speedscope *file)
{
	int rc = TS_OK;

	ts_text_append_str(&file->out, "\"shared\":{\"frames\":[");
	for (uint32_t i = 0; !rc && i < ts_frame_keys_count(&file->keys); i++) {
		ts_text_append_str(&file->out, i ? ",\n" : "\n");
		put_frame(file, file->keys.frames[i]);
		rc = ts_speedscope_flush(file, TS_SPEEDSCOPE_FLUSH_BYTES);
	}
	ts_text_append_str(&file->out, "]}");
	return rc;
}

void ts_speedscope_put_name(struct ts_speedscope *file, int64_t id)
{
	const struct ts_thread_row *thread = ts_reader_entity(file->reader, TS_TABLE_THREAD, id);
	const struct ts_process_row *process = NULL;
	TS_SCOPED(ts_text) name = { 0 };

	if (thread)
		process = ts_reader_entity(file->reader, TS_TABLE_PROCESS, thread->process);
	ts_text_append_str(&name, "process ");
	if (process && process->pid != TS_ABSENT)
		ts_text_append_int(&name, process->pid);
	else
		ts_text_append_str(&name,
				   process && process->pid_text
					   ? ts_reader_string(file->reader, process->pid_text).data
					   : "unknown");
	ts_text_append_char(&name, ' ');
	if (thread && thread->name)
		ts_text_append_str(&name, "thread ");
	ts_thread_append_name(file->reader, &name, id);
	ts_text_append_json(&file->out, name.data, name.length);
}
