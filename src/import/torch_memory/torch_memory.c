/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch memory snapshots: torch.cuda.memory._dump_snapshot(), and the same format from torch.xpu
 * and others. Finds the sections in the pickle and reads them.
 */
#include "import/torch_memory/torch_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/ns.h"

static const char *const texts[TEXTS] = {
	[TEXT_SEGMENTS] = "segments",
	[TEXT_DEVICE_TRACES] = "device_traces",
	[TEXT_EXTERNAL_ANNOTATIONS] = "external_annotations",
	[TEXT_ACTION] = "action",
	[TEXT_ADDR] = "addr",
	[TEXT_SIZE] = "size",
	[TEXT_STREAM] = "stream",
	[TEXT_TIME_US] = "time_us",
	[TEXT_FRAMES] = "frames",
	[TEXT_FILENAME] = "filename",
	[TEXT_LINE] = "line",
	[TEXT_NAME] = "name",
	[TEXT_DEVICE] = "device",
	[TEXT_ADDRESS] = "address",
	[TEXT_TOTAL_SIZE] = "total_size",
	[TEXT_BLOCKS] = "blocks",
	[TEXT_REQUESTED_SIZE] = "requested_size",
	[TEXT_STATE] = "state",
	[TEXT_HISTORY] = "history",
	[TEXT_REAL_SIZE] = "real_size",
	[TEXT_IS_EXPANDABLE] = "is_expandable",
	[TEXT_STAGE] = "stage",
	[TEXT_USER_METADATA] = "user_metadata",
	[TEXT_COMPILE_CONTEXT] = "compile_context",
	[TEXT_POOL_ID] = "pool_id",
	[TEXT_EMPTY] = "",
	[TEXT_NOT_COMPILED] = "N/A",
	[TEXT_START] = "START",
	[TEXT_END] = "END",
	[TEXT_ACTIVE_ALLOCATED] = "active_allocated",
	[TEXT_ACTIVE_PENDING_FREE] = "active_pending_free",
	[TEXT_ACTIVE_AWAITING_FREE] = "active_awaiting_free",
	[TEXT_ALLOC] = "alloc",
	[TEXT_FREE_REQUESTED] = "free_requested",
	[TEXT_FREE_COMPLETED] = "free_completed",
	[TEXT_SEGMENT_ALLOC] = "segment_alloc",
	[TEXT_SEGMENT_FREE] = "segment_free",
	[TEXT_SEGMENT_MAP] = "segment_map",
	[TEXT_SEGMENT_UNMAP] = "segment_unmap",
};

const struct ts_loss_kind torch_loss_value = {
	.what = "value",
	.one = "value that is too large or of unknown type",
	.many = "values that are too large or of unknown type"
};
const struct ts_loss_kind torch_loss_twice = { .what = "allocation",
					       .one = "duplicate entry",
					       .many = "duplicate entries" };
const struct ts_loss_kind torch_loss_entry = {
	.what = "allocation",
	.one = "entry without an action, address or size",
	.many = "entries without an action, address or size"
};
const struct ts_loss_kind torch_loss_time = { .what = "time",
					      .one = "missing time (order used instead)",
					      .many = "missing times (order used instead)" };
const struct ts_loss_kind torch_loss_back = {
	.what = "time",
	.one = "time that goes backwards (time of the previous entry used)",
	.many = "times that go backwards (time of the previous entry used)"
};
const struct ts_loss_kind torch_loss_block = {
	.what = "allocation",
	.one = "live block without a known allocation time",
	.many = "live blocks without a known allocation time"
};
const struct ts_loss_kind torch_loss_frame = { .what = "frame",
					       .one = "detail of a frame",
					       .many = "details of frames" };

static const struct ts_loss_kind loss_behind = {
	.what = "file", .one = "data after the end of the snapshot", .many = "", .is_rest = true
};

/* Bytes searched for the strings that a snapshot begins with. */
#define PROBE_BYTES 4096

/*
 * Protocols 2 and up have a magic; another pickle then gets a specific error. 0 and 1 begin with a
 * dict, which might be text.
 */
int ts_torch_memory_probe(const char *data, size_t bytes)
{
	size_t length = TS_MIN(bytes, (size_t)PROBE_BYTES);

	if (bytes < 2)
		return 0;
	if ((unsigned char)data[0] == 0x80)
		return data[1] >= 2 && data[1] <= 5;
	if (memcmp(data, "(d", 2) != 0 && memcmp(data, "}q", 2) != 0)
		return 0;
	return memmem(data, length, "segments", 8) || memmem(data, length, "device_traces", 13);
}

void torch_no_memory(struct torch_memory *m)
{
	if (m->rc != TS_ENOMEM)
		m->rc = ts_error_set(m->err, TS_ENOMEM, "input '%s': out of memory",
				     m->import->path);
}

