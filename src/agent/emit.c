/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emit path: call site to ring. The first half is hot: a few loads and stores. Must not call
 * anything that may block, allocate or take a lock, except through agent_ring_alloc().
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "agent/agent_python.h"
#include "agent/emit.h"
#include "agent/emit_inline.h"
#include "agent/tracer.h"

/* The writer of threads before their first event; never open. */
static struct writer no_writer;

__thread struct writer *agent_writer __attribute__((tls_model("initial-exec"))) = &no_writer;

uint32_t agent_python_requested;

struct writer *agent_no_writer(void)
{
	return &no_writer;
}

/* ---- hot path ---- */

/* The counter as the processor returns it. */
struct stamp {
#if defined(__x86_64__)
	uint32_t low, high; /* stored separately, not joined in a register */
#else
	uint64_t counter;
#endif
};

static inline struct stamp read_stamp(void)
{
	struct stamp stamp;

#if defined(__x86_64__)
	__asm__ volatile("rdtsc" : "=a"(stamp.low), "=d"(stamp.high));
#else
	stamp.counter = ts_counter_raw();
#endif
	return stamp;
}

static inline void put_stamp(char *at, struct stamp stamp)
{
#if defined(__x86_64__)
	memcpy(at, &stamp.low, 4);
	memcpy(at + 4, &stamp.high, 4);
#else
	memcpy(at, &stamp.counter, 8);
#endif
}

/*
 * Reads the counter after entering the writer: code after the read waits for it, code before it
 * overlaps with it (2 ns per event, measured).
 */
static inline void begin_record(char *at, uint64_t header)
{
	struct stamp stamp = read_stamp();

	memcpy(at, &header, 8);
	put_stamp(at + 8, stamp);
}

static void emit_0_slowly(struct ts_emit_site *site);
static void emit_1_slowly(struct ts_emit_site *site, uint64_t word);
static void emit_2_slowly(struct ts_emit_site *site, uint64_t first, uint64_t second);

void ts_emit_0(struct ts_emit_site *site)
{
	uint64_t header = __atomic_load_n(&site->header, __ATOMIC_ACQUIRE);
	struct writer *writer = agent_writer;
	char *at;

	if (AGENT_LIKELY(header && hot_enter(writer, WRITER_HOT, 16, &at))) {
		begin_record(at, header);
		hot_commit(writer, WRITER_HOT, at, 16);
		return;
	}
	emit_0_slowly(site);
}

void ts_emit_1(struct ts_emit_site *site, uint64_t word)
{
	uint64_t header = __atomic_load_n(&site->header, __ATOMIC_ACQUIRE);
	struct writer *writer = agent_writer;
	char *at;

	if (AGENT_LIKELY(header && hot_enter(writer, WRITER_HOT, 24, &at))) {
		begin_record(at, header);
		memcpy(at + 16, &word, 8);
		hot_commit(writer, WRITER_HOT, at, 24);
		return;
	}
	emit_1_slowly(site, word);
}

void ts_emit_2(struct ts_emit_site *site, uint64_t first, uint64_t second)
{
	uint64_t header = __atomic_load_n(&site->header, __ATOMIC_ACQUIRE);
	struct writer *writer = agent_writer;
	char *at;

	if (AGENT_LIKELY(header && hot_enter(writer, WRITER_HOT, 32, &at))) {
		begin_record(at, header);
		memcpy(at + 16, &first, 8);
		memcpy(at + 24, &second, 8);
		hot_commit(writer, WRITER_HOT, at, 32);
		return;
	}
	emit_2_slowly(site, first, second);
}

/* ---- records of any shape ---- */

struct writer *agent_enter(struct ts_tracer *tracer, struct core *core, struct writer *writer,
			   uint64_t bytes, bool counts)
{
	char *at;

	/* A handler may use up the space before we enter; limit the retries. */
	for (int attempt = 0; attempt < 16; attempt++) {
		writer = agent_ring_alloc(tracer, core, writer, bytes, counts);
		if (!writer)
			return NULL;
		if (hot_enter(writer, agent_open_value(writer), bytes, &at))
			return writer;
	}
	if (counts)
		agent_count_lost(core);
	return NULL;
}

