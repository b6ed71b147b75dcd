/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 sampling profiles in Chrome traces: a "Profile" event with the start time, then "ProfileChunk"
 * events with nodes, samples and time deltas; or a complete profile in one event. Nodes become
 * frames and stacks, samples become rows.
 */
#include "import/chrome/chrome_import.h"

void ts_chrome_profiles_release(struct ts_chrome *c)
{
	ts_map_release(&c->profiles.by_id);
	ts_pairmap_release(&c->profiles.nodes);
	free(c->profiles.list);
	free(c->profiles.frames);
	free(c->profiles.samples);
	free(c->profiles.deltas);
}

/* The relevant members of an event's "data". */
struct chunk {
	struct ts_chrome_raw profile, nodes, samples, deltas;
	bool has_profile, has_nodes, has_samples, has_deltas, has_start;
	int64_t start;
};

/* Members of "data" and of its "cpuProfile": they may be in either. */
static void find_members(const struct ts_chrome_raw *object, struct chunk *chunk)
{
	struct ts_json_string key = { 0 };
	struct ts_chrome_raw value = { 0 };
	bool more;
	struct ts_json js = ts_chrome_open(object, '{', &more);

	while (ts_chrome_next_member(&js, &more, &key, &value)) {
		struct ts_json time = ts_chrome_reopen(&value);

		if (ts_json_string_is(&key, "cpuProfile") && *value.at == '{') {
			chunk->profile = value;
			chunk->has_profile = true;
		} else if (ts_json_string_is(&key, "nodes") && *value.at == '[') {
			chunk->nodes = value;
			chunk->has_nodes = true;
		} else if (ts_json_string_is(&key, "samples") && *value.at == '[') {
			chunk->samples = value;
			chunk->has_samples = true;
		} else if (ts_json_string_is(&key, "timeDeltas") && *value.at == '[') {
			chunk->deltas = value;
			chunk->has_deltas = true;
		} else if (ts_json_string_is(&key, "startTime") &&
			   !ts_json_scan_us(&time, &chunk->start)) {
			chunk->has_start = true;
		}
	}
}

static bool find_chunk(const struct ts_chrome_event *event, struct chunk *chunk)
{
	struct ts_json_string key = { 0 };
	struct ts_chrome_raw value = { 0 };
	bool more;
	struct ts_json js = ts_chrome_open(&event->args, '{', &more);

	*chunk = (struct chunk){ 0 };
	while (ts_chrome_next_member(&js, &more, &key, &value))
		if (ts_json_string_is(&key, "data"))
			find_members(&value, chunk);
	if (chunk->has_profile) {
		struct ts_chrome_raw profile = chunk->profile;

		find_members(&profile, chunk);
	}
	return chunk->has_profile || (event->phase == 'P' && chunk->has_start);
}

/* ---- nodes ---- */

/* Index plus 1 of a node of a profile, added if new; 0: out of memory. */
static uint32_t find_node(struct ts_chrome *c, uint32_t key, int64_t id)
{
	struct ts_chrome_profiles *profiles = &c->profiles;
	uint64_t *slot = ts_pairmap_insert(&profiles->nodes, key, (uint64_t)id, NULL);

	if (!slot)
		return 0;
	if (!*slot) {
		if (ts_grow_array((void **)&profiles->frames, &profiles->frame_capacity,
				  profiles->frame_count + 1, sizeof(*profiles->frames)))
			return 0;
		profiles->frames[profiles->frame_count++] = (struct ts_chrome_frame){ 0 };
		*slot = profiles->frame_count;
	}
	return (uint32_t)*slot;
}

static void read_call_frame(struct ts_chrome *c, const struct ts_chrome_raw *object,
			    struct ts_frame_row *row)
{
	struct ts_json_string key = { 0 }, text = { 0 };
	struct ts_chrome_raw value = { 0 };
	bool more;
	struct ts_json js = ts_chrome_open(object, '{', &more);

