/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements <tracesmith/torch.h>: rows of torch_trace. Paths of modules are interned in a list
 * that outlives forks, and registered in the dictionary with a module's first row.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/torch.h>

#include "agent/emit.h"
#include "agent/emit_inline.h"
#include "agent/tracer.h"
#include "base/local/rank.h"

#define BUCKETS 4096u
#define PAGE_MODULES 1024u
#define PAGES 256u

#define ROW_WORDS (2 + TS_LIVE_WORDS(struct ts_live_torch))

struct module {
	struct module *next; /* in its bucket */
	uint32_t number;
	struct ts_emit_site site; /* as if each module were a call site */
	char path[];
};

/*
 * Without a lock: a child may be forked while another thread adds a module. A module is complete
 * before it is in a bucket; a number is given out after its place is filled.
 */
static struct module *buckets[BUCKETS];
static struct module **pages[PAGES];
static uint32_t last_number;

/* ---- modules ---- */

static uint32_t bucket_of(const char *path)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 16777619u;
	return (hash ^ hash >> 16) % BUCKETS;
}

static struct module *find(struct module *module, const struct module *until, const char *path)
{
	for (; module && module != until; module = module->next)
		if (!strcmp(module->path, path))
			return module;
	return NULL;
}

/* The place of a module; NULL: too many modules, or no memory. */
static struct module **place_of(uint32_t number)
{
	struct module **page, **none = NULL;

	if (number >= PAGES * PAGE_MODULES)
		return NULL;
	page = __atomic_load_n(&pages[number / PAGE_MODULES], __ATOMIC_ACQUIRE);
	if (!page) {
		page = calloc(PAGE_MODULES, sizeof(struct module *));
		if (page &&
		    !__atomic_compare_exchange_n(&pages[number / PAGE_MODULES], &none, page, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			free(page);
			page = none;
		}
	}
	return page ? &page[number % PAGE_MODULES] : NULL;
}

static struct module *new_module(const char *path)
{
	size_t bytes = strlen(path) + 1;
	struct module *module = calloc(1, sizeof(*module) + bytes), **place;

