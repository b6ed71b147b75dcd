/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One drain pass over an area (docs/live.md, section 4.2): finds rings with new data, copies new
 * dictionary entries, reports damage. A pass without new data costs two reads and one or two words
 * per ring.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/schema.h>

#include "live/area_internal.h"

/* Limits a hostile target. Far more than threads that grow their rings need in one pass. */
#define MAX_WAITS 16384u

/* ---- damage ---- */

static int give_loss(struct drain *drain, uint32_t ring, const char *reason)
{
	const struct ts_area *area = drain->area;
	struct ts_block_loss loss = { .count = TS_ABSENT, .what = "events" };
	struct ts_block block = {
		.type = TS_BLOCK_LOSS,
		.bytes = sizeof(loss),
		.ring = ring,
		.area = area->control.area_id,
	};

	snprintf(loss.reason, sizeof(loss.reason), "%s", reason);
	return drain->sink->append(drain->sink->context, &block, &loss, drain->err);
}

int live_condemn_ring(struct drain *drain, uint32_t index, const char *why)
{
	struct ring *ring = &drain->area->rings[index];
	char reason[192];
	int result;

	snprintf(reason, sizeof(reason), "ring %u is damaged at byte %llu: %s", index,
		 (unsigned long long)ring->position, why);
	result = give_loss(drain, index, reason);
	if (result)
		return result;
	ring->flags |= RING_DAMAGED;
	drain->area->damaged_rings++;
	return TS_OK;
}

/* Reports a damaged area once. Not an error: other areas can still be drained. */
static int report_damage(struct drain *drain)
{
	struct ts_area *area = drain->area;
	char reason[192];
	int result;

	if (area->damage_reported)
		return TS_OK;
	snprintf(reason, sizeof(reason), "live area is damaged: %.160s", area->damage);
	result = give_loss(drain, 0, reason);
	area->damage_reported = result == 0;
	return result;
}

/* ---- dictionary ---- */

static bool is_site_valid(const unsigned char *data, size_t bytes)
{
	struct ts_live_site site;
	size_t need;

	memcpy(&site, data, sizeof(site));
	if (site.bytes < TS_LIVE_SITE_LEAST || site.bytes > TS_LIVE_SITE_GREATEST ||
	    site.bytes % 8 || site.bytes > bytes || site.fields > TS_LIVE_FIELDS)
		return false;
	need = sizeof(site) + site.fields * sizeof(struct ts_live_site_field) + site.name_bytes +
	       site.category_bytes;
	for (unsigned int i = 0; i < site.fields; i++) {
		struct ts_live_site_field field;
		size_t at = sizeof(site) + i * sizeof(field);

		if (at + sizeof(field) > site.bytes)
			return false;
		memcpy(&field, data + at, sizeof(field));
		need += field.key_bytes;
	}
	return need <= site.bytes;
}

static bool are_sites_valid(const unsigned char *data, size_t bytes)
{
	size_t at = 0;

	while (at < bytes) {
		uint32_t size;

		if (bytes - at < TS_LIVE_SITE_LEAST || !is_site_valid(data + at, bytes - at))
			return false;
		memcpy(&size, data + at, sizeof(size));
		at += size;
	}
	return true;
}

static int give_dictionary(struct drain *drain, size_t bytes)
{
	struct ts_area *area = drain->area;
	struct ts_block block = {
		.type = TS_BLOCK_DICTIONARY,
		.bytes = (uint32_t)bytes,
		.area = area->control.area_id,
		.from = area->dictionary_position,
		.to = area->dictionary_position + bytes,
	};
	ssize_t got;
	int result;

	result = live_grow_buffer(area, bytes, drain->err);
	if (result)
		return result;
	got = live_read(area->fd, area->buffer, bytes,
			TS_LIVE_DICTIONARY + area->dictionary_position);
	if (got < 0)
		return ts_error_errno(drain->err, errno, "area '%s': cannot read", area->name);
	if ((size_t)got < bytes || !are_sites_valid(area->buffer, bytes))
		return live_condemn_area(area, drain->err, "its dictionary has a bad entry");
	result = drain->sink->append(drain->sink->context, &block, area->buffer, drain->err);
	if (result == 0)
		area->dictionary_position = block.to;
	return result;
}