void agent_commit(struct writer *writer, uint64_t bytes)
{
	hot_commit(writer, agent_open_value(writer), writer->at, bytes);
}

uint64_t *agent_record_at(const struct writer *writer)
{
	return (uint64_t *)(void *)writer->at;
}

/* A string to be stored in a record. */
struct text {
	const char *bytes;
	uint32_t length;
	uint32_t words; /* with its length */
};

static bool is_redacted(const struct core *core)
{
	return __atomic_load_n(&core->control->redact, __ATOMIC_RELAXED);
}

/* Values of variables of the program (docs/privacy.md): redaction hides numbers, too. */
static bool is_watch(const char *category)
{
	return category && !strcmp(category, "watch");
}

static bool hides_values(const struct core *core, const char *category)
{
	return AGENT_UNLIKELY(is_redacted(core)) && is_watch(category);
}

/* Truncates a string to fit; one word of it is already reserved, `left` more are available. */
static struct text measure(const struct core *core, const char *string, bool is_argument,
			   uint64_t *left)
{
	struct text text = { string ? string : "", 0, 1 };
	uint64_t most = *left * 8 + 4;

	if (most > TS_LIVE_STRING_BYTES)
		most = TS_LIVE_STRING_BYTES;
	if (!(is_argument && is_redacted(core))) {
		text.length = (uint32_t)strnlen(text.bytes, most);
		if (text.length == most && text.bytes[most])
			__atomic_fetch_add(&core->control->strings_cut, 1, __ATOMIC_RELAXED);
	}
	text.words = ts_live_string_words(text.length);
	*left -= text.words - 1;
	return text;
}

static uint64_t *put_text(uint64_t *to, const struct text *text)
{
	return ts_live_string_pack(to, text->bytes, text->length);
}

/* Maximum words of a record in the smallest ring, so that it fits everywhere. */
static uint64_t record_words(const struct core *core)
{
	uint64_t words = core->ring_bytes / 4 / 8;

	return words < TS_LIVE_RECORD_WORDS ? words : TS_LIVE_RECORD_WORDS;
}

/* ---- stacks, at the end of a record ---- */

/* Words reserved for a stack: at most half of a record. */
static uint64_t set_aside(const struct agent_stack *stack, uint64_t record_words)
{
	return stack ? agent_stack_record_words(stack, record_words / 2) : 0;
}

uint64_t agent_stack_record_words(const struct agent_stack *stack, uint64_t left)
{
	uint64_t frames = stack->count < TS_LIVE_FRAMES ? stack->count : TS_LIVE_FRAMES;

	return 1 + (frames < left - 1 ? frames : left - 1);
}

/* Of a stack that is too deep, a third of the stored frames are the outermost ones. */
uint64_t *agent_put_stack(uint64_t *to, const struct agent_stack *stack, uint64_t words)
{
	uint64_t stored = words - 1, outer = stored, inner = 0;

	*to++ = stored;
	if (stored < stack->count) {
		outer = stored / (TS_LIVE_FRAMES / TS_LIVE_FRAMES_OUTER);
		inner = stored - outer - 1;
	}
	memcpy(to, stack->frames, outer * sizeof(*to));
	to += outer;
	if (stored < stack->count) {
		*to++ = ts_live_frame(TS_LIVE_FRAMES_LEFT_OUT,
				      (uint32_t)(stack->count - outer - inner));
		memcpy(to, stack->frames + stack->count - inner, inner * sizeof(*to));
	}
	return to + inner;
}

/* ---- registered sites ---- */

static uint64_t *put_values(const struct core *core, uint64_t *to,
			    const struct agent_site_event *event, const struct text *text)
{
	bool is_hidden = hides_values(core, event->site->category);
	const struct ts_emit_site *site = event->site;

	for (unsigned int i = 0; i < site->field_count; i++) {
		if (site->fields[i].type == TS_EMIT_STRING)
			to = put_text(to, text++);
		else
			*to++ = is_hidden ? 0 : event->values[i];
	}
	return to;
}

