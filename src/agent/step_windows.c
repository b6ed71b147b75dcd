/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps, windows that the target opens and closes itself, by steps or by markers (docs/live.md,
 * 4.3), and thread names.
 */
#include <errno.h>
#include <string.h>

#include <tracesmith/accelerator.h>

#include "agent/emit.h"
#include "agent/tracer.h"

#define ABSENT INT64_MIN

/* `name`: the marker that opened or closed the window; NULL: the cause suffices. */
static void note_window(struct ts_tracer *tracer, struct core *core, uint32_t action,
			uint32_t cause, int64_t step, const char *name)
{
	uint32_t length = name ? (uint32_t)strnlen(name, 255) : 0;
	uint64_t text_bytes = name ? ts_live_string_words(length) * UINT64_C(8) : 0;
	uint64_t bytes = sizeof(struct ts_live_window_record) + text_bytes;
	struct ts_live_window_record record = {
		.head = { .words = (uint16_t)(bytes / 8), .kind = TS_LIVE_WINDOW },
		.action = action,
		.cause = cause,
		.step = step,
	};
	struct writer *writer = agent_enter(tracer, core, agent_find_writer(tracer), bytes, false);
	char *to;

	if (!writer)
		return;
	record.counter = ts_counter_read(writer->clock);
	to = (char *)agent_record_at(writer);
	memcpy(to, &record, sizeof(record));
	if (name)
		ts_live_string_pack((uint64_t *)(void *)(to + sizeof(record)), name, length);
	agent_commit(writer, bytes);
}

static void set_enabled(struct core *core, uint32_t value)
{
	__atomic_store_n(&core->control->enabled, value, __ATOMIC_RELEASE);
}

/* Opens before the step's own event is stored, closes before that of the next step. */
static void follow_windows(struct ts_tracer *tracer, struct core *core, int64_t number)
{
	struct ts_live_control *control = core->control;
	bool is_on = control->enabled & TS_LIVE_ENABLED;
	int64_t first = control->step_open, last = control->step_close, most = control->max_steps;

	if (control->window_seen != control->window_serial) {
		control->window_seen = control->window_serial;
		control->window_steps = 0;
	}
	if (!is_on && first != ABSENT && number >= first && number <= last) {
		control->window_steps = 1;
		set_enabled(core, TS_LIVE_ENABLED);
		note_window(tracer, core, TS_LIVE_WINDOW_OPEN, TS_LIVE_CAUSE_STEP, number, NULL);
		return;
	}
	if (!is_on)
		return;
	if ((first != ABSENT && number > last) ||
	    (most > 0 && (int64_t)control->window_steps >= most)) {
		bool by_step = first != ABSENT && number > last;

		note_window(tracer, core, TS_LIVE_WINDOW_CLOSE,
			    by_step ? TS_LIVE_CAUSE_STEP : TS_LIVE_CAUSE_MAX_STEPS, number, NULL);
		set_enabled(core, 0);
		control->step_open = ABSENT; /* only once */
		return;
	}
	control->window_steps++;
}

/* ---- windows by markers ---- */

static bool is_on(const struct core *core)
{
	return __atomic_load_n(&core->control->enabled, __ATOMIC_RELAXED) & TS_LIVE_ENABLED;
}

/*
 * The record belongs to the window, so it is stored before `enabled` is cleared. A window that a
 * recorder or max_steps closed stays closed.
 */
static void switch_window(struct core *core, bool open, uint32_t cause, const char *name)
{
	struct ts_live_control *control = core->control;

	if (open == is_on(core))
		return;
	if (open) {
		control->window_steps = 0;
		set_enabled(core, TS_LIVE_ENABLED);
	}
	note_window(&ts_process_tracer, core, open ? TS_LIVE_WINDOW_OPEN : TS_LIVE_WINDOW_CLOSE,
		    cause, control->steps ? control->step : ABSENT, name);
	if (!open)
		set_enabled(core, 0);
}

/*
 * Ranges nest, and several threads may be inside one: the first opens, the last closes.
 * cuProfilerStart and Stop do not nest.
 */
