/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the trace of -o, with metadata about the source trace, target and options. */
#include "replay/output/replay_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "base/text.h"

TS_DEFINE_AUTO(ts_writer, ts_writer_close);

/* ---- metadata ---- */

static void add_meta(struct ts_writer *writer, const char *key, struct ts_text *json)
{
	struct ts_meta_row row = ts_meta_none;

	row.key = ts_writer_string(writer, key, strlen(key));
	row.value = ts_writer_string(writer, ts_text_cstr(json), json->length);
	ts_writer_add(writer, TS_TABLE_META, &row, NULL);
	ts_text_clear(json);
}

static void add_text(struct ts_writer *writer, const char *key, const char *value,
		     struct ts_text *json)
{
	if (!value || !*value)
		return;
	ts_text_append_json(json, value, strlen(value));
	add_meta(writer, key, json);
}

static void add_value(struct ts_writer *writer, const char *key, const struct ts_option_spec *spec,
		      const void *value, struct ts_text *json)
{
	const struct ts_option_values *list = value;

	switch (spec->type) {
	case TS_OPTION_SPEC_FLAG:
		ts_text_append_str(json, *(const bool *)value ? "true" : "false");
		add_meta(writer, key, json);
		break;
	case TS_OPTION_SPEC_CHOICE:
		add_text(writer, key, spec->words[*(const int64_t *)value], json);
		break;
	case TS_OPTION_SPEC_TEXT:
		add_text(writer, key, *(const char *const *)value, json);
		break;
	case TS_OPTION_SPEC_INTEGER:
	case TS_OPTION_SPEC_TIME:
		ts_text_printf(json, "%" PRId64, *(const int64_t *)value);
		add_meta(writer, key, json);
		break;
	case TS_OPTION_SPEC_LIST:
		for (size_t i = 0; i < list->count; i++)
			add_text(writer, key, list->values[i], json);
		break;
	}
}

/* "replay.what_if" for --what-if. */
static void add_target_options(struct ts_writer *writer, const struct ts_replay_options *options,
			       struct ts_text *json)
{
	const struct ts_replay_target *target = options->target;
	char key[64];

	for (size_t i = 0; options->target_options && i < target->option_count; i++) {
		snprintf(key, sizeof(key), "replay.%s", target->options[i].name);
		for (char *c = key; *c; c++)
			if (*c == '-')
				*c = '_';
		add_value(writer, key, &target->options[i],
			  (const char *)options->target_options + target->options[i].offset, json);
	}
}

static void add_options(struct ts_writer *writer, const struct ts_replay_options *options,
			struct ts_text *json)
{
	static const char *const levels[] = {
		[TS_REPLAY_CHECK_NONE] = "none",
		[TS_REPLAY_CHECK_FINAL] = "final",
		[TS_REPLAY_CHECK_EACH] = "each",
	};

	add_text(writer, "replay.device_option", options->device, json);
	add_text(writer, "replay.stream", options->streams, json);
	add_text(writer, "replay.from", options->from, json);
	add_text(writer, "replay.to", options->to, json);
	add_text(writer, "replay.kernel", options->kernel, json);
	if (options->target->needs & TS_REPLAY_NEEDS_STREAM) {
		add_text(writer, "replay.check", levels[options->check], json);
		add_text(writer, "replay.pace",
			 options->pace == TS_REPLAY_ORIGINAL ? "original" : "fast", json);
	}
	add_text(writer, "replay.tolerance", options->tolerance.text, json);
	add_text(writer, "replay.skip_unsupported", options->skip_unsupported ? "true" : NULL,
		 json);
	for (size_t i = 0; i < options->replacement_count; i++)
		add_text(writer, "replay.replace_kernel", options->replacements[i].kernel, json);
	add_target_options(writer, options, json);
}

static int write_meta(const struct ts_replay *replay, struct ts_writer *writer,
		      const struct ts_replay_report *report, struct ts_error *err)
{
	TS_SCOPED(ts_text) json = { 0 };

	add_text(writer, "replay.of", replay->options.name ? replay->options.name : "a trace",
		 &json);
	add_text(writer, "replay.target", replay->options.target->name, &json);
	add_text(writer, "replay.device", report->device, &json);
	add_text(writer, "replay.verdict", report->verdict_text, &json);
	ts_text_printf(&json, "%" PRIu32, report->runs);
	add_meta(writer, "replay.runs", &json);
	add_options(writer, &replay->options, &json);
	return ts_writer_status(writer, err);
}

/* ---- the file ---- */

static int write_rows(const struct ts_replay *replay, struct ts_writer *writer,
		      const struct ts_replay_outcome *outcome,
		      const struct ts_replay_report *report, struct ts_error *err)
{
	int rc = write_meta(replay, writer, report, err);

	if (!rc)
		rc = replay->work ? ts_replay_write_work(replay, writer, outcome, err)
				  : ts_replay_write_stream(replay, writer, outcome, report, err);
	return rc ? rc : ts_writer_finish(writer, err);
}

static int write_trace(const struct ts_replay *replay, const char *path,
		       const struct ts_replay_outcome *outcome,
		       const struct ts_replay_report *report, struct ts_error *err)
{
	TS_AUTO(ts_writer) writer = NULL;
	int rc = ts_writer_open(&writer, path, NULL, err);

	return rc ? rc : write_rows(replay, writer, outcome, report, err);
}

int ts_replay_write(const struct ts_replay *replay, const struct ts_replay_outcome *outcome,
		    const struct ts_replay_report *report, struct ts_error *err)
{
	struct ts_output_part part;
	int rc = ts_output_part_init(&part, replay->options.output, err);

	if (!rc)
		rc = write_trace(replay, part.path, outcome, report, err);
	if (!rc)
		rc = ts_output_part_commit(&part, err);
	ts_output_part_release(&part);
	return rc;
}
