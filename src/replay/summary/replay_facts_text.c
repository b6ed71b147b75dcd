/* SPDX-License-Identifier: Apache-2.0 */
/* The facts as sentences, for people. */
#include <inttypes.h>
#include <string.h>

#include "base/local/hash.h"
#include "base/map.h"
#include "replay/summary/replay_facts.h"

/* Reasons of one window, and names of kernels, that are listed. */
#define REASONS_SAID 6u
#define NAMES_SAID 8u

struct saying {
	const struct ts_replay_facts *facts;
	void (*say)(void *context, enum ts_replay_fact kind, const char *text);
	void *context;
	struct ts_text text;
};

static void say(struct saying *saying, enum ts_replay_fact kind)
{
	saying->say(saying->context, kind, ts_text_cstr(&saying->text));
	ts_text_clear(&saying->text);
}

/* "window 2 of process 4001 (made)"; what is the only one needs no number. */
static void append_window(struct saying *saying, const struct ts_replay_window_facts *window)
{
	ts_text_printf(&saying->text, "window %" PRIu64, window->number);
	if (!saying->facts->several_processes)
		return;
	if (window->pid != TS_ABSENT)
		ts_text_printf(&saying->text, " of process %" PRId64 " (%s)", window->pid,
			       window->process_name);
	else
		ts_text_append_str(&saying->text, " of an unknown process");
}

/* "window 2: ", if there are several. */
static void append_which(struct saying *saying, const struct ts_replay_window_facts *window)
{
	if (saying->facts->window_count < 2)
		return;
	append_window(saying, window);
	ts_text_append_str(&saying->text, ": ");
}

static void say_counts(struct saying *saying, const struct ts_replay_window_facts *window)
{
	struct ts_text *text = &saying->text;
	char size[TS_FORMAT_BYTES];

	if (!window->has_open || window->failed || !window->commands)
		return;
	append_window(saying, window);
	ts_text_printf(text, ": %s (%" PRIu64, TS_COUNTED(window->commands, "command"),
		       window->first);
	if (window->last != window->first)
		ts_text_printf(text, " to %" PRIu64, window->last);
	ts_text_printf(text, "), %s, %s", TS_COUNTED(window->launches, "launch"),
		       TS_COUNTED(window->checks, "check"));
	if (window->graph_launches)
		ts_text_printf(text, "; %s of graphs with %s",
			       TS_COUNTED(window->graph_launches, "launch"),
			       TS_COUNTED(window->graph_nodes, "node"));
	if (window->pieces)
		ts_text_printf(text, "; it begins with %s of memory",
			       ts_format_bytes(size, sizeof(size), window->piece_bytes));
	say(saying, TS_REPLAY_FACT_NOTE);
}

static void say_reasons(struct saying *saying, const struct ts_replay_window_facts *window)
{
	struct ts_text *text = &saying->text;
	char count[TS_FORMAT_BYTES];

	if (!window->unreplayable || window->failed)
		return;
	append_which(saying, window);
	ts_text_printf(text,
		       "%s cannot be replayed, nor can what needs %s ('--skip-unsupported' leaves "
		       "that out)",
		       TS_COUNTED(window->unreplayable, "command"),
		       window->unreplayable == 1 ? "its result" : "their results");
	say(saying, TS_REPLAY_FACT_WARNING);
	for (size_t i = 0; i < window->reason_count && i < REASONS_SAID; i++) {
		const struct ts_replay_reason *reason = &window->reasons[i];

		ts_text_printf(text, "%s %s%s%s (%s%" PRIu64 ")",
			       ts_format_count(count, sizeof(count), (int64_t)reason->count),
			       reason->what, reason->what[0] ? ": " : "", reason->why,
			       reason->count > 1 ? "first: command " : "command ", reason->first);
		say(saying, TS_REPLAY_FACT_DETAIL);
	}
	if (window->reason_count > REASONS_SAID) {
		ts_text_printf(text, "and %zu more reasons", window->reason_count - REASONS_SAID);
		say(saying, TS_REPLAY_FACT_DETAIL);
	}
}