	while (ts_chrome_next_member(&js, &more, &key, &value)) {
		struct ts_json at = ts_chrome_reopen(&value);
		int64_t number;

		if (*value.at == '"') {
			if (ts_json_scan_string(&at, &text))
				continue;
			if (ts_json_string_is(&key, "functionName")) {
				row->name = ts_chrome_string(c, &text);
			} else if (ts_json_string_is(&key, "url") && text.length) {
				row->file = ts_chrome_string(c, &text);
				row->kind = TS_FRAME_SCRIPT;
			} else if (ts_json_string_is(&key, "codeType")) {
				row->category = ts_chrome_string(c, &text);
				if (ts_json_string_is(&text, "JS"))
					row->kind = TS_FRAME_SCRIPT;
			}
		} else if (ts_chrome_scan_int(&at, &number) && number >= 0 && number < INT64_MAX) {
			/* V8 counts lines and columns from 0. */
			if (ts_json_string_is(&key, "lineNumber"))
				row->line = number + 1;
			else if (ts_json_string_is(&key, "columnNumber"))
				row->column = number + 1;
		}
	}
}

static int read_children(struct ts_chrome *c, uint32_t key, uint32_t parent,
			 const struct ts_chrome_raw *list)
{
	struct ts_chrome_raw value = { 0 };
	bool more;
	struct ts_json js = ts_chrome_open(list, '[', &more);
	int64_t id;

	while (ts_chrome_next_item(&js, &more, &value)) {
		struct ts_json at = ts_chrome_reopen(&value);
		uint32_t child;

		if (!ts_chrome_scan_int(&at, &id))
			continue;
		child = find_node(c, key, id);
		if (!child)
			return TS_ENOMEM;
		if (!c->profiles.frames[child - 1].walked)
			c->profiles.frames[child - 1].parent = parent;
	}
	return TS_OK;
}

static int read_node(struct ts_chrome *c, uint32_t profile, const struct ts_chrome_raw *object)
{
	struct ts_frame_row row = ts_frame_none;
	struct ts_chrome_raw value = { 0 }, children = { 0 };
	struct ts_json_string key = { 0 };
	int64_t id, parent_id;
	bool more, has_id = false, has_parent = false;
	struct ts_json js = ts_chrome_open(object, '{', &more);
	uint32_t node, parent = 0;

	while (ts_chrome_next_member(&js, &more, &key, &value)) {
		struct ts_json at = ts_chrome_reopen(&value);

		if (ts_json_string_is(&key, "id"))
			has_id = ts_chrome_scan_int(&at, &id);
		else if (ts_json_string_is(&key, "parent"))
			has_parent = ts_chrome_scan_int(&at, &parent_id);
		else if (ts_json_string_is(&key, "callFrame"))
			read_call_frame(c, &value, &row);
		else if (ts_json_string_is(&key, "children"))
			children = value;
	}
	if (!has_id)
		return TS_OK;
	node = find_node(c, profile, id);
	if (has_parent)
		parent = find_node(c, profile, parent_id);
	if (!node || (has_parent && !parent))
		return TS_ENOMEM;
	if (!c->profiles.frames[node - 1].walked) {
		struct ts_chrome_frame *frame = &c->profiles.frames[node - 1];

		frame->frame = ts_writer_frame(c->writer, &row);
		frame->defined = true;
		if (parent)
			frame->parent = parent;
	}
	return children.at ? read_children(c, profile, node, &children) : TS_OK;
}

static int read_nodes(struct ts_chrome *c, uint32_t profile, const struct ts_chrome_raw *list)
{
	struct ts_chrome_raw value = { 0 };
	bool more;
	struct ts_json js = ts_chrome_open(list, '[', &more);
	int rc = TS_OK;

	while (!rc && ts_chrome_next_item(&js, &more, &value))
		rc = read_node(c, profile, &value);
	return rc;
}

/* ---- samples ---- */

/* Numbers of a list: node ids as they are, deltas as ns. Anything else ends the list. */
static int read_list(const struct ts_chrome_raw *list, bool are_times, int64_t **array,
		     size_t *capacity, size_t *ret_count)
{
	bool more;
	struct ts_json js = ts_chrome_open(list, '[', &more);
	size_t count = 0;

	while (more) {
		int first = ts_json_peek(&js);

		if (ts_grow_array((void **)array, capacity, count + 1, sizeof(**array)))
			return TS_ENOMEM;
		if ((first != '-' && !(first >= '0' && first <= '9')) ||
		    (are_times ? ts_json_scan_us(&js, &(*array)[count]) != 0
			       : !ts_chrome_scan_int(&js, &(*array)[count])) ||
		    ts_json_next(&js, ']', &more))
			break;
		count++;
	}
	*ret_count = count;
	return TS_OK;
}