	if (!module)
		return NULL;
	memcpy(module->path, path, bytes);
	module->site = (struct ts_emit_site){ .name = module->path,
					      .category = "",
					      .kind = TS_LIVE_TORCH,
					      .leading_words = ROW_WORDS - 2 };
	module->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
	place = place_of(module->number);
	if (!place) {
		free(module);
		return NULL;
	}
	__atomic_store_n(place, module, __ATOMIC_RELEASE);
	return module;
}

uint32_t ts_torch_module(const char *path)
{
	struct module **bucket, *first, *module, *added;
	int saved_errno = errno;

	if (!path)
		path = "";
	bucket = &buckets[bucket_of(path)];
	first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
	module = find(first, NULL, path);
	if (module)
		return module->number;
	added = new_module(path);
	errno = saved_errno;
	if (!added)
		return 0;
	do {
		/* Another thread may have added it; then two numbers have the same path. */
		module = find(first, added->next, path);
		if (module)
			return module->number;
		added->next = first;
	} while (!__atomic_compare_exchange_n(bucket, &first, added, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return added->number;
}

/* The site of a module; that of no module for unknown numbers. */
static struct ts_emit_site *site_of(uint32_t number)
{
	static struct ts_emit_site none = {
		.name = "", .category = "", .kind = TS_LIVE_TORCH, .leading_words = ROW_WORDS - 2
	};
	struct module **page, *module = NULL;

	if (number && number < PAGES * PAGE_MODULES) {
		page = __atomic_load_n(&pages[number / PAGE_MODULES], __ATOMIC_ACQUIRE);
		if (page)
			module = __atomic_load_n(&page[number % PAGE_MODULES], __ATOMIC_ACQUIRE);
	}
	return module ? &module->site : &none;
}

/* ---- rank ---- */

/* Read once: later changes of the environment are not seen. Never -1 by itself. */
static int32_t rank_of_environment(void)
{
	static int32_t known = INT32_MIN;
	int32_t rank = __atomic_load_n(&known, __ATOMIC_RELAXED);
	struct ts_rank of_self;

	if (AGENT_LIKELY(rank != INT32_MIN))
		return rank;
	rank = ts_rank_of_self(&of_self) ? (int32_t)of_self.rank : TS_TORCH_NO_RANK;
	__atomic_store_n(&known, rank, __ATOMIC_RELAXED);
	return rank;
}

/* ---- rows ---- */

static bool has(const struct ts_torch_row *row, size_t end)
{
	return row->size >= end;
}

#define HAS(row, member) has(row, offsetof(struct ts_torch_row, member) + sizeof((row)->member))

static void pack(const struct ts_torch_row *row, struct ts_live_torch *payload)
{
	uint32_t device = row->device < 0 ? TS_LIVE_DEVICE_MASK : (uint32_t)row->device;

	*payload = (struct ts_live_torch){
		.start_ns = row->start_ns,
		.duration_ns = row->duration_ns,
		.step = row->step,
		.sequence = row->seq,
		.allocated = row->allocated,
		.max_allocated = row->max_allocated,
		.cached = row->cached,
		.device_stage = ts_live_device_kind(device, row->stage),
		.rank = HAS(row, rank) ? row->rank : TS_TORCH_NO_RANK,
		.device_ns = HAS(row, device_ns) ? row->device_ns : TS_TORCH_ABSENT,
	};
	if (payload->rank < 0)
		payload->rank = rank_of_environment();
}

/* Writes into a writer that was entered. */
static uint64_t put_row(const struct writer *writer, char *at, uint64_t head,
			const struct ts_live_torch *payload)
{
	uint64_t words[ROW_WORDS] = { head, ts_counter_read(writer->clock),
				      ts_live_torch_serial(writer->index, writer->ring->head) };

	memcpy(words + 3, &payload->start_ns, sizeof(*payload) - sizeof(payload->serial));
	memcpy(at, words, sizeof(words));
	return words[2];
}

/* The dictionary is full: the record carries the path. */
static uint64_t emit_dynamic(struct core *core, const struct ts_emit_site *site,
			     const struct ts_live_torch *payload)
{
	uint32_t length = (uint32_t)strnlen(site->name, 1024);
	uint64_t words = ROW_WORDS + ts_live_string_words(length) + ts_live_string_words(0) + 1;
	struct writer *writer =
		agent_enter(&ts_process_tracer, core, agent_writer, words * 8, true);
	uint64_t serial, *to;

	if (!writer)
		return 0;
	to = agent_record_at(writer);
	serial = put_row(writer, (char *)to, ts_live_head(words, TS_LIVE_TORCH, 0, 0), payload);
	to = ts_live_string_pack(to + ROW_WORDS, site->name, length);
	to = ts_live_string_pack(to, "", 0);
	*to = 0;
	agent_commit(writer, words * 8);
	return serial;
}

static uint64_t emit(struct core *core, struct ts_emit_site *site,
		     const struct ts_live_torch *payload)
{
	struct writer *writer;
	uint64_t serial;

	if (!__atomic_load_n(&site->header, __ATOMIC_ACQUIRE) && !agent_register_site(core, site))
		return emit_dynamic(core, site, payload);
	writer = agent_enter(&ts_process_tracer, core, agent_writer, ROW_WORDS * 8, true);
	if (!writer)
		return 0;
	serial = put_row(writer, (char *)agent_record_at(writer), site->header, payload);
	agent_commit(writer, ROW_WORDS * 8);
	return serial;
}

uint64_t ts_torch_row(const struct ts_torch_row *row)
{
	struct ts_live_torch payload;
	struct ts_emit_site *site;
	struct writer *writer;
	uint64_t serial = 0;
	int saved_errno;
	struct core *core;
	char *at;

	if (!ts_enabled() || !row || !HAS(row, device))
		return 0;
	pack(row, &payload);
	site = site_of(row->module);
	writer = agent_writer;
	if (AGENT_LIKELY(__atomic_load_n(&site->header, __ATOMIC_ACQUIRE) &&
			 hot_enter(writer, WRITER_HOT, ROW_WORDS * 8, &at))) {
		serial = put_row(writer, at, site->header, &payload);
		hot_commit(writer, WRITER_HOT, at, ROW_WORDS * 8);
		return serial;
	}
	saved_errno = errno;
	core = agent_start(&ts_process_tracer);
	if (core && (__atomic_load_n(&core->control->enabled, __ATOMIC_RELAXED) & TS_LIVE_ENABLED))
		serial = emit(core, site, &payload);
	errno = saved_errno;
	return serial;
}

void ts_torch_device_time(uint64_t serial, int64_t device_ns)
{
	struct ts_live_torch_time time = { serial, device_ns };
	struct agent_note note = { .kind = TS_LIVE_TORCH_TIME,
				   .fixed_bytes = sizeof(time),
				   .fixed = &time };

	if (serial)
		agent_emit_note(&ts_process_tracer, &note);
}

uint64_t ts_torch_steps(int64_t *ret_number)
{
	struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);
	uint64_t steps;

	if (!core || __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) != CORE_READY)
		return 0;
	steps = __atomic_load_n(&core->control->steps, __ATOMIC_RELAXED);
	if (steps && ret_number)
		*ret_number = __atomic_load_n(&core->control->step, __ATOMIC_RELAXED);
	return steps;
}