static void follow_marks(struct core *core, bool open, uint32_t cause, const char *name)
{
	uint32_t before = core->window_depth;

	if (cause == TS_LIVE_CAUSE_PROFILER)
		core->window_depth = open;
	else if (open)
		core->window_depth++;
	else if (before)
		core->window_depth--;
	/* A child forked inside a range never opened it. */
	if (!before != !core->window_depth)
		switch_window(core, open, cause, name);
}

void ts_accelerator_window(const char *cause, bool open)
{
	const char *wanted = ts_accelerator_setting("window");
	size_t length = strlen(cause);
	struct agent_signals saved;
	struct core *core;

	if (!wanted || strncmp(wanted, cause, length) != 0 ||
	    (wanted[length] != ':' && wanted[length] != '\0'))
		return;
	agent_block_signals(&saved);
	core = agent_start(&ts_process_tracer);
	if (core) {
		for (unsigned int spins = 0;
		     __atomic_exchange_n(&core->window_lock, 1, __ATOMIC_ACQUIRE); spins++)
			agent_relax(spins);
		follow_marks(core, open,
			     wanted[length] == ':' ? TS_LIVE_CAUSE_NVTX : TS_LIVE_CAUSE_PROFILER,
			     wanted);
		__atomic_store_n(&core->window_lock, 0, __ATOMIC_RELEASE);
	}
	agent_restore_signals(&saved);
}

/* Only for an existing area: does not create one. */
void ts_accelerator_end(void)
{
	struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);
	int saved_errno = errno;
	struct writer *writer;
	uint64_t *to;

	if (!core || __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) != CORE_READY)
		return;
	writer = agent_enter(&ts_process_tracer, core, agent_writer, 16, true);
	if (writer) {
		to = agent_record_at(writer);
		to[0] = ts_live_head(2, TS_LIVE_END, 0, 0);
		to[1] = ts_counter_read(writer->clock);
		agent_commit(writer, 16);
	}
	errno = saved_errno;
}

static void emit_step(struct ts_tracer *tracer, struct core *core, int64_t number)
{
	struct writer *writer = agent_enter(tracer, core, agent_find_writer(tracer), 24, true);
	uint64_t *to;

	if (!writer)
		return;
	to = agent_record_at(writer);
	to[0] = ts_live_head(3, TS_LIVE_STEP, 0, 0);
	to[1] = ts_counter_read(writer->clock);
	to[2] = (uint64_t)number;
	agent_commit(writer, 24);
}

void ts_tracer_step(struct ts_tracer *tracer, int64_t number)
{
	int saved_errno = errno;
	struct core *core;

	if (!tracer || tracer->is_off)
		return;
	core = agent_start(tracer);
	if (core) {
		struct ts_live_control *control = core->control;

		follow_windows(tracer, core, number);
		__atomic_store_n(&control->step, number, __ATOMIC_RELAXED);
		__atomic_fetch_add(&control->steps, 1, __ATOMIC_RELAXED);
		if (control->enabled & TS_LIVE_ENABLED)
			emit_step(tracer, core, number);
	}
	errno = saved_errno;
}

void ts_step(int64_t number)
{
	ts_tracer_step(&ts_process_tracer, number);
}

__thread char agent_thread_name[16] __attribute__((tls_model("initial-exec")));

/*
 * Remembers the name for rings that the thread takes later, even while events are off; stores it at
 * once while they are on.
 */
void ts_thread_name(const char *name)
{
	uint32_t length = name ? (uint32_t)strnlen(name, 255) : 0;
	uint64_t words = 2u + ts_live_string_words(length);
	struct writer *writer;
	struct core *core;
	uint64_t *to;

	memset(agent_thread_name, 0, sizeof(agent_thread_name));
	memcpy(agent_thread_name, name ? name : "",
	       length < sizeof(agent_thread_name) ? length : sizeof(agent_thread_name) - 1);
	if (!ts_enabled())
		return;
	core = agent_start(&ts_process_tracer);
	writer = core ? agent_enter(&ts_process_tracer, core, agent_writer, words * 8, false)
		      : NULL;
	if (!writer)
		return;
	to = agent_record_at(writer);
	to[0] = ts_live_head(words, TS_LIVE_THREAD_NAME, 0, 0);
	to[1] = ts_counter_read(writer->clock);
	ts_live_string_pack(to + 2, name ? name : "", length);
	agent_commit(writer, words * 8);
}