static inline void put_site_event(struct core *core, const struct agent_site_event *event)
{
	const struct ts_emit_site *site = event->site;
	uint64_t total = 2u + event->fixed_count, most = record_words(core), left, stack_words = 0;
	struct text texts[TS_LIVE_FIELDS];
	unsigned int text = 0;
	struct writer *writer;
	uint64_t *to;

	left = most - total - site->field_count - set_aside(event->stack, most);
	for (unsigned int i = 0; i < site->field_count; i++) {
		if (site->fields[i].type != TS_EMIT_STRING) {
			total++;
			continue;
		}
		texts[text] = measure(core, (const char *)(uintptr_t)event->values[i], true, &left);
		total += texts[text++].words;
	}
	if (event->stack)
		stack_words = agent_stack_record_words(event->stack, most - total);
	total += stack_words;
	writer = agent_enter(&ts_process_tracer, core, agent_writer, total * 8, true);
	if (!writer)
		return;
	to = agent_record_at(writer);
	*to++ = ts_live_head_replace(site->header, total, event->flags);
	*to++ = event->counter ? event->counter : ts_counter_read(writer->clock);
	for (unsigned int i = 0; i < event->fixed_count; i++)
		*to++ = event->fixed[i];
	to = put_values(core, to, event, texts);
	if (event->stack)
		agent_put_stack(to, event->stack, stack_words);
	agent_commit(writer, total * 8);
}

void agent_emit_site(struct core *core, const struct agent_site_event *event)
{
	put_site_event(core, event);
}

/* Emits a registered site with string arguments or more than two words. */
static void emit_site(struct core *core, const struct ts_emit_site *site, const uint64_t *words)
{
	struct agent_site_event event = { .site = site,
					  .flags = site->flags,
					  .fixed_count = site->leading_words,
					  .fixed = words,
					  .values = words + site->leading_words };
	struct agent_stack stack;

	if (AGENT_LIKELY(!agent_python_requested) || site->kind != TS_LIVE_INSTANT ||
	    !agent_python_take(core, AGENT_PYTHON_MARKS, &stack)) {
		put_site_event(core, &event);
		return;
	}
	event.flags |= TS_LIVE_FLAG_STACK;
	event.stack = &stack;
	put_site_event(core, &event);
	agent_python_done();
}

static void emit_slowly(struct ts_emit_site *site, const uint64_t *words);

void ts_emit_words(struct ts_emit_site *site, const uint64_t *words)
{
	struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);

	if (AGENT_LIKELY(__atomic_load_n(&site->header, __ATOMIC_ACQUIRE) && core &&
			 __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == CORE_READY))
		emit_site(core, site, words);
	else
		emit_slowly(site, words);
}

static void emit_mark(struct core *core, struct agent_event *event);

/* Emits a site in the dynamic form: the dictionary is full, or the site must not be in it. */
static void emit_unregistered(struct core *core, const struct ts_emit_site *site,
			      const uint64_t *words)
{
	struct ts_emit_arg args[TS_LIVE_FIELDS];
	const uint64_t *values = words + site->leading_words;
	struct agent_event event = { .kind = site->kind,
				     .flags = site->flags,
				     .fixed = words,
				     .fixed_count = site->leading_words,
				     .name = site->name,
				     .category = site->category,
				     .args = args,
				     .arg_count = site->field_count };

	for (unsigned int i = 0; i < site->field_count; i++) {
		args[i].key = site->fields[i].key;
		args[i].type = (enum ts_emit_type)site->fields[i].type;
		memcpy(&args[i].value, &values[i], sizeof(values[i]));
	}
	if (AGENT_UNLIKELY(agent_python_requested) && site->kind == TS_LIVE_INSTANT)
		emit_mark(core, &event);
	else
		agent_emit(&ts_process_tracer, core, &event);
}

