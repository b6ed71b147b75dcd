/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes frames and call stacks. A stack comes as frames, outermost first, usually with a prefix
 * in common with the thread's previous stack: a comparison for the prefix, a map lookup for each
 * further frame. Or it comes as a dictionary entry that refers to its caller's entry; each entry is
 * resolved once per file. Entries are untrusted: a caller must have a smaller number.
 */
#include <stdio.h>
#include <stdlib.h>

#include "record/decode/decode_internal.h"

/* ---- frames ---- */

/* The dictionary entry of a frame's function; NULL: none. */
static struct decode_site *find_code(const struct decode_area *area, uint64_t frame,
				     unsigned int *ret_kind)
{
	uint32_t code = ts_live_frame_entry(frame);
	struct decode_site *site;

	if (code - 1u >= area->site_count)
		return NULL;
	site = &area->sites[code - 1u];
	*ret_kind = site->kind;
	return site->kind >= TS_LIVE_CODE_PYTHON && site->kind <= TS_LIVE_CODE_DEVICE &&
			       site->kind != TS_LIVE_CODE_STACK
		       ? site
		       : NULL;
}

static bool is_unnamed(const struct decode_area *area, uint64_t frame)
{
	unsigned int kind;

	return ts_live_frame_entry(frame) != TS_LIVE_FRAMES_LEFT_OUT &&
	       !find_code(area, frame, &kind);
}

/*
 * The `line` of an entry: for native code the function's first line, 0: unknown; for a stack its
 * caller.
 */
static uint32_t line_of(const struct decode_area *area, const struct decode_site *site)
{
	struct ts_live_site about;

	memcpy(&about, area->dictionary.data + site->offset, sizeof(about));
	return about.line;
}

static uint32_t special_frame(struct ts_decoder *decoder, struct decode_area *area, uint64_t frame)
{
	struct ts_frame_row row = ts_frame_none;
	char text[64] = "(name not stored)";

	if (ts_live_frame_entry(frame) == TS_LIVE_FRAMES_LEFT_OUT)
		snprintf(text, sizeof(text), "(%u frames left out)", (uint32_t)frame);
	else
		area->has_unnamed = true;
	row.name = decode_text(decoder, text);
	return ts_writer_frame(decoder->writer, &row);
}

static uint32_t add_mapping(struct ts_decoder *decoder, struct decode_area *area,
			    struct ts_mapping_row *row)
{
	int64_t id;

	if (area->process && area->process->epoch != decoder->epoch)
		decode_write_process(decoder, area->process);
	row->process = area->process ? area->process->id : 0;
	id = ts_writer_new_id(decoder->writer, TS_TABLE_MAPPING);
	ts_writer_add(decoder->writer, TS_TABLE_MAPPING, row, NULL);
	return (uint32_t)id;
}

/* The mapping of a file with native code. */
static uint32_t module_mapping(struct ts_decoder *decoder, struct decode_area *area,
			       const struct decode_site *site)
{
	const char *entry = area->dictionary.data + site->offset;
	struct ts_mapping_row row = ts_mapping_none;
	struct ts_live_module module;
	struct ts_live_site about;
	size_t at;

	memcpy(&about, entry, sizeof(about));
	at = sizeof(about) + (size_t)about.name_bytes + about.category_bytes;
	at = (at + 7) & ~(size_t)7;
	row.path = site->name;
	row.build_id = site->category;
	if (!about.fields && at + sizeof(module) <= about.bytes) {
		memcpy(&module, entry + at, sizeof(module));
		row.address = (int64_t)module.start;
		row.bytes = module.bytes <= INT64_MAX ? (int64_t)module.bytes : TS_ABSENT;
	}
	return add_mapping(decoder, area, &row);
}

/* The mapping of device code, by module name: functions of a module share it. */
static uint32_t device_mapping(struct ts_decoder *decoder, struct decode_area *area,
			       const struct decode_site *site)
{
	struct ts_mapping_row row = ts_mapping_none;
	uint64_t known, process = area->process ? (uint64_t)area->process->id : 0;

	if (!site->category)
		return 0;
	if (ts_pairmap_get(&decoder->device_modules, process, site->category, &known))
		return (uint32_t)known;
	row.path = site->category;
	known = add_mapping(decoder, area, &row);
	if (ts_pairmap_put(&decoder->device_modules, process, site->category, known))
		decode_no_memory(decoder);
	return (uint32_t)known;
}

static void resolve_code(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_site *site)
{
	decode_resolve_site(decoder, area, site);
	if (site->kind == TS_LIVE_CODE_MODULE)
		site->row = module_mapping(decoder, area, site);
	else if (site->kind == TS_LIVE_CODE_DEVICE)
		site->row = device_mapping(decoder, area, site);
}

