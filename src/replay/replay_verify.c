/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies the bytes that a plan uses, before anything runs. */
#include <inttypes.h>

#include "replay/plan/plan.h"
#include "replay/replay_internal.h"
#include "replay/stream/stream_internal.h"

struct blobs {
	struct ts_replay *replay;
	struct ts_map met;
};

/* Verifies the hash of a blob, once. */
static int check_blob(struct blobs *blobs, const struct ts_replay_blob_ref *blob,
		      struct ts_error *err)
{
	bool is_new = false;

	if (!blob->id)
		return TS_OK;
	if (!ts_map_insert(&blobs->met, blob->id, &is_new))
		return ts_replay_no_memory(err);
	return is_new ? ts_reader_blob_walk(blobs->replay->reader, blob->id, NULL, NULL, err)
		      : TS_OK;
}

static int check_object(struct blobs *blobs, uint32_t index, struct ts_error *err)
{
	const struct ts_replay_object_info *object;
	int rc;

	if (index == TS_REPLAY_NONE)
		return TS_OK;
	object = &blobs->replay->stream->objects[index];
	rc = check_blob(blobs, &object->blob, err);
	for (uint32_t i = 0; !rc && i < object->binary_count; i++)
		rc = check_blob(blobs, &object->binaries[i].blob, err);
	if (rc)
		ts_error_prefix(err, "%s %" PRIu64, ts_enum_name("object_kind", object->kind),
				object->number);
	return rc;
}

static int check_ranges(struct blobs *blobs, const struct ts_replay_range *ranges, uint32_t count,
			struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < count; i++)
		rc = check_object(blobs, ranges[i].memory, err);
	return rc;
}

static int check_command(struct blobs *blobs, uint32_t index, struct ts_error *err)
{
	const struct ts_replay_stream *stream = blobs->replay->stream;
	const struct ts_replay_command_info *command = &stream->commands[index];
	char text[224];
	int rc = check_blob(blobs, &command->blob, err);

	if (!rc && command->kind == TS_COMMAND_LAUNCH)
		rc = check_object(blobs, stream->objects[command->object].parent, err);
	if (!rc)
		rc = check_ranges(blobs, command->reads, command->read_count, err);
	if (!rc)
		rc = check_ranges(blobs, command->writes, command->write_count, err);
	if (rc && rc != TS_ENOMEM)
		ts_error_prefix(err, "%s",
				ts_replay_command_text(stream, index, text, sizeof(text)));
	return rc;
}

int ts_replay_verify_blobs(struct ts_replay *replay, struct ts_error *err)
{
	struct blobs blobs = { .replay = replay };
	uint32_t memory_count;
	TS_AUTO_FREE uint32_t *memory = ts_replay_list_memory(replay->stream, &memory_count);
	int rc = memory ? TS_OK : ts_replay_no_memory(err);

	for (uint32_t i = 0; !rc && i < replay->plan.count; i++) {
		uint32_t index = replay->plan.order[i];

		if (i % 64 == 0)
			rc = ts_replay_progress(replay, "check", i, replay->plan.count, err);
		if (!rc && replay->plan.kept[index] != TS_REPLAY_ORDER)
			rc = check_command(&blobs, index, err);
		/* Memory that a command may reach without naming it. */
		for (uint32_t j = 0;
		     !rc && memory && replay->stream->commands[index].unknown_access &&
		     j < memory_count;
		     j++)
			if (ts_replay_may_access(replay->stream, index, memory[j]))
				rc = check_object(&blobs, memory[j], err);
	}
	ts_map_release(&blobs.met);
	return rc;
}