/* The hot path stores the numbers of registered sites whether they are to be hidden or not. */
static bool is_registered(struct core *core, struct ts_emit_site *site)
{
	return __atomic_load_n(&site->header, __ATOMIC_ACQUIRE) ||
	       (!is_watch(site->category) && agent_register_site(core, site));
}

/* First event of a process, a site, a thread or a lap of the ring; or the ring is full. */
static void emit_slowly(struct ts_emit_site *site, const uint64_t *words)
{
	uint64_t header = __atomic_load_n(&site->header, __ATOMIC_ACQUIRE);
	int saved_errno;
	struct core *core;

	if (header && agent_drop(agent_writer, ts_live_head_words(header) * UINT64_C(8)))
		return;
	saved_errno = errno;
	core = agent_start(&ts_process_tracer);
	if (core &&
	    (__atomic_load_n(&core->control->enabled, __ATOMIC_RELAXED) & TS_LIVE_ENABLED)) {
		if (is_registered(core, site))
			emit_site(core, site, words);
		else
			emit_unregistered(core, site, words);
	}
	errno = saved_errno;
}

__attribute__((noinline)) static void emit_0_slowly(struct ts_emit_site *site)
{
	uint64_t none = 0;

	emit_slowly(site, &none);
}

__attribute__((noinline)) static void emit_1_slowly(struct ts_emit_site *site, uint64_t word)
{
	emit_slowly(site, &word);
}

__attribute__((noinline)) static void emit_2_slowly(struct ts_emit_site *site, uint64_t first,
						    uint64_t second)
{
	uint64_t words[2] = { first, second };

	emit_slowly(site, words);
}

/* ---- the dynamic form ---- */

/* Number of arguments that fit, and their measured texts: name, category, keys and values. */
struct layout {
	struct text texts[2 + 2 * TS_LIVE_FIELDS];
	uint64_t words, stack_words;
	unsigned int args;
};

static void lay_out(const struct core *core, const struct agent_event *event, struct layout *layout)
{
	/* Reserved: header, fixed words, argument count; a word per text and per type. */
	uint64_t most = record_words(core), left;
	unsigned int text = 0, args = event->args ? event->arg_count : 0;

	if (args > TS_LIVE_FIELDS)
		args = TS_LIVE_FIELDS;
	if (hides_values(core, event->category))
		args = 0;
	left = most - (2u + event->fixed_count + 1 + 2 + 3 * args) - set_aside(event->stack, most);
	layout->texts[text++] = measure(core, event->name, false, &left);
	layout->texts[text++] = measure(core, event->category, false, &left);
	for (unsigned int i = 0; i < args; i++) {
		layout->texts[text++] = measure(core, event->args[i].key, false, &left);
		if (event->args[i].type == TS_EMIT_STRING)
			layout->texts[text++] =
				measure(core, event->args[i].value.string, true, &left);
	}
	layout->args = args;
	layout->words = most - left - set_aside(event->stack, most);
	layout->stack_words =
		event->stack ? agent_stack_record_words(event->stack, most - layout->words) : 0;
	layout->words += layout->stack_words;
}

static void put_event(const struct writer *writer, const struct agent_event *event,
		      const struct layout *layout)
{
	const struct text *text = layout->texts;
	uint64_t *to = agent_record_at(writer);

	*to++ = ts_live_head(layout->words, event->kind, event->flags, 0);
	*to++ = event->counter ? event->counter : ts_counter_read(writer->clock);
	for (unsigned int i = 0; i < event->fixed_count; i++)
		*to++ = event->fixed[i];
	to = put_text(to, text++);
	to = put_text(to, text++);
	*to++ = layout->args;
	for (unsigned int i = 0; i < layout->args; i++) {
		const struct ts_emit_arg *arg = &event->args[i];

		*to++ = arg->type >= TS_EMIT_INT && arg->type <= TS_EMIT_BOOL ? arg->type
									      : TS_EMIT_INT;
		to = put_text(to, text++);
		if (arg->type == TS_EMIT_STRING)
			to = put_text(to, text++);
		else if (arg->type == TS_EMIT_BOOL)
			*to++ = arg->value.integer != 0;
		else
			memcpy(to++, &arg->value, sizeof(*to));
	}
	if (event->stack)
		agent_put_stack(to, event->stack, layout->stack_words);
}

