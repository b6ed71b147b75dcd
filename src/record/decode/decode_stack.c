/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames and call stacks into rows. A stack comes as frames, outermost first, of which a thread's
 * last one mostly had the same ahead: that costs a comparison, a frame more a look into a map. Or
 * it comes as an entry of the dictionary, which names its caller's: each is looked at once in a
 * file. Entries are hostile: a caller has a smaller number, whatever they say.
 */
#include <stdio.h>
#include <stdlib.h>

#include "record/decode/decode_internal.h"

/* ---- frames ---- */

static uint32_t code_of(uint64_t frame)
{
	return (uint32_t)(frame >> 32);
}

/* The entry that names a frame's function; NULL: there is none. */
static struct encode_site *find_code(const struct encode_area *area, uint64_t frame,
				     unsigned int *ret_kind)
{
	uint32_t code = code_of(frame);
	struct encode_site *site;

	if (code - 1u >= area->site_count)
		return NULL;
	site = &area->sites[code - 1u];
	*ret_kind = site->kind;
	return site->kind >= TS_LIVE_CODE_PYTHON && site->kind <= TS_LIVE_CODE_DEVICE &&
			       site->kind != TS_LIVE_CODE_STACK
		       ? site
		       : NULL;
}

static bool is_unnamed(const struct encode_area *area, uint64_t frame)
{
	unsigned int kind;

	return code_of(frame) != TS_LIVE_FRAMES_LEFT_OUT && !find_code(area, frame, &kind);
}

/*
 * First line of the function that an entry of native code names, 0: not known; of a stack its
 * caller.
 */
static uint32_t line_of(const struct encode_area *area, const struct encode_site *site)
{
	struct ts_live_site about;

	memcpy(&about, area->dictionary.data + site->offset, sizeof(about));
	return about.line;
}

static uint32_t special_frame(struct ts_encoder *encoder, struct encode_area *area, uint64_t frame)
{
	struct ts_frame_row row = ts_frame_none;
	char text[64] = "(name not stored)";

	if (code_of(frame) == TS_LIVE_FRAMES_LEFT_OUT)
		snprintf(text, sizeof(text), "(%u frames left out)", (uint32_t)frame);
	else
		area->has_unnamed = true;
	row.name = encode_text(encoder, text);
	return ts_writer_frame(encoder->writer, &row);
}

static uint32_t add_mapping(struct ts_encoder *encoder, struct encode_area *area,
			    struct ts_mapping_row *row)
{
	int64_t id;

	if (area->process && area->process->epoch != encoder->epoch)
		encode_write_process(encoder, area->process);
	row->process = area->process ? area->process->id : 0;
	id = ts_writer_new_id(encoder->writer, TS_TABLE_MAPPING);
	ts_writer_add(encoder->writer, TS_TABLE_MAPPING, row, NULL);
	return (uint32_t)id;
}

/* A file with native code, where it is mapped. */
static uint32_t module_mapping(struct ts_encoder *encoder, struct encode_area *area,
			       const struct encode_site *site)
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
	return add_mapping(encoder, area, &row);
}

/* Code of a device, by what its module is called: several functions are of one. */
static uint32_t device_mapping(struct ts_encoder *encoder, struct encode_area *area,
			       const struct encode_site *site)
{
	struct ts_mapping_row row = ts_mapping_none;
	uint64_t known, process = area->process ? (uint64_t)area->process->id : 0;

	if (!site->category)
		return 0;
	if (ts_pairmap_get(&encoder->device_modules, process, site->category, &known))
		return (uint32_t)known;
	row.path = site->category;
	known = add_mapping(encoder, area, &row);
	if (ts_pairmap_put(&encoder->device_modules, process, site->category, known))
		encode_no_memory(encoder);
	return (uint32_t)known;
}

