/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of call sites (docs/live.md, 2.3): each is stored once, before its first record.
 */
#include <string.h>

#include "agent/launch_stack.h"
#include "agent/tracer.h"

#define TEXT_BYTES 1024u
/* Template kernels have names of several thousand bytes. */
#define NAME_BYTES TS_LIVE_STRING_BYTES

static uint32_t cut_bytes(const char *text, uint32_t most)
{
	return text ? (uint32_t)strnlen(text, most) : 0;
}

static uint32_t text_bytes(const char *text)
{
	return cut_bytes(text, TEXT_BYTES);
}

static uint32_t name_bytes(const struct ts_emit_site *site)
{
	return cut_bytes(site->name, NAME_BYTES);
}

static char *put(char *to, const char *text, uint32_t bytes)
{
	memcpy(to, text, bytes);
	return to + bytes;
}

static uint32_t entry_bytes(const struct ts_emit_site *site)
{
	uint32_t bytes = sizeof(struct ts_live_site) + name_bytes(site) +
			 text_bytes(site->category) +
			 site->field_count * (uint32_t)sizeof(struct ts_live_site_field);

	for (unsigned int i = 0; i < site->field_count; i++)
		bytes += text_bytes(site->fields[i].key);
	bytes = (bytes + 7) / 8 * 8;
	return bytes < TS_LIVE_SITE_LEAST ? TS_LIVE_SITE_LEAST : bytes;
}

/* The memory is zero: nobody has written there before. */
static void write_entry(char *to, const struct ts_emit_site *site, uint32_t bytes)
{
	struct ts_live_site entry = { .bytes = bytes,
				      .kind = site->kind,
				      .fields = site->field_count,
				      .name_bytes = (uint16_t)name_bytes(site),
				      .category_bytes = (uint16_t)text_bytes(site->category),
				      .line = site->line };

	memcpy(to, &entry, sizeof(entry));
	to += sizeof(entry);
	for (unsigned int i = 0; i < site->field_count; i++) {
		struct ts_live_site_field field = {
			.key_bytes = (uint16_t)text_bytes(site->fields[i].key),
			.type = (uint16_t)site->fields[i].type,
		};

		memcpy(to, &field, sizeof(field));
		to += sizeof(field);
	}
	to = put(to, site->name, entry.name_bytes);
	to = put(to, site->category, entry.category_bytes);
	for (unsigned int i = 0; i < site->field_count; i++)
		to = put(to, site->fields[i].key, text_bytes(site->fields[i].key));
}

/* Reserves space for an entry; the dictionary grows up to its limit. */
static char *reserve(struct core *core, uint32_t bytes)
{
	uint64_t used = core->control->dictionary_used;

	while (TS_LIVE_DICTIONARY + used + bytes > core->dictionary_end)
		if (agent_grow_dictionary(core))
			return NULL;
	return core->dictionary + used;
}

/* Publishes a complete entry, before the first record that refers to it. Returns its number. */
static uint32_t count_entry(struct core *core, uint32_t bytes)
{
	core->sites++;
	__atomic_store_n(&core->control->dictionary_used, core->control->dictionary_used + bytes,
			 __ATOMIC_RELEASE);
	return core->sites;
}

/* Adds an entry and returns its number; 0: the dictionary is full. */
static uint32_t add_entry(struct core *core, const struct ts_emit_site *site)
{
	uint32_t bytes = entry_bytes(site);
	char *to = bytes <= TS_LIVE_SITE_GREATEST ? reserve(core, bytes) : NULL;

	if (!to)
		return 0;
	write_entry(to, site, bytes);
	return count_entry(core, bytes);
}

/* The memory is zero: nobody has written there before. */
static uint32_t add_frame_entry(struct core *core, const struct ts_live_site *entry,
				const char *name, const char *category, const void *rest,
				uint32_t rest_bytes)
{
	char *to = reserve(core, entry->bytes);

	if (!to)
		return 0;
	memcpy(to, entry, sizeof(*entry));
	put(put(to + sizeof(*entry), name, entry->name_bytes), category, entry->category_bytes);
	memcpy(to + entry->bytes - rest_bytes, rest, rest_bytes);
	return count_entry(core, entry->bytes);
}

uint32_t agent_add_stack(struct core *core, uint32_t caller, uint64_t frame)
{
	struct ts_live_site entry = { .bytes = sizeof(entry) + sizeof(frame),
				      .kind = TS_LIVE_CODE_STACK,
				      .line = caller };

	return add_frame_entry(core, &entry, "", "", &frame, sizeof(frame));
}

uint32_t agent_add_module(struct core *core, const char *path, const char *build_id,
			  const struct ts_live_module *where)
{
	struct ts_live_site entry = { .kind = TS_LIVE_CODE_MODULE,
				      .name_bytes = (uint16_t)text_bytes(path),
				      .category_bytes = (uint16_t)text_bytes(build_id) };

	entry.bytes = (uint32_t)(sizeof(entry) + entry.name_bytes + entry.category_bytes + 7) / 8 *
		      8;
	entry.bytes += sizeof(*where);
	return add_frame_entry(core, &entry, path, build_id, where, sizeof(*where));
}

static bool add(struct core *core, struct ts_emit_site *site)
{
	uint64_t words = 2u + site->leading_words + site->field_count;
	uint32_t number = add_entry(core, site);

	if (!number)
		return false;
	__atomic_store_n(&site->header, ts_live_head(words, site->kind, site->flags, number),
			 __ATOMIC_RELEASE);
	return true;
}

bool agent_register_site(struct core *core, struct ts_emit_site *site)
{
	struct agent_signals saved;
	bool is_registered;

	agent_block_signals(&saved);
	agent_lock(core);
	is_registered = site->header || add(core, site);
	agent_unlock(core);
	agent_restore_signals(&saved);
	return is_registered;
}

uint32_t agent_register_code(struct core *core, unsigned int kind, const char *name,
			     const char *file, uint32_t line)
{
	struct ts_emit_site code = {
		.name = name, .category = file, .line = line, .kind = (uint8_t)kind
	};
	struct agent_signals saved;
	uint32_t number;

	agent_block_signals(&saved);
	agent_lock(core);
	number = add_entry(core, &code);
	agent_unlock(core);
	agent_restore_signals(&saved);
	return number;
}

/*
 * A forked child continues its parent's numbering, so that registered sites keep their numbers. The
 * parent's area is still mapped.
 */
void agent_copy_dictionary(struct ts_tracer *tracer, struct core *core)
{
	const struct ts_live_control *from = tracer->inherited;
	uint64_t used = from ? __atomic_load_n(&from->dictionary_used, __ATOMIC_ACQUIRE) : 0;
	const char *entries = from ? (const char *)from + TS_LIVE_DICTIONARY : NULL;
	char *to;

	if (used && used <= TS_LIVE_DICTIONARY_GREATEST) {
		to = reserve(core, (uint32_t)used);
		if (to)
			memcpy(to, entries, used);
		else
			used = 0; /* records will refer to missing sites; the recorder counts
				     them */
		if (!to)
			agent_stack_forget();
		for (uint64_t at = 0; at < used;) {
			struct ts_live_site entry;

			memcpy(&entry, entries + at, sizeof(entry));
			if (entry.bytes < TS_LIVE_SITE_LEAST)
				break;
			at += entry.bytes;
			core->sites++;
		}
		__atomic_store_n(&core->control->dictionary_used, used, __ATOMIC_RELEASE);
	}
	tracer->inherited = core->control;
	tracer->inherited_ring_bytes = core->ring_bytes;
}