static enum ts_frame_kind kind_of(unsigned int code)
{
	switch (code) {
	case TS_LIVE_CODE_PYTHON:
		return TS_FRAME_PYTHON;
	case TS_LIVE_CODE_NATIVE:
	case TS_LIVE_CODE_MODULE:
		return TS_FRAME_NATIVE;
	case TS_LIVE_CODE_DEVICE:
		return TS_FRAME_INSTRUCTION;
	default:
		return TS_FRAME_SCRIPT;
	}
}

/* True if frames of this kind have an address instead of a line. */
static bool has_address(unsigned int code)
{
	return code == TS_LIVE_CODE_NATIVE || code == TS_LIVE_CODE_MODULE ||
	       code == TS_LIVE_CODE_DEVICE;
}

static uint32_t make_frame(struct ts_decoder *decoder, struct decode_area *area, uint64_t frame)
{
	struct ts_frame_row row = ts_frame_none;
	unsigned int kind;
	struct decode_site *site = find_code(area, frame, &kind);
	uint32_t line = (uint32_t)frame;

	if (!site)
		return special_frame(decoder, area, frame);
	if (!site->resolved)
		resolve_code(decoder, area, site);
	row.kind = kind_of(kind);
	row.mapping = site->row;
	if (kind != TS_LIVE_CODE_MODULE)
		row.name = site->name;
	if (!row.mapping)
		row.file = site->category;
	if (has_address(kind)) {
		row.pc = line;
		line = kind == TS_LIVE_CODE_NATIVE ? line_of(area, site) : 0;
	}
	if (line)
		row.line = line;
	return ts_writer_frame(decoder->writer, &row);
}

/* ---- stacks ---- */

/* Adds a stack with one more frame; returns the stack itself if the file has too many. */
static uint32_t make_step(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_ring *ring, uint32_t parent, uint64_t frame, int64_t ns)
{
	uint32_t stack;

	if (decoder->stack_count >= DECODE_STACKS) {
		decode_lose(decoder, ring, LOSS_TOO_MANY_STACKS, 1, ns, ns);
		return parent;
	}
	stack = ts_writer_stack(decoder->writer, parent, make_frame(decoder, area, frame));
	if (stack > decoder->newest_stack) {
		decoder->newest_stack = stack;
		decoder->stack_count++;
	}
	/* Only a cache: the writer finds forgotten steps again. */
	if (ts_pairmap_count(&area->steps) >= DECODE_STEPS)
		ts_pairmap_clear(&area->steps);
	if (ts_pairmap_put(&area->steps, parent, frame, stack))
		decode_no_memory(decoder);
	return stack;
}

/* The memo of a thread's last stack. NULL: no memory, or the limit is reached. */
static struct decode_memo *memo_of(struct ts_decoder *decoder, const struct decode_area *area,
				   struct decode_thread *thread)
{
	struct decode_memo *memo = thread->memo;

	if (!memo && decoder->memo_bytes + sizeof(*memo) <= DECODE_MEMO_BYTES) {
		memo = thread->memo = calloc(1, sizeof(*memo));
		if (!memo)
			return NULL;
		memo->total_bytes = &decoder->memo_bytes;
		decoder->memo_bytes += sizeof(*memo);
	}
	if (memo && (memo->area != area->id || memo->epoch != decoder->epoch)) {
		memo->area = area->id;
		memo->epoch = decoder->epoch;
		memo->count = 0;
	}
	return memo;
}

static uint64_t count_same(const struct decode_memo *memo, const uint64_t *frames, uint64_t count)
{
	uint64_t same = 0, most = TS_MIN(count, (uint64_t)memo->count);

	while (same < most && memo->frames[same] == frames[same])
		same++;
	return same;
}

/* Counts frames without a name, for each sample. */
static void count_unnamed(struct ts_decoder *decoder, const struct decode_area *area,
			  struct decode_ring *ring, const struct decode_event *event)
{
	uint64_t unnamed = 0;

	for (uint64_t i = 0; i < event->frame_count; i++)
		unnamed += is_unnamed(area, event->frames[i]);
	decode_lose(decoder, ring, LOSS_UNNAMED_FRAME, unnamed, event->ns, event->ns);
}

/* A stack with one more frame, usually a known one. */
static inline uint32_t step(struct ts_decoder *decoder, struct decode_area *area,
			    struct decode_ring *ring, uint32_t parent, uint64_t frame, int64_t ns)
{
	uint64_t known;