bool torch_step(struct torch_memory *m)
{
	const struct ts_import_options *options = &m->import->options;
	uint64_t done = 0, total = 0;

	if (m->rc || ++m->steps % 65536)
		return !m->rc;
	if (ts_writer_status(m->import->writer, NULL))
		m->rc = ts_writer_status(m->import->writer, m->err);
	if (!m->rc && options->progress) {
		m->import->position(m->import, &done, &total);
		if (options->progress(options->context, done, total))
			m->rc = ts_error_set(
				m->err, TS_ECANCELED,
				"input '%s': stopped; everything read so far is in the trace",
				m->import->path);
	}
	return !m->rc;
}

/* ---- devices ---- */

struct torch_device *torch_device(struct torch_memory *m, int64_t number)
{
	bool is_new;
	uint64_t *slot = ts_map_insert(&m->device_numbers, (uint64_t)number, &is_new);
	struct torch_device *device;

	if (!slot || (is_new && ts_grow_array((void **)&m->devices, &m->device_capacity,
					      m->device_count + 1, sizeof(*m->devices)))) {
		torch_no_memory(m);
		return NULL;
	}
	if (!is_new)
		return &m->devices[*slot];
	*slot = m->device_count++;
	device = &m->devices[*slot];
	*device = (struct torch_device){ .number = number };
	device->id = ts_entities_device(&m->entities, 0, (uint64_t)number, number);
	if (!device->id)
		torch_no_memory(m);
	return device;
}

/* A pseudo thread for device events that are neither memory nor a queue. */
int64_t torch_thread(struct torch_memory *m, struct torch_device *device)
{
	int64_t process;

	if (device->thread)
		return device->thread;
	process = ts_entities_process_of(&m->entities, 0, 0, TS_ABSENT);
	if (process)
		device->thread = ts_entities_thread(&m->entities, process, (uint64_t)device->number,
						    TS_ABSENT);
	if (!device->thread) {
		torch_no_memory(m);
		return 0;
	}
	ts_text_clear(&m->json);
	ts_text_printf(&m->json, "memory of device %lld", (long long)device->number);
	ts_entities_thread_row(&m->entities, device->thread)->name =
		ts_import_string(m->import, ts_text_cstr(&m->json), m->json.length);
	return device->thread;
}

int64_t torch_stream(struct torch_memory *m, const struct torch_device *device, int64_t stream)
{
	int64_t id;

	if (stream == TS_ABSENT)
		return 0;
	id = ts_entities_stream(&m->entities, device->id, (uint64_t)stream, stream);
	if (!id)
		torch_no_memory(m);
	return id;
}

/* ---- members of the snapshot ---- */

/* Values without a table: kept as a fact about the source. */
static void add_meta(struct torch_memory *m, ts_pickle_value key, ts_pickle_value value)
{
	size_t length = 0;
	const char *text = ts_strmap_text(&m->pickle.texts, ts_pickle_text(key), &length);

	ts_text_clear(&m->json);
	if (!text || strlen(text) != length ||
	    !ts_pickle_json(&m->pickle, value, &m->json, &m->json_budget) || m->json.failed) {
		ts_entities_add_loss(&m->entities, &torch_loss_value, 1);
		return;
	}
	ts_entities_meta(&m->entities, text, ts_text_cstr(&m->json), m->json.length);
}

/* Times are time of day: recorded, so that the trace can be aligned with others. */
static void add_sync(struct torch_memory *m)
{
	struct ts_clock_sync_row row = ts_clock_sync_none;

	if (!m->has_time)
		return;
	row.clock = (int64_t)m->entities.clock;
	row.uncertainty_ns = 1000;
	row.method = torch_key(m, "time_us");
	ts_writer_add(m->import->writer, TS_TABLE_CLOCK_SYNC, &row, NULL);
}

static void read_members(struct torch_memory *m, ts_pickle_value segments, ts_pickle_value traces,
			 ts_pickle_value annotations)
{
	torch_first_round(m, traces);
	torch_read_segments(m, segments);
	torch_last_round(m, traces);
	torch_read_annotations(m, annotations);
	add_sync(m);
}

/* A dict; or a list of segments, as from torch.cuda.memory_snapshot(). */
static void read_root(struct torch_memory *m, ts_pickle_value root)
{
	ts_pickle_value members[3] = { TS_PICKLE_NONE, TS_PICKLE_NONE, TS_PICKLE_NONE };
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, root);
	ts_pickle_value key, value;

	if (ts_pickle_kind(root) == TS_PICKLE_LIST) {
		read_members(m, root, TS_PICKLE_NONE, TS_PICKLE_NONE);
		return;
	}
	while (ts_pickle_next_pair(&items, &key, &value)) {
		if (ts_pickle_text(key) <= TEXT_EXTERNAL_ANNOTATIONS)
			members[ts_pickle_text(key)] = value;
		else
			add_meta(m, key, value);
	}
	read_members(m, members[TEXT_SEGMENTS], members[TEXT_DEVICE_TRACES],
		     members[TEXT_EXTERNAL_ANNOTATIONS]);
}