void agent_emit(struct ts_tracer *tracer, struct core *core, const struct agent_event *event)
{
	struct layout layout;
	struct writer *writer;

	lay_out(core, event, &layout);
	writer = agent_enter(tracer, core, agent_find_writer(tracer), layout.words * 8, true);
	if (!writer)
		return;
	put_event(writer, event, &layout);
	agent_commit(writer, layout.words * 8);
}

/* Emits a mark with the Python stack of the thread, if there is one. */
static void emit_mark(struct core *core, struct agent_event *event)
{
	struct agent_stack stack;
	bool has_stack = agent_python_take(core, AGENT_PYTHON_MARKS, &stack);

	if (has_stack) {
		event->flags |= TS_LIVE_FLAG_STACK;
		event->stack = &stack;
	}
	agent_emit(&ts_process_tracer, core, event);
	event->stack = NULL;
	if (has_stack)
		agent_python_done();
}

/* Starts the tracer if needed, and emits if it is on. */
static void emit_event(struct ts_tracer *tracer, struct agent_event *event, int64_t track,
		       uint64_t *fixed)
{
	int saved_errno = errno;
	struct core *core;

	if (!tracer || tracer->is_off || (tracer == &ts_process_tracer && !ts_enabled()))
		return;
	core = agent_start(tracer);
	if (core &&
	    (__atomic_load_n(&core->control->enabled, __ATOMIC_RELAXED) & TS_LIVE_ENABLED)) {
		if (track != TS_TRACK_THREAD) {
			event->flags |= TS_LIVE_FLAG_TRACK;
			fixed[event->fixed_count++] = (uint64_t)track;
		}
		event->fixed = fixed;
		if (AGENT_UNLIKELY(agent_python_requested) && event->kind == TS_LIVE_INSTANT &&
		    tracer == &ts_process_tracer)
			emit_mark(core, event);
		else
			agent_emit(tracer, core, event);
	}
	errno = saved_errno;
}

void ts_tracer_span(struct ts_tracer *tracer, const char *name, const char *category,
		    int64_t start_ns, int64_t duration_ns, int64_t track,
		    const struct ts_emit_arg *args, unsigned int arg_count)
{
	uint64_t fixed[3] = { duration_ns > 0 ? (uint64_t)duration_ns : 0, (uint64_t)start_ns, 0 };
	bool has_start = start_ns != TS_TIME_NOW;
	struct agent_event event = { .kind = TS_LIVE_SPAN,
				     .flags = has_start ? TS_LIVE_FLAG_START : 0,
				     .fixed_count = has_start ? 2 : 1,
				     .name = name,
				     .category = category,
				     .args = args,
				     .arg_count = arg_count };

	emit_event(tracer, &event, track, fixed);
}

static void emit_plain(struct ts_tracer *tracer, unsigned int kind, const char *name,
		       const char *category, int64_t track, const struct ts_emit_arg *args,
		       unsigned int arg_count)
{
	struct agent_event event = { .kind = (uint8_t)kind,
				     .name = name,
				     .category = category,
				     .args = args,
				     .arg_count = arg_count };
	uint64_t fixed[1];

	emit_event(tracer, &event, track, fixed);
}

void ts_tracer_begin(struct ts_tracer *tracer, const char *name, const char *category,
		     int64_t track, const struct ts_emit_arg *args, unsigned int arg_count)
{
	emit_plain(tracer, TS_LIVE_BEGIN, name, category, track, args, arg_count);
}

void ts_tracer_end(struct ts_tracer *tracer, int64_t track)
{
	emit_plain(tracer, TS_LIVE_END, NULL, NULL, track, NULL, 0);
}

void ts_tracer_instant(struct ts_tracer *tracer, const char *name, const char *category,
		       int64_t track, const struct ts_emit_arg *args, unsigned int arg_count)
{
	emit_plain(tracer, TS_LIVE_INSTANT, name, category, track, args, arg_count);
}