int live_drain_dictionary(struct drain *drain)
{
	struct ts_area *area = drain->area;
	uint64_t used;
	ssize_t got = live_read(area->fd, &used, sizeof(used),
				offsetof(struct ts_live_control, dictionary_used));

	if (got < 0)
		return ts_error_errno(drain->err, errno, "area '%s': cannot read", area->name);
	if (got < (ssize_t)sizeof(used) || used > ts_live_dictionary_bytes(&area->control) ||
	    used % 8 || used < area->dictionary_position)
		return live_condemn_area(area, drain->err, "its dictionary has a bad size");
	return used > area->dictionary_position
		       ? give_dictionary(drain, (size_t)(used - area->dictionary_position))
		       : TS_OK;
}

/* ---- the pass ---- */

static int read_directory(struct drain *drain)
{
	struct ts_area *area = drain->area;
	uint32_t count = area->control.rings;
	size_t bytes = (size_t)count * TS_LIVE_ENTRY_BYTES;
	ssize_t got;
	int result;

	result = live_grow_rings(area, count, drain->err);
	if (result || count == 0)
		return result;
	got = live_read(area->fd, area->directory, bytes, TS_LIVE_DIRECTORY);
	if (got < 0)
		return ts_error_errno(drain->err, errno, "area '%s': cannot read", area->name);
	if ((size_t)got < bytes)
		return live_condemn_area(area, drain->err, "cut inside its ring directory");
	return TS_OK;
}

/*
 * Reads the dictionary after the heads and emits it before the first record: the target stores an
 * entry before the head that covers a record with it, so the entry is always emitted first.
 */
static int drain_rings(struct drain *drain)
{
	struct ts_area *area = drain->area;
	bool is_dictionary_given = false;
	int result = TS_OK;

	/* Rings that become known during the pass wait for the next one. */
	for (uint32_t i = 0, count = area->control.rings; i < count && !result; i++) {
		if (!live_ring_has_news(drain, i))
			continue;
		if (live_ring_is_held(drain, i)) {
			drain->result->held = true;
			continue;
		}
		if (!is_dictionary_given)
			result = live_drain_dictionary(drain);
		is_dictionary_given = true;
		if (!result)
			result = live_drain_ring(drain, i);
	}
	if (!result && !is_dictionary_given &&
	    area->control.dictionary_used != area->dictionary_position)
		result = live_drain_dictionary(drain);
	return result;
}

int ts_area_drain(struct ts_area *area, unsigned int flags, const struct ts_block_sink *sink,
		  struct ts_drain_result *ret_result, struct ts_error *err)
{
	struct ts_drain_result taken = { 0 };
	struct drain drain = {
		.area = area,
		.flags = flags,
		.sink = sink,
		.result = &taken,
		.err = err,
		.waits_left = MAX_WAITS,
	};
	int result = TS_OK;

	area->pass++;
	if (area->resume_failed)
		return ts_error_set(err, TS_ENOMEM, "area '%s': no memory", area->name);
	if (area->writable)
		result = ts_area_lock(area, err);
	if (!result && !area->damaged)
		result = ts_area_refresh(area, err);
	if (!result && !area->damaged)
		result = read_directory(&drain);
	if (!result && !area->damaged)
		result = drain_rings(&drain);
	/* Damage is reported in a block; only an error of the sink is returned. */
	if (area->damaged && (!result || result == TS_EFORMAT))
		result = report_damage(&drain);
	taken.damaged = area->damaged_rings;
	if (ret_result)
		*ret_result = taken;
	return result;
}