static void resolve_code(struct ts_encoder *encoder, struct encode_area *area,
			 struct encode_site *site)
{
	encode_resolve_site(encoder, area, site);
	if (site->kind == TS_LIVE_CODE_MODULE)
		site->row = module_mapping(encoder, area, site);
	else if (site->kind == TS_LIVE_CODE_DEVICE)
		site->row = device_mapping(encoder, area, site);
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

/* Of these the frame has no line, but an address. */
static bool has_address(unsigned int code)
{
	return code == TS_LIVE_CODE_NATIVE || code == TS_LIVE_CODE_MODULE ||
	       code == TS_LIVE_CODE_DEVICE;
}

static uint32_t make_frame(struct ts_encoder *encoder, struct encode_area *area, uint64_t frame)
{
	struct ts_frame_row row = ts_frame_none;
	unsigned int kind;
	struct encode_site *site = find_code(area, frame, &kind);
	uint32_t line = (uint32_t)frame;

	if (!site)
		return special_frame(encoder, area, frame);
	if (!site->resolved)
		resolve_code(encoder, area, site);
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
	return ts_writer_frame(encoder->writer, &row);
}

/* ---- stacks ---- */

/* A stack and one frame more; the stack itself, where a file has too many. */
static uint32_t make_step(struct ts_encoder *encoder, struct encode_area *area,
			  struct encode_ring *ring, uint32_t parent, uint64_t frame, int64_t ns)
{
	uint32_t stack;

	if (encoder->stack_count >= ENCODE_STACKS) {
		encode_lose(encoder, ring, LOSS_TOO_MANY_STACKS, 1, ns, ns);
		return parent;
	}
	stack = ts_writer_stack(encoder->writer, parent, make_frame(encoder, area, frame));
	if (stack > encoder->newest_stack) {
		encoder->newest_stack = stack;
		encoder->stack_count++;
	}
	/* A map of those in use; what is forgotten is found again by the writer. */
	if (ts_pairmap_count(&area->steps) >= ENCODE_STEPS)
		ts_pairmap_clear(&area->steps);
	if (ts_pairmap_put(&area->steps, parent, frame, stack))
		encode_no_memory(encoder);
	return stack;
}

/* What is known of a thread's last stack. NULL: there is no memory for that, or it had none. */
static struct encode_memo *memo_of(struct ts_encoder *encoder, const struct encode_area *area,
				   struct encode_thread *thread)
{
	struct encode_memo *memo = thread->memo;

	if (!memo && encoder->memo_bytes + sizeof(*memo) <= ENCODE_MEMO_BYTES) {
		memo = thread->memo = calloc(1, sizeof(*memo));
		if (!memo)
			return NULL;
		memo->total_bytes = &encoder->memo_bytes;
		encoder->memo_bytes += sizeof(*memo);
	}
	if (memo && (memo->area != area->id || memo->epoch != encoder->epoch)) {
		memo->area = area->id;
		memo->epoch = encoder->epoch;
		memo->count = 0;
	}
	return memo;
}

static uint64_t count_same(const struct encode_memo *memo, const uint64_t *frames, uint64_t count)
{
	uint64_t same = 0, most = TS_MIN(count, (uint64_t)memo->count);

	while (same < most && memo->frames[same] == frames[same])
		same++;
	return same;
}

/* Each sample with such frames says how many it has. */
static void count_unnamed(struct ts_encoder *encoder, const struct encode_area *area,
			  struct encode_ring *ring, const struct encode_event *event)
{
	uint64_t unnamed = 0;

	for (uint64_t i = 0; i < event->frame_count; i++)
		unnamed += is_unnamed(area, event->frames[i]);
	encode_lose(encoder, ring, LOSS_UNNAMED_FRAME, unnamed, event->ns, event->ns);
}

/* A stack and one frame more, mostly one that is known. */
static inline uint32_t step(struct ts_encoder *encoder, struct encode_area *area,
			    struct encode_ring *ring, uint32_t parent, uint64_t frame, int64_t ns)
{
	uint64_t known;

	if (TS_LIKELY(ts_pairmap_get(&area->steps, parent, frame, &known)))
		return (uint32_t)known;
	return make_step(encoder, area, ring, parent, frame, ns);
}

uint32_t encode_frames(struct ts_encoder *encoder, struct encode_area *area,
		       struct encode_ring *ring, struct encode_thread *thread,
		       const struct encode_event *event)
{
	struct encode_memo *memo = memo_of(encoder, area, thread);
	uint64_t at = memo ? count_same(memo, event->frames, event->frame_count) : 0;
	uint32_t stack = at ? memo->stacks[at - 1] : 0;

	if (memo)
		memo->count = (uint32_t)TS_MIN(event->frame_count, ENCODE_MEMO_FRAMES);
	for (; at < event->frame_count; at++) {
		uint64_t frame = event->frames[at];

		stack = step(encoder, area, ring, stack, frame, event->ns);
		if (memo && at < ENCODE_MEMO_FRAMES) {
			memo->frames[at] = frame;
			memo->stacks[at] = stack;
		}
	}
	if (TS_UNLIKELY(area->has_unnamed))
		count_unnamed(encoder, area, ring, event);
	return stack;
}

/* ---- stacks that are entries of the dictionary ---- */

static struct encode_site *find_stack(const struct encode_area *area, uint64_t number)
{
	struct encode_site *site;

