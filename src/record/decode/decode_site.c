/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dictionary entries of an area: validates them, and interns the names and shapes that a file uses.
 * Demangles kernel names.
 */
#include <stdlib.h>

#include "code/demangle.h"
#include "record/decode/decode_internal.h"

/* Size of a valid entry; 0: invalid. */
static size_t check_site(const char *bytes, size_t left)
{
	struct ts_live_site site;
	size_t need;

	if (left < sizeof(site))
		return 0;
	memcpy(&site, bytes, sizeof(site));
	if (site.bytes < TS_LIVE_SITE_LEAST || site.bytes > TS_LIVE_SITE_GREATEST ||
	    site.bytes % 8 || site.bytes > left || site.fields > TS_LIVE_FIELDS)
		return 0;
	need = sizeof(site) + site.fields * sizeof(struct ts_live_site_field) + site.name_bytes +
	       site.category_bytes;
	for (unsigned int i = 0; i < site.fields && need <= site.bytes; i++) {
		struct ts_live_site_field field;

		memcpy(&field, bytes + sizeof(site) + i * sizeof(field), sizeof(field));
		need += field.key_bytes;
	}
	return need <= site.bytes ? site.bytes : 0;
}

void decode_add_sites(struct ts_decoder *decoder, struct decode_area *area, const void *bytes,
		      size_t count)
{
	size_t at = area->dictionary.length;

	uint64_t most = area->about ? ts_live_dictionary_bytes(&area->about->control) : 0;

	most = TS_MAX(most, TS_LIVE_DICTIONARY_BYTES);
	if (area->damaged || at > most || count > most - at) {
		area->damaged = true;
		return;
	}
	ts_text_append(&area->dictionary, bytes, count);
	if (ts_text_status(&area->dictionary)) {
		decode_no_memory(decoder);
		return;
	}
	while (at < area->dictionary.length) {
		const char *entry = area->dictionary.data + at;
		size_t size = check_site(entry, area->dictionary.length - at);

		if (!size) {
			area->damaged = true;
			return;
		}
		if (ts_grow_array((void **)&area->sites, &area->site_capacity, area->site_count + 1,
				  sizeof(*area->sites))) {
			decode_no_memory(decoder);
			return;
		}
		area->sites[area->site_count++] =
			(struct decode_site){ .offset = (uint32_t)at,
					      .kind = (uint8_t)entry[4],
					      .fields = (uint8_t)entry[5] };
		at += size;
	}
}

/* Reported once per file. */
static void report_no_demangler(struct ts_decoder *decoder)
{
	if (decoder->no_demangler == decoder->epoch)
		return;
	decoder->no_demangler = decoder->epoch;
	decode_meta(decoder, 0, "kernel_names", "\"mangled: libstdc++ was not found\"");
}

static uint32_t plain_name(struct ts_decoder *decoder, const char *name, size_t length)
{
	TS_AUTO_FREE char *mangled = strndup(name, length);
	TS_AUTO_FREE char *plain = mangled ? ts_demangle_long(mangled) : NULL;

	if (plain)
		return decode_text(decoder, plain);
	if (!ts_can_demangle())
		report_no_demangler(decoder);
	return decode_string(decoder, name, length);
}

/* Demangles each name once, since that takes some microseconds. */
uint32_t decode_kernel_name(struct ts_decoder *decoder, const struct decode_area *area,
			    const char *name, size_t length)
{
	uint64_t hash, plain;

	if (length < 2 || memcmp(name, "_Z", 2) != 0)
		return decode_string(decoder, name, length);
	hash = ts_hash64(name, length);
	if (ts_pairmap_get(&decoder->plain_names, hash, area->id, &plain))
		return (uint32_t)plain;
	plain = plain_name(decoder, name, length);
	if (ts_pairmap_count(&decoder->plain_names) >= DECODE_STEPS)
		ts_pairmap_clear(&decoder->plain_names);
	if (ts_pairmap_put(&decoder->plain_names, hash, area->id, plain))
		decode_no_memory(decoder);
	return (uint32_t)plain;
}

static bool has_plain_values(unsigned int type)
{
	return type == TS_ARG_INT || type == TS_ARG_DOUBLE;
}

void decode_resolve_site(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_site *site)
{
	const char *entry = area->dictionary.data + site->offset, *text;
	struct ts_field fields[TS_LIVE_FIELDS] = { 0 };
	struct ts_live_site about;
	uint32_t count = 0;

	memcpy(&about, entry, sizeof(about));
	text = entry + sizeof(about) + about.fields * sizeof(struct ts_live_site_field);
	site->name = about.kind == TS_LIVE_GPU_OP || about.kind == TS_LIVE_CODE_DEVICE
			     ? decode_kernel_name(decoder, area, text, about.name_bytes)
			     : decode_string(decoder, text, about.name_bytes);
	text += about.name_bytes;
	site->category = about.category_bytes ? decode_string(decoder, text, about.category_bytes)
					      : 0;
	site->is_hidden = decode_is_hidden(decoder, area, text, about.category_bytes);
	text += about.category_bytes;
	site->plain = !site->is_hidden;
	for (unsigned int i = 0; i < about.fields; i++) {
		struct ts_live_site_field field;

		memcpy(&field, entry + sizeof(about) + i * sizeof(field), sizeof(field));
		if (!has_plain_values(field.type))
			site->plain = false;
		if (!site->is_hidden &&
		    (field.type != TS_ARG_STRING || !decode_is_redacted(decoder, area)))
			fields[count++] = (struct ts_field){
				.key = decode_string(decoder, text, field.key_bytes),
				.type = (uint8_t)(field.type >= TS_ARG_INT &&
								  field.type <= TS_ARG_BOOL
							  ? field.type
							  : TS_ARG_INT),
			};
		text += field.key_bytes;
	}
	site->shape = ts_writer_shape(decoder->writer, fields, count);
	site->row = 0;
	site->resolved = true;
}
