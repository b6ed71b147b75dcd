/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements <tracesmith/sample.h>: registers functions in the dictionary and stores stack samples
 * in the calling thread's ring. Samplers call this up to some hundred thousand times a second, so
 * the common case is one copy.
 */
#include <tracesmith/sample.h>

#include <errno.h>
#include <string.h>

#include "agent/emit.h"
#include "agent/emit_inline.h"
#include "agent/tracer.h"

#define SUBJECT_WORDS TS_LIVE_WORDS(struct ts_live_subject)
#define SAMPLE_WORDS TS_LIVE_WORDS(struct ts_live_sample)
#define FIXED_WORDS (SUBJECT_WORDS + SAMPLE_WORDS)

static_assert(TS_SAMPLE_FRAMES == TS_LIVE_FRAMES, "what a record holds");
static_assert(TS_CODE_PYTHON == (int)TS_LIVE_CODE_PYTHON &&
		      TS_CODE_NATIVE == (int)TS_LIVE_CODE_NATIVE &&
		      TS_CODE_SCRIPT == (int)TS_LIVE_CODE_SCRIPT,
	      "kinds of entries");

uint32_t ts_code(enum ts_code_kind kind, const char *name, const char *file, uint32_t first_line)
{
	struct core *core = agent_start(&ts_process_tracer);

	return core ? agent_register_code(core, kind, name, file, first_line) : 0;
}

static struct ts_live_subject process_subject(int32_t pid, uint64_t start_time)
{
	return (struct ts_live_subject){ .pid = (uint32_t)pid,
					 .device_kind = ts_live_device_kind(0, TS_METRICS_PROCESS),
					 .start_time = start_time };
}

/* Fills the payload; returns its words. */
static unsigned int fill_fixed(const struct ts_sample *sample, uint64_t *fixed)
{
	unsigned int count = 0;

	if (sample->pid) {
		*(struct ts_live_subject *)(void *)fixed =
			process_subject(sample->pid, sample->start_time);
		count = SUBJECT_WORDS;
	}
	*(struct ts_live_sample *)(void *)(fixed + count) = (struct ts_live_sample){
		.tid = sample->tid, .state = sample->state, .weight_ns = (uint64_t)sample->weight_ns
	};
	return count + SAMPLE_WORDS;
}

static uint8_t flags_of(const struct ts_sample *sample)
{
	return sample->pid ? TS_LIVE_FLAG_STACK | TS_LIVE_FLAG_SUBJECT : TS_LIVE_FLAG_STACK;
}

static struct agent_stack stack_of(const struct ts_sample *sample)
{
	return (struct agent_stack){ sample->frames, sample->frames ? sample->count : 0 };
}

/* Fast path: no arguments, a registered site, a ring with space. */
static bool put_at_once(const struct ts_emit_site *site, const struct ts_sample *sample)
{
	uint64_t header = __atomic_load_n(&site->header, __ATOMIC_ACQUIRE);
	struct agent_stack stack = stack_of(sample);
	struct writer *writer = agent_writer;
	unsigned int open = agent_open_value(writer);
	uint64_t words = 2u + (sample->pid ? FIXED_WORDS : SAMPLE_WORDS) + 1 + stack.count;
	uint64_t *to;
	char *at;

	if (!header || stack.count > TS_LIVE_FRAMES || !hot_enter(writer, open, words * 8, &at))
		return false;
	to = (uint64_t *)(void *)at;
	*to++ = ts_live_head_replace(header, words, flags_of(sample));
	*to++ = sample->time ? sample->time : ts_counter_read(writer->clock);
	to += fill_fixed(sample, to);
	agent_put_stack(to, &stack, 1 + stack.count);
	hot_commit(writer, open, at, words * 8);
	return true;
}

/* True if the arguments are those of the site. */
static bool matches(const struct ts_emit_site *site, const struct ts_emit_arg *args,
		    unsigned int count)
{
	if (count != site->field_count)
		return false;
	for (unsigned int i = 0; i < count; i++)
		if (site->fields[i].type != args[i].type)
			return false;
	return true;
}

static void put_known(struct core *core, const struct ts_emit_site *site,
		      const struct ts_sample *sample, const struct ts_emit_arg *args)
{
	struct agent_stack stack = stack_of(sample);
	uint64_t fixed[FIXED_WORDS], values[TS_LIVE_FIELDS];
	struct agent_site_event event = { .site = site,
					  .flags = flags_of(sample),
					  .fixed_count = (uint8_t)fill_fixed(sample, fixed),
					  .fixed = fixed,
					  .values = values,
					  .counter = sample->time,
					  .stack = &stack };

	static_assert(sizeof(args->value) == sizeof(values[0]), "a word each");
	for (unsigned int i = 0; i < site->field_count; i++)
		memcpy(&values[i], &args[i].value, sizeof(values[i]));
	agent_emit_site(core, &event);
}

static void put_dynamic(struct core *core, const struct ts_emit_site *site,
			const struct ts_sample *sample, const struct ts_emit_arg *args,
			unsigned int count)
{
	struct agent_stack stack = stack_of(sample);
	uint64_t fixed[FIXED_WORDS];
	struct agent_event event = { .kind = TS_LIVE_SAMPLE,
				     .flags = flags_of(sample),
				     .fixed_count = (uint8_t)fill_fixed(sample, fixed),
				     .fixed = fixed,
				     .name = site->name,
				     .category = site->category,
				     .args = args,
				     .arg_count = count,
				     .counter = sample->time,
				     .stack = &stack };

	agent_emit(&ts_process_tracer, core, &event);
}

/*
 * Device samples arrive after the work is done, perhaps after its window: the caller has checked
 * ts_enabled() before.
 */
static bool is_late(const struct ts_sample *sample)
{
	return sample->state & TS_SAMPLE_ON_DEVICE;
}

void ts_sample(struct ts_emit_site *site, const struct ts_sample *sample,
	       const struct ts_emit_arg *args, unsigned int count)
{
	int saved_errno = errno;
	struct core *core;

	if (sample->size < sizeof(*sample) || (!ts_enabled() && !is_late(sample)))
		return;
	if (AGENT_LIKELY(!count && !site->field_count) && put_at_once(site, sample))
		return;
	core = agent_start(&ts_process_tracer);
	if (core &&
	    (is_late(sample) ||
	     (__atomic_load_n(&core->control->enabled, __ATOMIC_RELAXED) & TS_LIVE_ENABLED))) {
		if (matches(site, args, count) &&
		    (__atomic_load_n(&site->header, __ATOMIC_ACQUIRE) ||
		     agent_register_site(core, site)))
			put_known(core, site, sample, args);
		else
			put_dynamic(core, site, sample, args, count);
	}
	errno = saved_errno;
}

void ts_sample_thread(int32_t pid, uint64_t start_time, uint32_t tid, const char *name)
{
	struct ts_live_thread_of fixed = { .subject = process_subject(pid, start_time),
					   .tid = tid };
	struct agent_note note = { .kind = TS_LIVE_THREAD_OF,
				   .fixed_bytes = sizeof(fixed),
				   .fixed = &fixed,
				   .text_count = 1,
				   .texts = { name } };

	agent_emit_note(&ts_process_tracer, &note);
}