static void say_window(struct saying *saying, const struct ts_replay_window_facts *window)
{
	struct ts_text *text = &saying->text;

	if (window->failed) {
		append_window(saying, window);
		ts_text_printf(text, " cannot be replayed: %s", window->failed);
		say(saying, TS_REPLAY_FACT_WARNING);
		return;
	}
	if (window->has_open && !window->commands) {
		append_window(saying, window);
		ts_text_append_str(text, " is empty: the program enqueued nothing in it");
		say(saying, TS_REPLAY_FACT_WARNING);
		return;
	}
	if (!window->has_close) {
		append_window(saying, window);
		ts_text_printf(text,
			       " has no end: the program was killed, or called _exit(). It can be "
			       "replayed up to command %" PRIu64,
			       window->last);
		say(saying, TS_REPLAY_FACT_NOTE);
	}
	say_reasons(saying, window);
	if (window->ambiguous) {
		append_which(saying, window);
		ts_text_printf(text,
			       "%s %s an argument whose kind was guessed from its value: a replay "
			       "may differ",
			       TS_COUNTED(window->ambiguous, "launch"),
			       window->ambiguous == 1 ? "has" : "have");
		say(saying, TS_REPLAY_FACT_WARNING);
	}
	if (window->unchecked) {
		append_window(saying, window);
		ts_text_printf(text, ": memory was not checked at its end: %s", window->unchecked);
		say(saying, TS_REPLAY_FACT_NOTE);
	}
}

/* ---- programs ---- */

/* "a, b, c and 5 more", of all programs, each name once. */
static void append_kernels(struct saying *saying)
{
	TS_SCOPED(ts_map) met = { 0 };
	size_t said = 0;

	for (size_t i = 0; i < saying->facts->program_count; i++) {
		const char *at = saying->facts->programs[i].kernels;

		while (*at) {
			size_t length = strcspn(at, ",");
			bool is_new = true;

			ts_map_insert(&met, ts_hash64(at, length), &is_new);
			if (is_new && said < NAMES_SAID)
				ts_text_printf(&saying->text, "%s%.*s", said ? ", " : "",
					       (int)length, at);
			said += is_new;
			at += length;
			at += strspn(at, ", ");
		}
	}
	if (said > NAMES_SAID)
		ts_text_printf(&saying->text, " and %zu more", said - NAMES_SAID);
}

static void say_programs(struct saying *saying)
{
	size_t count = saying->facts->program_count;

	if (!count)
		return;
	ts_text_printf(&saying->text,
		       "%s %s only, and can be replayed on this device and driver only: kernels ",
		       TS_COUNTED(count, "program"),
		       count == 1 ? "was captured as a binary" : "were captured as binaries");
	append_kernels(saying);
	say(saying, TS_REPLAY_FACT_NOTE);
}

static void say_modules(struct saying *saying, bool counts)
{
	const struct ts_replay_facts *facts = saying->facts;
	uint64_t compiled = facts->modules - facts->ptx_modules - facts->unfit_modules;
	struct ts_text *text = &saying->text;

	if (counts && compiled) {
		ts_text_printf(text,
			       "%s %s code for compute capability %" PRIu64 ".%" PRIu64
			       ": replay on such a GPU",
			       TS_COUNTED(compiled, "module"), compiled == 1 ? "has" : "have",
			       facts->compute / 10, facts->compute % 10);
		say(saying, TS_REPLAY_FACT_NOTE);
	}
	if (facts->ptx_modules) {
		ts_text_printf(text,
			       "%s %s PTX only: the driver of a replay compiles %s, so its "
			       "results may differ",
			       TS_COUNTED(facts->ptx_modules, "module"),
			       facts->ptx_modules == 1 ? "is" : "are",
			       facts->ptx_modules == 1 ? "it" : "them");
		say(saying, TS_REPLAY_FACT_NOTE);
	}
}

/* ---- nothing ---- */

static void say_nothing(struct saying *saying)
{
	const struct ts_replay_facts *facts = saying->facts;

	if (facts->window_count)
		return;
	ts_text_append_str(
		&saying->text,
		facts->has_cuda
			? "nothing to replay: CUDA was used, but no window was open during it"
		: facts->has_contexts
			? "nothing to replay: OpenCL was used, but no window was open during it"
			: "nothing to replay: no process was seen to use CUDA or to create an OpenCL context; "
			  "'tracesmith doctor' shows what can be recorded on this machine");
	say(saying, TS_REPLAY_FACT_WARNING);
}

void ts_replay_facts_say(const struct ts_replay_facts *facts, bool counts,
			 void (*function)(void *context, enum ts_replay_fact kind,
					  const char *text),
			 void *context)
{
	struct saying saying = { .facts = facts, .say = function, .context = context };

	for (size_t i = 0; i < facts->window_count; i++) {
		if (counts)
			say_counts(&saying, &facts->windows[i]);
		say_window(&saying, &facts->windows[i]);
	}
	say_programs(&saying);
	say_modules(&saying, counts);
	say_nothing(&saying);
	ts_text_release(&saying.text);
}