static int store_samples(struct ts_chrome *c, struct ts_chrome_profile *profile,
			 const struct chunk *chunk)
{
	struct ts_chrome_profiles *profiles = &c->profiles;
	struct ts_sample_row row = ts_sample_none;
	size_t samples = 0, deltas = 0;
	int rc = TS_OK;

	if (chunk->has_samples)
		rc = read_list(&chunk->samples, false, &profiles->samples,
			       &profiles->sample_capacity, &samples);
	if (!rc && chunk->has_deltas)
		rc = read_list(&chunk->deltas, true, &profiles->deltas, &profiles->delta_capacity,
			       &deltas);
	if (rc)
		return rc;
	row.thread = c->threads[profile->thread].row.id;
	row.name = ts_chrome_text(c, "CpuProfile");
	for (size_t i = 0; i < samples && i < deltas; i++) {
		uint32_t node = find_node(c, profile->key, profiles->samples[i]);

		if (!node)
			return TS_ENOMEM;
		if (__builtin_add_overflow(profile->time, profiles->deltas[i], &profile->time))
			profile->time = profiles->deltas[i];
		row.start = ts_chrome_time(c, profile->thread, profile->time);
		row.stack = ts_chrome_walk(c, profiles->frames, node);
		ts_chrome_add(c, profile->thread + 1, TS_TABLE_SAMPLE, &row, NULL);
	}
	if (samples > deltas)
		ts_chrome_lose(c, TS_CHROME_LOSS_TIME, samples - deltas);
	return TS_OK;
}

/* ---- profiles ---- */

/* The profile of an event, created if new; NULL: out of memory. */
static struct ts_chrome_profile *find_profile(struct ts_chrome *c,
					      const struct ts_chrome_event *event, uint32_t thread)
{
	struct ts_chrome_profiles *profiles = &c->profiles;
	const struct ts_chrome_raw *id = &event->member[TS_CHROME_ID];
	struct {
		uint64_t process, id;
	} key = { .process = c->threads[thread].process };
	uint64_t *slot = NULL;

	if (event->phase == 'P') {
		if (event->has & TS_CHROME_HAS(TS_CHROME_ID))
			key.id = ts_hash64(id->at, (size_t)(id->end - id->at));
		slot = ts_map_insert(&profiles->by_id, ts_hash64(&key, sizeof(key)), NULL);
		if (!slot)
			return NULL;
		if (*slot)
			return &profiles->list[*slot - 1];
	}
	if (ts_grow_array((void **)&profiles->list, &profiles->capacity, profiles->count + 1,
			  sizeof(*profiles->list)))
		return NULL;
	profiles->list[profiles->count] =
		(struct ts_chrome_profile){ .thread = thread,
					    .key = (uint32_t)profiles->count + 1 };
	profiles->count++;
	if (slot)
		*slot = profiles->count;
	return &profiles->list[profiles->count - 1];
}

int ts_chrome_store_profile(struct ts_chrome *c, const struct ts_chrome_event *event,
			    bool *ret_stored)
{
	struct ts_chrome_profile *profile;
	struct chunk chunk;
	uint32_t thread;
	int rc = TS_OK;

	*ret_stored = find_chunk(event, &chunk);
	if (!*ret_stored)
		return TS_OK;
	thread = ts_chrome_thread(c, &event->pid, &event->tid);
	profile = thread == UINT32_MAX ? NULL : find_profile(c, event, thread);
	if (!profile)
		return TS_ENOMEM;
	if (chunk.has_start && !profile->has_time) {
		profile->time = chunk.start;
		profile->has_time = true;
	} else if (!profile->has_time && event->has & TS_CHROME_HAS_TIME) {
		profile->time = event->ts;
		profile->has_time = true;
	}
	if (chunk.has_nodes)
		rc = read_nodes(c, profile->key, &chunk.nodes);
	return rc ? rc : store_samples(c, profile, &chunk);
}
