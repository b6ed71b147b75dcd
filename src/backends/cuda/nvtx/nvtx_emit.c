/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits NVTX events. A name that occurs a second time becomes a call site, whose records are a few
 * words. Names that never recur (they contain sequence numbers) carry their text, so that they do
 * not fill the dictionary.
 */
#include <string.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/emit.h>

#include "backends/cuda/nvtx/nvtx.h"

#define SITES 8192u /* slots; a power of two */
#define SITES_AT_MOST 4096u
#define SITE_PROBES 16u
#define SEEN 8192u
#define SITE_TEXT 256u

/* Kinds of the agent's records: emit.h has them as plain numbers, too. */
enum { KIND_SPAN = 1, KIND_BEGIN = 2, KIND_INSTANT = 4 };
#define FLAG_TICKS 1u
#define FLAG_TRACK 4u

struct site {
	struct ts_emit_site site;
	struct ts_emit_field fields[NVTX_VALUES];
	const struct nvtx_domain *domain;
	uint64_t hash;
	uint32_t length;
	uint8_t kind, has;
	char text[];
};

static struct site *sites[SITES];
static uint32_t site_count;
static uint32_t seen[SEEN]; /* hashes of recent names that occurred once */

/* ---- values ---- */

static void add_value(struct nvtx_values *values, unsigned int *count, unsigned int has,
		      uint64_t word)
{
	values->has |= has;
	values->words[(*count)++] = word;
}

static void add_payload(struct nvtx_values *values, unsigned int *count,
			const struct nvtx_attributes *attributes)
{
	switch (attributes->payload_type) {
	case NVTX_PAYLOAD_UINT64:
	case NVTX_PAYLOAD_SINT64:
		add_value(values, count, NVTX_HAS_INTEGER, attributes->payload.uint64);
		break;
	case NVTX_PAYLOAD_UINT32:
		add_value(values, count, NVTX_HAS_INTEGER, attributes->payload.uint32);
		break;
	case NVTX_PAYLOAD_SINT32:
		add_value(values, count, NVTX_HAS_INTEGER,
			  (uint64_t)(int64_t)attributes->payload.sint32);
		break;
	case NVTX_PAYLOAD_REAL64:
		add_value(values, count, NVTX_HAS_REAL, ts_emit_double(attributes->payload.real64));
		break;
	case NVTX_PAYLOAD_REAL32:
		add_value(values, count, NVTX_HAS_REAL,
			  ts_emit_double((double)attributes->payload.real32));
		break;
	default:
		break;
	}
}

void nvtx_values_of(const struct nvtx_domain *domain, const struct nvtx_attributes *attributes,
		    struct nvtx_values *ret_values)
{
	const char *category = NULL;
	unsigned int count = 0;

	ret_values->has = 0;
	add_payload(ret_values, &count, attributes);
	if (attributes->color_type == NVTX_COLOR_IS_ARGB)
		add_value(ret_values, &count, NVTX_HAS_COLOR, attributes->color);
	if (!attributes->category)
		return;
	category = nvtx_category_name(domain, attributes->category);
	if (category)
		add_value(ret_values, &count, NVTX_HAS_CATEGORY_NAME, ts_emit_string(category));
	else
		add_value(ret_values, &count, NVTX_HAS_CATEGORY, attributes->category);
}

static unsigned int list_fields(unsigned int has, struct ts_emit_field *fields)
{
	unsigned int count = 0;

	if (has & (NVTX_HAS_INTEGER | NVTX_HAS_REAL))
		fields[count++] = (struct ts_emit_field){ "payload", has & NVTX_HAS_REAL
									     ? TS_EMIT_DOUBLE
									     : TS_EMIT_INT };
	if (has & NVTX_HAS_COLOR)
		fields[count++] = (struct ts_emit_field){ "color", TS_EMIT_INT };
	if (has & (NVTX_HAS_CATEGORY | NVTX_HAS_CATEGORY_NAME))
		fields[count++] = (struct ts_emit_field){ "category", has & NVTX_HAS_CATEGORY
									      ? TS_EMIT_INT
									      : TS_EMIT_STRING };
	return count;
}

/* ---- sites ---- */

static bool is_of(const struct site *site, const struct nvtx_event *event)
{
	return site->hash == event->name.hash && site->domain == event->domain &&
	       site->kind == event->kind && site->has == event->values.has &&
	       site->length == event->name.length &&
	       !memcmp(site->text, event->name.text, site->length);
}

/*
 * True from the second occurrence of a name on; a name is forgotten when another one hashes to its
 * slot.
 */
static bool came_before(const struct nvtx_event *event)
{
	uint32_t *slot = &seen[(event->name.hash >> 20) % SEEN];
	uint32_t mark = (uint32_t)event->name.hash | 1;

	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == mark)
		return true;
	__atomic_store_n(slot, mark, __ATOMIC_RELAXED);
	return false;
}

