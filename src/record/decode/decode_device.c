/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that areas describe and counters refer to. An area identifies them by number; across
 * areas and recorders they are identified by UUID. A row is written when a file first needs it, and
 * again when it changes.
 */
#include <stdlib.h>

#include "record/decode/decode_internal.h"

/* ---- lists ---- */

/* Ids are ascending. */
struct decode_device *decode_find_device(const struct ts_decoder *decoder, int64_t id)
{
	size_t from = 0, to = decoder->device_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (decoder->devices[middle]->id == id)
			return decoder->devices[middle];
		if (decoder->devices[middle]->id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

static uint64_t uuid_key(const char *uuid, uint32_t source)
{
	return ts_hash64(uuid, strlen(uuid)) + ts_hash_mix64(source);
}

/*
 * Each rank that uses a device has a row of it. Measurements, which are of no rank, belong to that
 * of the first.
 */
void decode_index_device(struct ts_decoder *decoder, const struct decode_device *device)
{
	uint64_t first;
	int rc;

	if (!device->uuid[0])
		return;
	rc = ts_map_put(&decoder->uuids, uuid_key(device->uuid, device->source),
			(uint64_t)device->id);
	if (!rc && !ts_map_get(&decoder->uuids, uuid_key(device->uuid, 0), &first))
		rc = ts_map_put(&decoder->uuids, uuid_key(device->uuid, 0), (uint64_t)device->id);
	if (rc)
		decode_no_memory(decoder);
}

/* Drops devices that no area can refer to any more. */
static void forget_devices(struct ts_decoder *decoder)
{
	size_t kept = 0;

	for (size_t i = 0; i < decoder->device_count; i++)
		decoder->devices[i]->used = false;
	for (size_t i = 0; i < decoder->area_count; i++)
		for (size_t k = 0; k < decoder->areas[i]->device_count; k++)
			decoder->areas[i]->devices[k].device->used = true;
	for (size_t i = 0; i < decoder->device_count; i++) {
		if (decoder->devices[i]->used)
			decoder->devices[kept++] = decoder->devices[i];
		else
			free(decoder->devices[i]);
	}
	decoder->device_count = kept;
	ts_map_clear(&decoder->uuids);
	for (size_t i = 0; i < kept; i++)
		decode_index_device(decoder, decoder->devices[i]);
}

struct decode_device *decode_add_device(struct ts_decoder *decoder, int64_t id)
{
	struct decode_device *device;

	if (decoder->device_count >= DECODE_DEVICES)
		forget_devices(decoder);
	if (decoder->device_count >= DECODE_DEVICES)
		return NULL;
	device = calloc(1, sizeof(*device));
	if (!device || ts_grow_array((void **)&decoder->devices, &decoder->device_capacity,
				     decoder->device_count + 1, sizeof(struct decode_device *))) {
		free(device);
		decode_no_memory(decoder);
		return NULL;
	}
	device->id = id;
	device->memory_bytes = TS_ABSENT;
	decoder->devices[decoder->device_count++] = device;
	return device;
}

struct decode_device_number *decode_find_number(const struct decode_area *area, uint32_t number)
{
	for (size_t i = 0; i < area->device_count; i++)
		if (area->devices[i].number == number)
			return &area->devices[i];
	return NULL;
}

bool decode_call_device(struct ts_decoder *decoder, struct decode_area *area, uint32_t number,
			struct decode_device *device)
{
	struct decode_device_number *known = decode_find_number(area, number);

	if (known) {
		known->device = device;
		return true;
	}
	if (area->device_count >= DECODE_AREA_DEVICES)
		return false;
	if (ts_grow_array((void **)&area->devices, &area->device_capacity, area->device_count + 1,
			  sizeof(*area->devices))) {
		decode_no_memory(decoder);
		return false;
	}
	area->devices[area->device_count++] =
		(struct decode_device_number){ .number = number, .device = device };
	return true;
}

/* ---- rows ---- */

static uint32_t properties(struct ts_decoder *decoder, const struct decode_device *device)
{
	TS_SCOPED(ts_text) json = { 0 };

	if (!device->bus[0])
		return 0;
	ts_text_append_str(&json, "{\"bus\":");
	ts_text_append_json(&json, device->bus, strlen(device->bus));
	ts_text_append_char(&json, '}');
	return ts_text_status(&json) ? 0 : decode_string(decoder, json.data, json.length);
}

static uint32_t device_text(struct ts_decoder *decoder, const char *text)
{
	return text[0] ? decode_string(decoder, text, strlen(text)) : 0;
}

static void device_row(struct ts_decoder *decoder, struct decode_device *device)
{
	struct ts_device_row row = ts_device_none;

	row.id = device->id;
	row.source = decode_use_source(decoder, device->source);
	row.host = decoder->host;
	row.number = device->number;
	row.name = device_text(decoder, device->model);
	row.vendor = device_text(decoder, device->vendor);
	row.uuid = device_text(decoder, device->uuid);
	row.memory_bytes = device->memory_bytes;
	row.properties = properties(decoder, device);
	ts_writer_add(decoder->writer, TS_TABLE_DEVICE, &row, NULL);
	device->epoch = decoder->epoch;
}

/* ---- identification ---- */

/* Length of the text that fits, without cutting a character. */
static size_t cut(const char *text, size_t length, size_t capacity)
{
	if (length < capacity)
		return length;
	length = capacity - 1;
	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return length;
}

static bool is_text(const char *known, size_t capacity, const char *text, size_t length)
{
	length = cut(text, length, capacity);
	return memcmp(known, text, length) == 0 && !known[length];
}

/* False: unknown or unchanged. */
static bool set_text(char *known, size_t capacity, const char *text, size_t length)
{
	if (!length || is_text(known, capacity, text, length))
		return false;
	length = cut(text, length, capacity);
	memset(known, 0, capacity);
	memcpy(known, text, length);
	return true;
}

static struct decode_device *find_key(const struct ts_decoder *decoder, const char *uuid,
				      uint32_t source)
{
	uint64_t id;

	return ts_map_get(&decoder->uuids, uuid_key(uuid, source), &id)
		       ? decode_find_device(decoder, (int64_t)id)
		       : NULL;
}

/* That of the rank, or one that no rank has. UUIDs are unique only within a vendor. */
static struct decode_device *find_uuid(const struct ts_decoder *decoder,
				       const struct decode_described *described, uint32_t source)
{
	char uuid[sizeof(((struct decode_device *)0)->uuid)] = "";
	struct decode_device *device = NULL;

	set_text(uuid, sizeof(uuid), described->texts[DEVICE_UUID],
		 described->lengths[DEVICE_UUID]);
	if (uuid[0])
		device = find_key(decoder, uuid, source);
	if (uuid[0] && !device)
		device = find_key(decoder, uuid, 0);
	if (!device || strcmp(device->uuid, uuid) != 0 ||
	    (source && device->source && device->source != source))
		return NULL;
	if (described->lengths[DEVICE_VENDOR] &&
	    !is_text(device->vendor, sizeof(device->vendor), described->texts[DEVICE_VENDOR],
		     described->lengths[DEVICE_VENDOR]))
		return NULL;
	return device;
}

static uint32_t source_of(const struct decode_area *area)
{
	return area->process ? area->process->source : 0;
}

static struct decode_device *new_device(struct ts_decoder *decoder, struct decode_area *area,
					uint32_t number)
{
	struct decode_device *device;

	if (!decode_find_number(area, number) && area->device_count >= DECODE_AREA_DEVICES)
		return NULL;
	device = decode_add_device(decoder, decoder->next_device);
	if (!device)
		return NULL;
	decoder->next_device++;
	device->number = number & 0xffff;
	device->source = source_of(area);
	return decode_call_device(decoder, area, number, device) ? device : NULL;
}

struct decode_device *decode_use_device(struct ts_decoder *decoder, struct decode_area *area,
					uint32_t number)
{
	const struct decode_device_number *known = decode_find_number(area, number);
	struct decode_device *device = known ? known->device : NULL;

	if (!device)
		device = new_device(decoder, area, number);
	if (device && device->epoch != decoder->epoch)
		device_row(decoder, device);
	return device;
}

/* The device with the area's number, the one with that UUID, or a new one. */
static struct decode_device *described_device(struct ts_decoder *decoder, struct decode_area *area,
					      const struct decode_described *described)
{
	const struct decode_device_number *known = decode_find_number(area, described->number);
	struct decode_device *device = known ? known->device : NULL, *other;
	uint32_t length = described->lengths[DEVICE_UUID];

	if (device && (!length || is_text(device->uuid, sizeof(device->uuid),
					  described->texts[DEVICE_UUID], length)))
		return device;
	other = length ? find_uuid(decoder, described, source_of(area)) : NULL;
	if (other)
		return decode_call_device(decoder, area, described->number, other) ? other : NULL;
	/* It had no UUID so far, and no other area describes it. */
	if (device && !device->uuid[0])
		return device;
	return new_device(decoder, area, described->number);
}

/* ---- descriptions ---- */

/* An area's description of a device holds while the area lives; the recorder overrides it. */
static bool may_change(struct ts_decoder *decoder, const struct decode_area *area,
		       const struct decode_device *device)
{
	const struct decode_area *owner;

	if (!device->area || device->area == area->id || area->of_recorder)
		return true;
	owner = decode_find_area(decoder, device->area);
	return !owner || owner->ended;
}

static bool set_number(struct decode_device *device, const struct decode_described *described)
{
	uint32_t number = described->number & 0xffff;
	bool changed = device->number != number;

	device->number = number;
	if (described->memory_bytes >= 0 && device->memory_bytes != described->memory_bytes) {
		device->memory_bytes = described->memory_bytes;
		changed = true;
	}
	return changed;
}

bool decode_describe_device(struct ts_decoder *decoder, struct decode_area *area,
			    const struct decode_described *described)
{
	struct decode_device *device = described_device(decoder, area, described);
	bool changed;

	if (!device)
		return false;
	/* The first rank that uses it. */
	if (!device->source && source_of(area)) {
		device->source = source_of(area);
		decode_index_device(decoder, device);
		device->epoch = 0;
	}
	if (may_change(decoder, area, device)) {
		struct {
			char *known;
			size_t capacity;
		} texts[DEVICE_TEXTS] = {
			[DEVICE_VENDOR] = { device->vendor, sizeof(device->vendor) },
			[DEVICE_MODEL] = { device->model, sizeof(device->model) },
			[DEVICE_UUID] = { device->uuid, sizeof(device->uuid) },
			[DEVICE_BUS] = { device->bus, sizeof(device->bus) },
		};

		changed = set_number(device, described);
		for (unsigned int i = 0; i < DEVICE_TEXTS; i++)
			changed |= set_text(texts[i].known, texts[i].capacity, described->texts[i],
					    described->lengths[i]);
		device->area = area->id;
		decode_index_device(decoder, device);
		if (changed)
			device->epoch = 0;
	}
	if (device->epoch != decoder->epoch)
		device_row(decoder, device);
	return true;
}