	if (number - 1u >= area->site_count)
		return NULL;
	site = &area->sites[number - 1u];
	return site->kind == TS_LIVE_CODE_STACK ? site : NULL;
}

/* An entry whose caller (NULL: it has none) is in the file. */
static void resolve_step(struct ts_encoder *encoder, struct encode_area *area,
			 struct encode_ring *ring, const struct encode_site *caller,
			 struct encode_site *site, int64_t ns)
{
	uint64_t frame;

	memcpy(&frame, area->dictionary.data + site->offset + sizeof(struct ts_live_site),
	       sizeof(frame));
	site->resolved = true;
	site->depth = caller ? caller->depth : 0;
	site->unnamed = caller ? caller->unnamed : 0;
	site->row = caller ? caller->row : 0;
	if (site->depth >= ENCODE_STACK_DEPTH) {
		encode_lose(encoder, ring, LOSS_TOO_MANY_STACKS, 1, ns, ns);
		return;
	}
	site->depth++;
	site->unnamed = (uint16_t)(site->unnamed + is_unnamed(area, frame));
	site->row = step(encoder, area, ring, site->row, frame, ns);
}

/* From the innermost frame out to one that is known, then back in: stacks may be deep. */
static void resolve_stack(struct ts_encoder *encoder, struct encode_area *area,
			  struct encode_ring *ring, uint32_t number, int64_t ns)
{
	struct encode_site *site = find_stack(area, number);
	size_t depth = 0;

	while (site && !site->resolved) {
		uint32_t caller = line_of(area, site);

		if (ts_grow_array((void **)&encoder->path, &encoder->path_capacity, depth + 1,
				  sizeof(*encoder->path))) {
			encode_no_memory(encoder);
			return;
		}
		encoder->path[depth++] = number;
		if (caller && (caller >= number || !find_stack(area, caller))) {
			encode_lose(encoder, ring, LOSS_MISSING_STACK, 1, ns, ns);
			caller = 0;
		}
		number = caller;
		site = find_stack(area, number);
	}
	while (depth) {
		struct encode_site *next = &area->sites[encoder->path[--depth] - 1];

		resolve_step(encoder, area, ring, site, next, ns);
		site = next;
	}
}

uint32_t encode_stack(struct ts_encoder *encoder, struct encode_area *area,
		      struct encode_ring *ring, uint64_t number, int64_t ns)
{
	struct encode_site *site;

	if (!number)
		return 0;
	site = find_stack(area, number);
	if (TS_UNLIKELY(!site)) {
		encode_lose(encoder, ring, LOSS_MISSING_STACK, 1, ns, ns);
		return 0;
	}
	if (TS_UNLIKELY(!site->resolved))
		resolve_stack(encoder, area, ring, (uint32_t)number, ns);
	if (TS_UNLIKELY(site->unnamed))
		encode_lose(encoder, ring, LOSS_UNNAMED_FRAME, site->unnamed, ns, ns);
	return site->row;
}

uint32_t encode_any_stack(struct ts_encoder *encoder, struct encode_area *area,
			  struct encode_ring *ring, struct encode_thread *thread,
			  const struct encode_event *event)
{
	if (event->stack)
		return encode_stack(encoder, area, ring, event->stack, event->ns);
	return encode_frames(encoder, area, ring, thread, event);
}

void encode_stacks_move(struct ts_encoder *encoder)
{
	for (size_t i = 0; i < encoder->area_count; i++)
		ts_pairmap_clear(&encoder->areas[i]->steps);
	ts_pairmap_clear(&encoder->device_modules);
	encoder->stack_count = encoder->newest_stack = 0;
}