static struct site *new_site(const struct nvtx_event *event)
{
	static const uint8_t kinds[] = { [NVTX_KIND_BEGIN] = KIND_BEGIN,
					 [NVTX_KIND_INSTANT] = KIND_INSTANT,
					 [NVTX_KIND_SPAN] = KIND_SPAN };
	bool is_span = event->kind == NVTX_KIND_SPAN;
	struct site *site;

	if (__atomic_load_n(&site_count, __ATOMIC_RELAXED) >= SITES_AT_MOST)
		return NULL;
	site = nvtx_keep(sizeof(*site) + event->name.length + 1);
	if (!site)
		return NULL;
	__atomic_fetch_add(&site_count, 1, __ATOMIC_RELAXED);
	memcpy(site->text, event->name.text, event->name.length);
	site->domain = event->domain;
	site->hash = event->name.hash;
	site->length = event->name.length;
	site->kind = (uint8_t)event->kind;
	site->has = (uint8_t)event->values.has;
	site->site.name = site->text;
	site->site.category = event->domain->category;
	site->site.fields = site->fields;
	site->site.kind = kinds[event->kind];
	site->site.flags = is_span ? FLAG_TICKS | FLAG_TRACK : 0;
	site->site.leading_words = is_span ? 2 : 0;
	site->site.field_count = (uint8_t)list_fields(event->values.has, site->fields);
	site->site.strings = (event->values.has & NVTX_HAS_CATEGORY_NAME) != 0;
	return site;
}

/* NULL: the event carries its text. */
static struct site *find_site(const struct nvtx_event *event)
{
	uint64_t first = event->name.hash + (uint64_t)event->kind * 0x55 + event->values.has;

	if (event->name.length >= SITE_TEXT)
		return NULL;
	for (uint32_t i = 0; i < SITE_PROBES; i++) {
		struct site **slot = &sites[(first + i) % SITES], *created;
		struct site *found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (!found) {
			created = came_before(event) ? new_site(event) : NULL;
			if (!created ||
			    __atomic_compare_exchange_n(slot, &found, created, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return created;
		}
		if (is_of(found, event))
			return found;
	}
	return NULL;
}

/* ---- events ---- */

static void emit_text(const struct nvtx_event *event)
{
	struct ts_tracer *tracer = ts_tracer_process();
	struct ts_emit_field fields[NVTX_VALUES];
	struct ts_emit_arg args[NVTX_VALUES];
	unsigned int count = list_fields(event->values.has, fields);

	for (unsigned int i = 0; i < count; i++) {
		args[i] = (struct ts_emit_arg){ .key = fields[i].key,
						.type = (enum ts_emit_type)fields[i].type };
		memcpy(&args[i].value, &event->values.words[i], sizeof(args[i].value));
	}
	if (event->kind == NVTX_KIND_BEGIN)
		ts_tracer_begin(tracer, event->name.text, event->domain->category, TS_TRACK_THREAD,
				args, count);
	else if (event->kind == NVTX_KIND_INSTANT)
		ts_tracer_instant(tracer, event->name.text, event->domain->category,
				  TS_TRACK_THREAD, args, count);
	else
		ts_tracer_span(tracer, event->name.text, event->domain->category, TS_TIME_NOW,
			       ts_ticks_ns(ts_now() - event->start), event->track, args, count);
}

static void emit_values(struct ts_emit_site *site, const struct nvtx_event *event)
{
	if (site->strings || site->field_count > 2)
		ts_emit_words(site, event->values.words);
	else if (site->field_count == 2)
		ts_emit_2(site, event->values.words[0], event->values.words[1]);
	else if (site->field_count == 1)
		ts_emit_1(site, event->values.words[0]);
	else
		ts_emit_0(site);
}

static void emit_span(struct ts_emit_site *site, const struct nvtx_event *event)
{
	uint64_t words[2 + NVTX_VALUES] = { ts_now() - event->start, ts_emit_int(event->track) };

	memcpy(words + 2, event->values.words, sizeof(event->values.words));
	if (site->field_count)
		ts_emit_words(site, words);
	else
		ts_emit_2(site, words[0], words[1]);
}

const char *nvtx_emit(const struct nvtx_event *event)
{
	struct site *site = find_site(event);

	if (!site) {
		emit_text(event);
		return NULL;
	}
	if (event->kind == NVTX_KIND_SPAN)
		emit_span(&site->site, event);
	else
		emit_values(&site->site, event);
	return site->text;
}

void nvtx_emit_again(const char *name, const struct nvtx_domain *domain)
{
	struct nvtx_event event = { .kind = NVTX_KIND_BEGIN, .domain = domain };

	event.name.text = name;
	emit_text(&event);
}
