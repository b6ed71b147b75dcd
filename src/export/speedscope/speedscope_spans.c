/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speedscope JSON of nested spans: an "evented" profile per thread, in ns since the first span.
 * Frames come after the profiles, so that everything is streamed. Memory grows only with the number
 * of different names.
 */
#include "base/ns.h"
#include "export/common/export_input.h"
#include "export/common/export_losses.h"
#include "export/speedscope/speedscope.h"

struct spans {
	struct ts_speedscope file;
	int64_t base_ns;
	int64_t thread;
	int64_t last_ns; /* of the profile */
	bool has_profile, has_event;
};

static int64_t since_base(const struct spans *x, int64_t time)
{
	return ts_ns_sub(time, x->base_ns);
}

static void end_profile(struct spans *x)
{
	if (!x->has_profile)
		return;
	ts_text_append_str(&x->file.out, "],\n\"startValue\":0,\"endValue\":");
	ts_text_append_int(&x->file.out, since_base(x, x->last_ns));
	ts_text_append_char(&x->file.out, '}');
}

static void begin_profile(struct spans *x, int64_t thread)
{
	end_profile(x);
	ts_text_append_str(&x->file.out, x->has_profile ? ",\n" : "\n");
	ts_text_append_str(&x->file.out, "{\"type\":\"evented\",\"name\":");
	ts_speedscope_put_name(&x->file, thread);
	ts_text_append_str(&x->file.out, ",\"unit\":\"nanoseconds\",\n\"events\":[");
	x->has_profile = true;
	x->has_event = false;
	x->thread = thread;
}

static int put_step(void *context, const struct ts_span_step *step)
{
	struct spans *x = context;
	uint32_t frame = ts_frame_key(&x->file.keys, ts_frame_of_string(step->name));

	if (frame == TS_STRMAP_NONE)
		return ts_error_set(x->file.err, TS_ENOMEM, "no memory");
	if (!x->has_profile || x->thread != step->thread)
		begin_profile(x, step->thread);
	ts_text_append_str(&x->file.out, x->has_event ? ",\n" : "\n");
	ts_text_append_str(&x->file.out, step->begins ? "{\"type\":\"O\",\"frame\":"
						      : "{\"type\":\"C\",\"frame\":");
	ts_text_append_uint(&x->file.out, frame);
	ts_text_append_str(&x->file.out, ",\"at\":");
	ts_text_append_int(&x->file.out, since_base(x, step->time));
	ts_text_append_char(&x->file.out, '}');
	x->has_event = true;
	x->last_ns = step->time;
	return ts_speedscope_flush(&x->file, TS_SPEEDSCOPE_FLUSH_BYTES);
}

static int put_file(struct spans *x, struct ts_spans *spans)
{
	int rc;

	x->base_ns = ts_spans_counts(spans).first_ns;
	ts_speedscope_put_head(&x->file);
	ts_text_append_str(&x->file.out, "\"profiles\":[");
	rc = ts_spans_walk(spans, put_step, x, x->file.err);
	end_profile(x);
	ts_text_append_str(&x->file.out, "],\n");
	if (!rc)
		rc = ts_speedscope_put_frames(&x->file);
	ts_text_append_str(&x->file.out, "}\n");
	return rc ? rc : ts_speedscope_flush(&x->file, 0);
}

int ts_speedscope_spans(struct ts_reader *reader, int fd, const struct ts_export_options *options,
			struct ts_error *err)
{
	TS_AUTO(ts_spans) spans = NULL;
	struct spans x = { 0 };
	int rc;

	ts_speedscope_init(&x.file, reader, fd, options, err);
	rc = ts_export_spans(&spans, reader, options, err);
	if (!rc)
		rc = put_file(&x, spans);
	if (!rc)
		ts_left_out_spans(options, reader, spans);
	ts_speedscope_release(&x.file);
	return rc;
}