void ts_tracer_counter(struct ts_tracer *tracer, const char *name, const char *category,
		       const struct ts_emit_arg *args, unsigned int arg_count)
{
	emit_plain(tracer, TS_LIVE_COUNTER, name, category, TS_TRACK_THREAD, args, arg_count);
}

/* ---- counters and devices with a subject ---- */

void ts_tracer_counter_of(struct ts_tracer *tracer, const struct ts_metrics_subject *subject,
			  const char *name, const char *category, const struct ts_emit_arg *args,
			  unsigned int arg_count)
{
	bool has_process = subject->kind == TS_METRICS_PROCESS ||
			   subject->kind == TS_METRICS_PROCESS_ON_DEVICE;
	bool has_device = subject->kind == TS_METRICS_DEVICE ||
			  subject->kind == TS_METRICS_PROCESS_ON_DEVICE;
	struct ts_live_subject about = {
		.pid = has_process ? (uint32_t)subject->pid : 0,
		.device_kind = ts_live_device_kind(has_device ? subject->device : 0, subject->kind),
		.start_time = has_process ? subject->start_time : 0,
	};
	uint64_t fixed[TS_LIVE_WORDS(about)];
	struct agent_event event = { .kind = TS_LIVE_COUNTER,
				     .flags = TS_LIVE_FLAG_SUBJECT,
				     .fixed_count = TS_LIVE_WORDS(about),
				     .name = name,
				     .category = category,
				     .args = args,
				     .arg_count = arg_count };

	memcpy(fixed, &about, sizeof(fixed));
	emit_event(tracer, &event, TS_TRACK_THREAD, fixed);
}

static void put_note(struct ts_tracer *tracer, struct core *core, const struct agent_note *note)
{
	uint64_t most = record_words(core),
		 left = most - (2u + note->fixed_bytes / 8u + note->text_count);
	struct text texts[AGENT_NOTE_TEXTS];
	struct writer *writer;
	uint64_t *to;

	for (unsigned int i = 0; i < note->text_count; i++)
		texts[i] = measure(core, note->texts[i], false, &left);
	writer = agent_enter(tracer, core, agent_find_writer(tracer), (most - left) * 8,
			     note->counts);
	if (!writer)
		return;
	to = agent_record_at(writer);
	*to++ = ts_live_head(most - left, note->kind, 0, 0);
	*to++ = ts_counter_read(writer->clock);
	if (note->fixed_bytes)
		memcpy(to, note->fixed, note->fixed_bytes);
	to += note->fixed_bytes / 8;
	for (unsigned int i = 0; i < note->text_count; i++)
		to = put_text(to, &texts[i]);
	agent_commit(writer, (most - left) * 8);
}

void agent_emit_note(struct ts_tracer *tracer, const struct agent_note *note)
{
	int saved_errno = errno;
	struct core *core;

	if (!tracer || tracer->is_off)
		return;
	core = __atomic_load_n(&tracer->core, __ATOMIC_ACQUIRE);
	if (tracer == &ts_process_tracer && !ts_enabled() &&
	    !(core && __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == CORE_READY))
		return;
	core = agent_start(tracer);
	if (core)
		put_note(tracer, core, note);
	errno = saved_errno;
}

/* Stored even while events are off: later values refer to the device. */
void ts_tracer_device(struct ts_tracer *tracer, const struct ts_metrics_device *device)
{
	struct ts_live_device fixed = { 0 };
	struct agent_note note = { .kind = TS_LIVE_DEVICE,
				   .fixed_bytes = sizeof(fixed),
				   .fixed = &fixed,
				   .text_count = 4 };

	if (!device)
		return;
	fixed.number = device->number & TS_LIVE_DEVICE_MASK;
	fixed.memory_bytes = device->memory_bytes;
	note.texts[0] = device->vendor;
	note.texts[1] = device->model;
	note.texts[2] = device->uuid;
	note.texts[3] = device->bus;
	agent_emit_note(tracer, &note);
}

uint64_t ts_now(void)
{
	return ts_counter_read(ts_counter_kind());
}