	if (TS_LIKELY(ts_pairmap_get(&area->steps, parent, frame, &known)))
		return (uint32_t)known;
	return make_step(decoder, area, ring, parent, frame, ns);
}

uint32_t decode_frames(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_ring *ring, struct decode_thread *thread,
		       const struct decode_event *event)
{
	struct decode_memo *memo = memo_of(decoder, area, thread);
	uint64_t at = memo ? count_same(memo, event->frames, event->frame_count) : 0;
	uint32_t stack = at ? memo->stacks[at - 1] : 0;

	if (memo)
		memo->count = (uint32_t)TS_MIN(event->frame_count, DECODE_MEMO_FRAMES);
	for (; at < event->frame_count; at++) {
		uint64_t frame = event->frames[at];

		stack = step(decoder, area, ring, stack, frame, event->ns);
		if (memo && at < DECODE_MEMO_FRAMES) {
			memo->frames[at] = frame;
			memo->stacks[at] = stack;
		}
	}
	if (TS_UNLIKELY(area->has_unnamed))
		count_unnamed(decoder, area, ring, event);
	return stack;
}

/* ---- stacks as dictionary entries ---- */

static struct decode_site *find_stack(const struct decode_area *area, uint64_t number)
{
	struct decode_site *site;

	if (number - 1u >= area->site_count)
		return NULL;
	site = &area->sites[number - 1u];
	return site->kind == TS_LIVE_CODE_STACK ? site : NULL;
}

/* Resolves an entry whose caller (NULL: none) is already resolved. */
static void resolve_step(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_ring *ring, const struct decode_site *caller,
			 struct decode_site *site, int64_t ns)
{
	uint64_t frame;

	memcpy(&frame, area->dictionary.data + site->offset + sizeof(struct ts_live_site),
	       sizeof(frame));
	site->resolved = true;
	site->depth = caller ? caller->depth : 0;
	site->unnamed = caller ? caller->unnamed : 0;
	site->row = caller ? caller->row : 0;
	if (site->depth >= DECODE_STACK_DEPTH) {
		decode_lose(decoder, ring, LOSS_TOO_MANY_STACKS, 1, ns, ns);
		return;
	}
	site->depth++;
	site->unnamed = (uint16_t)(site->unnamed + is_unnamed(area, frame));
	site->row = step(decoder, area, ring, site->row, frame, ns);
}

/* Walks out to a resolved frame, then back in. Not recursive: stacks may be deep. */
static void resolve_stack(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_ring *ring, uint32_t number, int64_t ns)
{
	struct decode_site *site = find_stack(area, number);
	size_t depth = 0;

	while (site && !site->resolved) {
		uint32_t caller = line_of(area, site);

		if (ts_grow_array((void **)&decoder->path, &decoder->path_capacity, depth + 1,
				  sizeof(*decoder->path))) {
			decode_no_memory(decoder);
			return;
		}
		decoder->path[depth++] = number;
		if (caller && (caller >= number || !find_stack(area, caller))) {
			decode_lose(decoder, ring, LOSS_MISSING_STACK, 1, ns, ns);
			caller = 0;
		}
		number = caller;
		site = find_stack(area, number);
	}
	while (depth) {
		struct decode_site *next = &area->sites[decoder->path[--depth] - 1];

		resolve_step(decoder, area, ring, site, next, ns);
		site = next;
	}
}

uint32_t decode_stack(struct ts_decoder *decoder, struct decode_area *area,
		      struct decode_ring *ring, uint64_t number, int64_t ns)
{
	struct decode_site *site;

	if (!number)
		return 0;
	site = find_stack(area, number);
	if (TS_UNLIKELY(!site)) {
		decode_lose(decoder, ring, LOSS_MISSING_STACK, 1, ns, ns);
		return 0;
	}
	if (TS_UNLIKELY(!site->resolved))
		resolve_stack(decoder, area, ring, (uint32_t)number, ns);
	if (TS_UNLIKELY(site->unnamed))
		decode_lose(decoder, ring, LOSS_UNNAMED_FRAME, site->unnamed, ns, ns);
	return site->row;
}

uint32_t decode_any_stack(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_ring *ring, struct decode_thread *thread,
			  const struct decode_event *event)
{
	if (event->stack)
		return decode_stack(decoder, area, ring, event->stack, event->ns);
	return decode_frames(decoder, area, ring, thread, event);
}

void decode_stacks_move(struct ts_decoder *decoder)
{
	for (size_t i = 0; i < decoder->area_count; i++)
		ts_pairmap_clear(&decoder->areas[i]->steps);
	ts_pairmap_clear(&decoder->device_modules);
	decoder->stack_count = decoder->newest_stack = 0;
}