static bool is_snapshot(const struct ts_pickle *p, ts_pickle_value root)
{
	struct ts_pickle_items items = ts_pickle_items(p, root);
	ts_pickle_value key, value;

	if (ts_pickle_kind(root) == TS_PICKLE_LIST) {
		ts_pickle_value first = TS_PICKLE_NONE;

		if (!ts_pickle_next(&items, &first) || ts_pickle_kind(first) != TS_PICKLE_DICT)
			return false;
		items = ts_pickle_items(p, first);
		while (ts_pickle_next_pair(&items, &key, &value))
			if (ts_pickle_text(key) == TEXT_BLOCKS)
				return true;
		return false;
	}
	if (ts_pickle_kind(root) != TS_PICKLE_DICT)
		return false;
	while (ts_pickle_next_pair(&items, &key, &value))
		if (ts_pickle_text(key) == TEXT_SEGMENTS ||
		    ts_pickle_text(key) == TEXT_DEVICE_TRACES)
			return true;
	return false;
}

static int start(struct torch_memory *m, struct ts_error *err)
{
	int rc = ts_entities_start(&m->entities, m->import, err);

	if (rc)
		return rc;
	m->strings = calloc((size_t)ts_strmap_count(&m->pickle.texts) + 1, sizeof(*m->strings));
	if (!m->strings)
		torch_no_memory(m);
	m->json_budget = 65536 +
			 4 * ts_input_stream_at(&m->import->stream, m->import->stream.js.next);
	m->pool = torch_key(m, "torch");
	m->segment_pool = torch_key(m, "torch segments");
	m->category = torch_key(m, "torch_memory");
	return m->rc;
}

/* `read` is the result of reading the pickle. */
static int make_rows(struct torch_memory *m, ts_pickle_value root, int read, struct ts_error *err)
{
	int rc;

	m->err = read ? NULL : err; /* the first error counts */
	rc = start(m, err);
	if (!rc)
		read_root(m, root);
	if (m->args.left_out)
		ts_entities_add_loss(&m->entities, &torch_loss_value, m->args.left_out);
	if (read || m->rc == TS_ECANCELED)
		ts_entities_add_loss(&m->entities, &ts_loss_rest, 1);
	else if (m->import->stream.js.next < m->import->stream.js.end)
		ts_entities_add_loss(&m->entities, &loss_behind, 1);
	if (m->rc != TS_ENOMEM && !ts_writer_status(m->import->writer, NULL))
		ts_entities_finish(&m->entities);
	ts_entities_release(&m->entities);
	free(m->strings);
	return rc ? rc : m->rc;
}

static int run(struct torch_memory *m, struct ts_error *err)
{
	ts_pickle_value root = TS_PICKLE_NONE;
	int rc = ts_pickle_read(&m->pickle, &root, err), recreated;
	size_t behind;

	if (!rc)
		rc = ts_import_need(m->import, 1, &behind, err);

	if ((rc && rc != TS_EFORMAT && rc != TS_ECANCELED) || m->pickle.refused)
		return rc;
	if (rc && ts_pickle_fold(&m->pickle, &root))
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", m->import->path);
	if (!is_snapshot(&m->pickle, root)) {
		if (rc)
			return rc;
		return ts_error_set(
			err, TS_EFORMAT,
			"input '%s': a pickle, but not a memory snapshot, which is a dict with "
			"\"segments\" and \"device_traces\", as "
			"torch.cuda.memory._dump_snapshot() writes it",
			m->import->path);
	}
	recreated = make_rows(m, root, rc, err);
	if (m->pickle.damaged && recreated != TS_ENOMEM)
		return ts_pickle_error(&m->pickle, err);
	return rc ? rc : recreated;
}

int ts_torch_memory_run(struct ts_import *import, struct ts_error *err)
{
	struct torch_memory *m = calloc(1, sizeof(*m));
	int rc;

	if (!m || ts_pickle_init(&m->pickle, import, texts, TEXTS)) {
		rc = ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	} else {
		m->import = import;
		rc = run(m, err);
	}
	if (m) {
		ts_pickle_release(&m->pickle);
		ts_map_release(&m->device_numbers);
		ts_pairmap_release(&m->blocks);
		ts_pairmap_release(&m->segments);
		ts_map_release(&m->requests);
		ts_text_release(&m->json);
		free(m->devices);
	}
	free(m);
	return rc;
}
