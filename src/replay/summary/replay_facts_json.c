/* SPDX-License-Identifier: Apache-2.0 */
/* The facts as JSON. Members may be added, never renamed: scripts read them. */
#include <inttypes.h>
#include <string.h>

#include "replay/summary/replay_facts.h"

static void append_text(struct ts_text *out, const char *key, const char *value)
{
	ts_text_printf(out, ",\"%s\":", key);
	if (value)
		ts_text_append_json(out, value, strlen(value));
	else
		ts_text_append_str(out, "null");
}

static void append_reasons(struct ts_text *out, const struct ts_replay_reason *reasons,
			   size_t count, bool of_commands)
{
	for (size_t i = 0; i < count; i++) {
		ts_text_printf(out, "%s{\"count\":%" PRIu64 ",\"%s\":%" PRIu64, i ? "," : "",
			       reasons[i].count, of_commands ? "first_command" : "first_object",
			       reasons[i].first);
		if (of_commands)
			append_text(out, "call", reasons[i].what);
		append_text(out, "reason", reasons[i].why);
		ts_text_append_char(out, '}');
	}
}

static void append_window(struct ts_text *out, const struct ts_replay_window_facts *window)
{
	bool can_run = window->has_open && !window->failed && window->commands;

	ts_text_printf(out, "{\"window\":%" PRIu64, window->number);
	if (window->pid != TS_ABSENT)
		ts_text_printf(out, ",\"pid\":%" PRId64, window->pid);
	append_text(out, "process", window->process_name);
	ts_text_printf(
		out,
		",\"replayable\":%s,\"complete\":%s,\"commands\":%" PRIu64 ",\"launches\":%" PRIu64
		",\"checks\":%" PRIu64 ",\"unreplayable_commands\":%" PRIu64
		",\"ambiguous_launches\":%" PRIu64 ",\"first_command\":%" PRIu64
		",\"last_command\":%" PRIu64 ",\"from_start\":%s,\"closed\":%s",
		can_run ? "true" : "false", can_run && !window->unreplayable ? "true" : "false",
		window->commands, window->launches, window->checks, window->unreplayable,
		window->ambiguous, window->first, window->last,
		window->from_start ? "true" : "false", window->has_close ? "true" : "false");
	ts_text_printf(out,
		       ",\"graph_launches\":%" PRIu64 ",\"graph_nodes\":%" PRIu64
		       ",\"memory_pieces\":%" PRIu64 ",\"memory_bytes\":%" PRIu64,
		       window->graph_launches, window->graph_nodes, window->pieces,
		       window->piece_bytes);
	append_text(out, "failed", window->failed);
	append_text(out, "unchecked", window->unchecked);
	ts_text_append_str(out, ",\"unreplayable\":[");
	append_reasons(out, window->reasons, window->reason_count, true);
	ts_text_append_str(out, "]}");
}

static void append_program(struct ts_text *out, const struct ts_replay_bound_program *program)
{
	const char *at = program->kernels;

	ts_text_printf(out, "{\"module\":%" PRIu64, program->number);
	append_text(out, "from", program->from);
	ts_text_printf(out, ",\"has_source\":%s,\"kernels\":[",
		       program->has_source ? "true" : "false");
	while (*at) {
		size_t length = strcspn(at, ",");

		ts_text_append_json(out, at, length);
		at += length;
		at += strspn(at, ", ");
		ts_text_append_str(out, *at ? "," : "");
	}
	ts_text_append_str(out, "]}");
}

void ts_replay_facts_json(const struct ts_replay_facts *facts, struct ts_text *out)
{
	ts_text_printf(out, "{\"commands\":%" PRIu64 ",\"contexts_seen\":%s,\"windows\":[",
		       facts->commands, facts->has_contexts ? "true" : "false");
	for (size_t i = 0; i < facts->window_count; i++) {
		ts_text_append_str(out, i ? "," : "");
		append_window(out, &facts->windows[i]);
	}
	ts_text_append_str(out, "],\"bound_programs\":[");
	for (size_t i = 0; i < facts->program_count; i++) {
		ts_text_append_str(out, i ? "," : "");
		append_program(out, &facts->programs[i]);
	}
	ts_text_append_str(out, "],\"unreplayable_objects\":[");
	append_reasons(out, facts->objects, facts->object_reason_count, false);
	ts_text_printf(out,
		       "],\"cuda_modules\":%" PRIu64 ",\"ptx_modules\":%" PRIu64
		       ",\"unfit_modules\":%" PRIu64 "}",
		       facts->modules, facts->ptx_modules, facts->unfit_modules);
}
