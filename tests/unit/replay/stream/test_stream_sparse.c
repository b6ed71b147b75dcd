/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse memory: what is mapped, pieces of the snapshot, pages of checks, other parts of CUDA. */
#include "unit/replay/stream/cuda_stream_support.h"

static struct ts_replay_object_info *object_of(struct ts_replay_stream *stream, uint64_t number)
{
	for (uint32_t i = 0; i < stream->object_count; i++)
		if (stream->objects[i].number == number)
			return &stream->objects[i];
	ts_test_fail(__FILE__, __LINE__, "there is no object %d", (int)number);
	return NULL;
}

/* ---- objects ---- */

TS_TEST(objects)
{
	const struct ts_replay_object_info *object;
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	stream = load();
	object = object_of(stream, CUDA_MEMORY);
	TS_CHECK(!object->unreplayable);
	TS_CHECK_INT(object->flags, TS_REPLAY_SPARSE);
	TS_CHECK(object->address == CUDA_ARENA && object->bytes == CUDA_ARENA_BYTES);
	TS_CHECK_INT(object->mapping_count, 1);
	TS_CHECK_INT(object->mappings[0].bytes, 4 * CUDA_PAGE);
	TS_CHECK(strstr(object->details, "\"mapped\":[[0,8388608]]"));
	object = object_of(stream, CUDA_HOST_MEMORY);
	TS_CHECK_INT(object->flags, TS_REPLAY_SPARSE | TS_REPLAY_HOST);
	TS_CHECK(object->bytes >= (uint64_t)1 << 47 && object->address == 0);
	TS_CHECK(object->mappings[0].is_registered && object->mappings[0].flags == 2);
	object = object_of(stream, CUDA_VARIABLE);
	TS_CHECK(!object->unreplayable);
	TS_CHECK_INT(object->flags, TS_REPLAY_GLOBAL);
	TS_CHECK_STR(object->name, "variable");
	TS_CHECK_INT(stream->objects[object->parent].kind, TS_OBJECT_MODULE);
	TS_CHECK_INT(object_of(stream, CUDA_LEGACY)->flags, TS_REPLAY_LEGACY);
	TS_CHECK_INT(object_of(stream, CUDA_FREE)->flags, TS_REPLAY_NON_BLOCKING);
	TS_CHECK_INT(object_of(stream, CUDA_STREAM)->flags, 0);
	object = object_of(stream, CUDA_KERNEL);
	TS_CHECK(object->place_count == 2 && object->places[1].at == 8 &&
		 object->places[1].size == 4);
	TS_CHECK(strstr(object->details, "\"attributes\":[[8,65536]]"));
	for (uint32_t i = 0; i < stream->object_count; i++)
		TS_CHECK(!stream->objects[i].unreplayable);
	done(stream);
}

/* A list of mappings that continues in further rows, one of which is repeated. */
TS_TEST(lists_that_continue)
{
	const struct ts_replay_object_info *object;
	struct ts_replay_stream *stream;

	begin();
	cuda_memory(
		&fixture, CUDA_NEXT, CUDA_DEVICE, CUDA_ARENA, CUDA_ARENA_BYTES, NULL,
		"\"sparse\":true,\"space\":\"device\",\"mapped\":[[8388608,2097152],[0,2097152]]");
	for (int i = 0; i < 2; i++)
		cuda_memory(&fixture, CUDA_NEXT, 0, TS_ABSENT, 0, NULL,
			    "\"more\":true,\"mapped\":[[4194304,2097152],[2097152,2097152]]");
	cuda_memory(&fixture, CUDA_NEXT, 0, TS_ABSENT, 0, NULL,
		    "\"more\":true,\"mapped\":[[16777216,2097152]]");
	cuda_begin(&fixture, 1, 0);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	stream = load();
	object = object_of(stream, CUDA_NEXT);
	TS_CHECK(!object->unreplayable);
	TS_CHECK(object->address == CUDA_ARENA && object->bytes == CUDA_ARENA_BYTES);
	TS_CHECK_INT(object->mapping_count, 5);
	for (uint32_t i = 1; i < object->mapping_count; i++)
		TS_CHECK(object->mappings[i].offset > object->mappings[i - 1].offset);
	done(stream);
}

static const struct {
	const char *details, *why;
} bad_memory[] = {
	{ "\"mapped\":[[0,4194304],[2097152,2097152]]", "memory at 2097152 of it is mapped twice" },
	{ "\"mapped\":[[2199023255552,2097152]]",
	  "2097152 bytes are mapped at 2199023255552 of 2199023255552" },
	{ "\"mapped\":[[2097152,9223372036854775807]]",
	  "9223372036854775807 bytes are mapped at 2097152 of 2199023255552" },
	{ "\"mapped\":[[2097152,0]]", "0 bytes are mapped at 2097152 of 2199023255552" },
};

TS_TEST(bad_mappings)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(bad_memory); i++) {
		struct ts_replay_stream *stream;
		char details[256];

		begin();
		snprintf(details, sizeof(details), "\"sparse\":true,\"space\":\"device\",%s",
			 bad_memory[i].details);
		cuda_memory(&fixture, CUDA_NEXT, CUDA_DEVICE, CUDA_ARENA, CUDA_ARENA_BYTES, NULL,
			    details);
		cuda_begin(&fixture, 1, 0);
		cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
		stream = load();
		TS_CHECK_STR(object_of(stream, CUDA_NEXT)->unreplayable, bad_memory[i].why);
		done(stream);
	}
	begin();
	cuda_memory(&fixture, CUDA_NEXT, CUDA_DEVICE, -4096, 8192, NULL,
		    "\"sparse\":true,\"space\":\"device\"");
	cuda_begin(&fixture, 1, 0);
	fixture_write(&fixture, CUDA_STREAM, CUDA_NEXT, 0, "abcd", 4);
	{
		struct ts_replay_stream *stream = load();

		TS_CHECK_STR(object_of(stream, CUDA_NEXT)->unreplayable,
			     "it ends behind the last address");
		TS_CHECK_STR(stream->commands[0].unreplayable,
			     "memory 13: it ends behind the last address");
		done(stream);
	}
	begin();
	cuda_memory(&fixture, CUDA_NEXT, CUDA_DEVICE, CUDA_ARENA, CUDA_ARENA_BYTES, NULL,
		    "\"sparse\":true,\"mapped\":[[1]]");
	cuda_begin(&fixture, 1, 0);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	refuse(TS_EFORMAT,
	       "object in row 1013: malformed details at byte 37: expected two or three numbers");
}

/* ---- commands ---- */

TS_TEST(launches)
{
	const struct ts_replay_command_info *command;
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, ",\"cooperative\":true");
	stream = load();
	command = &stream->commands[0];
	TS_CHECK(command->unknown_access && !command->unreplayable);
	TS_CHECK_INT(command->dimensions, 3);
	TS_CHECK(command->global[0] == 128 && command->global[1] == 2 && command->global[2] == 1);
	TS_CHECK(command->local[0] == 32 && command->local[1] == 1);
	TS_CHECK_INT(command->graph, TS_REPLAY_NONE);
	TS_CHECK(strstr(command->details, "\"cooperative\":true"));
	TS_CHECK_INT(command->arg_count, 2);
	TS_CHECK_INT(command->args[1].kind, TS_REPLAY_ARG_BYTES);
	TS_CHECK(command->args[1].at == 8 && command->args[1].size == 4);
	done(stream);
}

static int64_t change(enum ts_command_kind kind, int64_t memory, int64_t offset, int64_t bytes)
{
	return fixture_command(&fixture, &(struct fixture_command){ .kind = kind,
								    .object = memory,
								    .offset = offset,
								    .bytes = bytes,
								    .details = "{}" });
}

/* Memory that is mapped and unmapped inside the window; commands before, between and after. */
TS_TEST(mapping_changes)
{
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	fixture_write(&fixture, CUDA_STREAM, CUDA_MEMORY, 4 * CUDA_PAGE, "abcd", 4);
	change(TS_COMMAND_ALLOC, CUDA_MEMORY, 4 * CUDA_PAGE, 2 * CUDA_PAGE);
	/* Across two mappings. */
	fixture_write(&fixture, CUDA_STREAM, CUDA_MEMORY, 4 * CUDA_PAGE - 2, "abcd", 4);
	change(TS_COMMAND_FREE, CUDA_MEMORY, 3 * CUDA_PAGE, 2 * CUDA_PAGE);
	fixture_read(&fixture, CUDA_STREAM, CUDA_MEMORY, 4 * CUDA_PAGE, 4);
	fixture_read(&fixture, CUDA_STREAM, CUDA_MEMORY, 5 * CUDA_PAGE, 4);
	change(TS_COMMAND_ALLOC, CUDA_HOST_MEMORY, CUDA_HOST + 65536, 4096);
	fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_COPY,
							     .queue = CUDA_STREAM,
							     .object = CUDA_HOST_MEMORY,
							     .offset = CUDA_HOST + 65536,
							     .other = CUDA_MEMORY,
							     .bytes = 4096,
							     .details = "{}" });
	stream = load();
	TS_CHECK_STR(stream->commands[0].unreplayable,
		     "memory 9: 4 bytes at 0x200000800000 are not mapped");
	TS_CHECK_INT(stream->commands[1].write_count, 0);
	TS_CHECK_INT(stream->commands[1].offset, 4 * CUDA_PAGE);
	TS_CHECK_INT(stream->commands[1].bytes, 2 * CUDA_PAGE);
	TS_CHECK(!stream->commands[2].unreplayable);
	TS_CHECK_INT(stream->commands[3].offset, 3 * CUDA_PAGE);
	TS_CHECK_INT(stream->commands[3].write_count, 0);
	TS_CHECK(stream->commands[4].unreplayable && !stream->commands[5].unreplayable);
	TS_CHECK(!stream->commands[7].unreplayable && stream->commands[7].read_count == 1 &&
		 stream->commands[7].write_count == 1);
	TS_CHECK_INT(object_of(stream, CUDA_MEMORY)->created_by, TS_REPLAY_NONE);
	TS_CHECK_INT(object_of(stream, CUDA_MEMORY)->freed_by, TS_REPLAY_NONE);
	done(stream);
}

static const struct bad {
	struct fixture_command command;
	const char *message;
} bad_commands[] = {
	{ { .kind = TS_COMMAND_ALLOC, .object = CUDA_MEMORY, .offset = 6291456, .bytes = 4194304 },
	  "command 2, alloc of memory 9: a part of it is mapped already" },
	{ { .kind = TS_COMMAND_FREE, .object = CUDA_MEMORY, .offset = 6291456, .bytes = 4194304 },
	  "command 2, free of memory 9: a part of it is not mapped" },
	{ { .kind = TS_COMMAND_ALLOC, .object = CUDA_MEMORY },
	  "command 2, alloc of memory 9: it has no size" },
	{ { .kind = TS_COMMAND_ALLOC,
	    .object = CUDA_MEMORY,
	    .offset = 2199023255552,
	    .bytes = 2097152 },
	  "command 2, alloc of memory 9: its range exceeds memory 9: 2097152 bytes at 2199023255552 of 2199023255552" },
	{ { .kind = TS_COMMAND_LAUNCH,
	    .queue = CUDA_STREAM,
	    .object = CUDA_KERNEL,
	    .details = "{\"grid\":[1,1],\"block\":[1,1,1]}" },
	  "command 2, launch of 'kernel': its grid has 2 dimensions and its block 3, not 3" },
	{ { .kind = TS_COMMAND_LAUNCH,
	    .queue = CUDA_STREAM,
	    .object = CUDA_KERNEL,
	    .details = "{\"grid\":[1,0,1],\"block\":[1,1,1]}" },
	  "command 2, launch of 'kernel': it has 0 blocks of 1 threads in a dimension" },
	{ { .kind = TS_COMMAND_LAUNCH,
	    .queue = CUDA_STREAM,
	    .object = CUDA_KERNEL,
	    .details = "{\"grid\":[1,1,1],\"block\":[1,1,4294967296]}" },
	  "command 2, launch of 'kernel': it has 1 blocks of 4294967296 threads in a dimension" },
	{ { .kind = TS_COMMAND_LAUNCH,
	    .queue = CUDA_STREAM,
	    .object = CUDA_KERNEL,
	    .details = "{\"grid\":[1,1,1],\"block\":[1,1,1]}" },
	  "command 2, launch of 'kernel': parameter 0 has 8 bytes at 0 of a block of 0" },
	{ { .kind = TS_COMMAND_SET, .object = CUDA_KERNEL, .details = "{\"what\":\"colour\"}" },
	  "command 2, set: it sets 'colour'" },
	{ { .kind = TS_COMMAND_SET, .object = CUDA_MEMORY, .details = "{\"what\":\"limit\"}" },
	  "command 2, set: it sets a limit of object 9, a memory" },
	{ { .kind = TS_COMMAND_SET, .details = "{\"what\":\"limit\"}" },
	  "command 2, set: its object is missing" },
	{ { .kind = TS_COMMAND_SYNC, .object = CUDA_MEMORY, .details = "{\"what\":\"free\"}" },
	  "command 2, sync: it waits for object 9, a memory" },
};

TS_TEST(bad_commands)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(bad_commands); i++) {
		begin();
		cuda_begin(&fixture, 1, 0);
		fixture_command(&fixture, &bad_commands[i].command);
		refuse(TS_EFORMAT, bad_commands[i].message);
	}
}

/* Bytes that would be taken from, or written, where nothing was checked. */
TS_TEST(bad_bytes_of_the_host)
{
	begin();
	cuda_begin(&fixture, 1, 0);
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_COPY,
						   .queue = CUDA_STREAM,
						   .object = CUDA_MEMORY,
						   .other = CUDA_MEMORY,
						   .other_offset = 4096,
						   .bytes = 4096,
						   .blob = fixture_blob(&fixture, "0123", 4) });
	refuse(TS_EFORMAT,
	       "command 2, copy of memory 9 to memory 9: it has a source, and bytes of the host");
	begin();
	cuda_begin(&fixture, 1, 0);
	fixture_command(
		&fixture,
		&(struct fixture_command){
			.kind = TS_COMMAND_HOST_WRITE,
			.object = CUDA_HOST_MEMORY,
			.offset = CUDA_HOST - 4096,
			.bytes = 4,
			.blob = fixture_blob(&fixture, "0123", 4),
			.details = "{\"rect\":{\"region\":[4,1,1],\"to\":{\"origin\":[4096,0,0],"
				   "\"row\":0,\"slice\":0}}}" });
	refuse(TS_EFORMAT, "command 2, host write to memory 10: it writes a rectangle of a buffer");
}

static void add_fill(int64_t offset, int64_t bytes, size_t pattern, const char *details)
{
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_FILL,
						   .queue = CUDA_STREAM,
						   .object = CUDA_MEMORY,
						   .offset = offset,
						   .bytes = bytes,
						   .blob = fixture_blob(&fixture, "0123", pattern),
						   .details = details });
}

TS_TEST(fills)
{
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	add_fill(16, 64, 1, "{}");
	add_fill(16, 64, 4, "{\"rect\":{\"region\":[16,4,1],\"to\":{\"row\":32}}}");
	stream = load();
	TS_CHECK(!stream->commands[0].unreplayable && !stream->commands[1].unreplayable);
	TS_CHECK(stream->commands[1].is_rect);
	TS_CHECK_INT(stream->commands[1].bytes, 64);
	TS_CHECK_INT(stream->commands[1].writes[0].offset, 16);
	TS_CHECK_INT(stream->commands[1].writes[0].bytes, 3 * 32 + 16);
	done(stream);
	begin();
	cuda_begin(&fixture, 1, 0);
	add_fill(0, 64, 3, "{}");
	refuse(TS_EFORMAT, "command 2, fill of memory 9: a pattern of 3 bytes cannot fill 64");
	begin();
	cuda_begin(&fixture, 1, 0);
	add_fill(0, 64, 4, "{\"rect\":{\"region\":[2,32,1],\"to\":{\"row\":32}}}");
	refuse(TS_EFORMAT, "command 2, fill of memory 9: a pattern of 4 bytes cannot fill 64");
}

/* ---- pieces ---- */

TS_TEST(pieces)
{
	static char content[4096];
	const struct ts_replay_object_info *object;
	struct ts_replay_stream *stream;
	char bytes[4];
	int64_t open;

	begin();
	open = cuda_begin(&fixture, 1, 3);
	cuda_piece(&fixture, open, CUDA_MEMORY, CUDA_PAGE, "aaaa", 4);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	/* Behind commands, and not in order. */
	cuda_piece(&fixture, open, CUDA_MEMORY, 0, content, sizeof(content));
	cuda_piece(&fixture, open, CUDA_VARIABLE, 8, "bbbb", 4);
	fixture_finish(&fixture, 1, NULL);
	stream = load();
	TS_CHECK(!stream->failed);
	object = object_of(stream, CUDA_MEMORY);
	TS_CHECK_INT(object->piece_count, 2);
	TS_CHECK(object->pieces[0].offset == 0 && object->pieces[0].bytes == sizeof(content));
	TS_CHECK(object->pieces[1].offset == CUDA_PAGE && object->pieces[1].bytes == 4);
	TS_CHECK_INT(ts_replay_blob_read(reader, &object->pieces[1].blob, bytes, NULL), 0);
	TS_CHECK(!memcmp(bytes, "aaaa", 4));
	TS_CHECK_INT(object_of(stream, CUDA_VARIABLE)->piece_count, 1);
	TS_CHECK_INT(stream->commands[0].check_count, 0);
	TS_CHECK_INT(stream->final_count, 0);
	done(stream);
}

static void show(const char *failed)
{
	struct ts_replay_stream *stream;
	struct ts_error err;

	TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
	TS_CHECK_INT(ts_replay_stream_load_to_show(&stream, reader, NULL, 0, &err), 0);
	TS_CHECK_STR(stream->failed, failed);
	TS_CHECK_INT(stream->command_count, 1);
	ts_replay_stream_free(stream);
	ts_reader_close(reader);
	unlink(path);
}

static void refuse_and_show(const char *why)
{
	struct ts_replay_stream *stream;
	struct ts_error err;
	char message[256];

	snprintf(message, sizeof(message), "window 1 cannot be replayed: %s", why);
	TS_CHECK_INT(load_any(&stream, &err), TS_EFORMAT);
	TS_CHECK_STR(err.message, message);
	ts_reader_close(reader);
	show(why);
}

TS_TEST(missing_pieces)
{
	int64_t open;

	/* Killed: OPEN did not know the number. */
	begin();
	open = fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_OPEN,
								    .details = "{\"window\":1}" });
	cuda_piece(&fixture, open, CUDA_MEMORY, 0, "aaaa", 4);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	refuse_and_show("the program ended before the contents of its memory were stored");

	begin();
	open = cuda_begin(&fixture, 1, 3);
	cuda_piece(&fixture, open, CUDA_MEMORY, 0, "aaaa", 4);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	refuse_and_show("2 of 3 pieces of the memory it begins with are missing: the program "
			"ended before they were stored");

	begin();
	open = cuda_begin(&fixture, 1, 1);
	cuda_piece(&fixture, open, CUDA_MEMORY, 0, "aaaa", 4);
	cuda_piece(&fixture, open, CUDA_MEMORY, 4, "aaaa", 4);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	refuse_and_show("it has 2 pieces of the memory it begins with, not 1");
}

/* Pieces of memory that came inside the window are not among those that OPEN counts. */
TS_TEST(more_pieces)
{
	struct ts_replay_stream *stream;
	int64_t open;

	begin();
	open = cuda_begin(&fixture, 1, 1);
	cuda_piece(&fixture, open, CUDA_MEMORY, 0, "aaaa", 4);
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_CHECK,
						   .sequence = open,
						   .object = CUDA_MEMORY,
						   .offset = 4,
						   .bytes = 4,
						   .blob = fixture_blob(&fixture, "bbbb", 4),
						   .details = "{\"why\":\"open\",\"more\":true}" });
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	stream = load();
	TS_CHECK_INT(object_of(stream, CUDA_MEMORY)->piece_count, 2);
	done(stream);
}

/* CLOSE has the number; and a window without its pieces does not hide the next one. */
TS_TEST(windows_with_pieces)
{
	struct ts_replay_stream *stream;
	int64_t open;

	begin();
	cuda_begin(&fixture, 1, 2);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	fixture_finish(&fixture, 1, NULL);
	cuda_objects(&fixture);
	open = fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_OPEN,
								    .details = "{\"window\":2}" });
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	cuda_piece(&fixture, open, CUDA_MEMORY, 0, "aaaa", 4);
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_CLOSE,
						   .sequence = fixture.sequence,
						   .details = "{\"window\":2,\"pieces\":1}" });
	stream = load();
	TS_CHECK_INT(stream->window, 2);
	TS_CHECK_INT(object_of(stream, CUDA_MEMORY)->piece_count, 1);
	done(stream);
}

static void begin_piece(int64_t memory, int64_t offset, const char *content, int64_t bytes)
{
	begin();
	cuda_piece(&fixture, cuda_begin(&fixture, 1, 1), memory, offset, content, bytes);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
}

TS_TEST(bad_pieces)
{
	struct ts_replay_stream *stream;
	int64_t open;

	begin_piece(CUDA_KERNEL, 0, "aaaa", 4);
	refuse(TS_EFORMAT, "a piece of the snapshot (4 bytes at 0): its memory is missing");
	begin_piece(CUDA_VARIABLE, 62, "aaaa", 4);
	refuse(TS_EFORMAT, "a piece of the snapshot (4 bytes at 62): it exceeds its memory");
	begin();
	open = cuda_begin(&fixture, 1, 1);
	fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_CHECK,
							     .sequence = open,
							     .object = CUDA_MEMORY,
							     .bytes = 8,
							     .blob = fixture_blob(&fixture, "a", 1),
							     .details = "{\"why\":\"open\"}" });
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	refuse(TS_EFORMAT, "a piece of the snapshot (8 bytes at 0): its content has another size");
	begin_piece(CUDA_MEMORY, 4 * CUDA_PAGE - 2, "aaaa", 4);
	stream = load();
	TS_CHECK_STR(object_of(stream, CUDA_MEMORY)->unreplayable,
		     "a piece of its content at 8388606 is not mapped");
	done(stream);
	begin();
	open = cuda_begin(&fixture, 1, 2);
	cuda_piece(&fixture, open, CUDA_MEMORY, 16, "aaaa", 4);
	cuda_piece(&fixture, open, CUDA_MEMORY, 18, "aaaa", 4);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	stream = load();
	TS_CHECK_STR(object_of(stream, CUDA_MEMORY)->unreplayable,
		     "pieces of its content at 18 overlap");
	done(stream);
}

/* ---- pages ---- */

static const uint64_t pairs[][2] = { { 0, 11 }, { 2 << 20, 12 }, { 4 << 20, 13 } };

TS_TEST(pages)
{
	const struct ts_replay_check *check;
	struct ts_replay_stream *stream;
	int64_t first, second;

	begin();
	cuda_begin(&fixture, 1, 0);
	first = cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	cuda_pages(&fixture, first, CUDA_MEMORY, pairs, 3, "each");
	second = cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	cuda_pages(&fixture, second, CUDA_MEMORY, pairs, 1, "each");
	cuda_pages(&fixture, second, CUDA_VARIABLE, pairs, 1, "each");
	cuda_pages(&fixture, second, CUDA_MEMORY, pairs, 3, "final");
	cuda_pages(&fixture, second, CUDA_HOST_MEMORY, NULL, 0, "final");
	fixture_finish(&fixture, 1, NULL);
	stream = load();
	check = stream->commands[0].checks;
	TS_CHECK_INT(stream->commands[0].check_count, 1);
	TS_CHECK(check->has_pages && check->page_count == 3 && !check->is_change);
	TS_CHECK_INT(check->blob.bytes, 48);
	TS_CHECK_INT(stream->commands[1].check_count, 2);
	check = stream->commands[1].checks;
	TS_CHECK(check[0].page_count == 1 && check[0].is_change);
	TS_CHECK(check[1].page_count == 1 && !check[1].is_change);
	TS_CHECK_INT(stream->final_count, 2);
	check = stream->final_checks;
	TS_CHECK(check[0].page_count == 3 && !check[0].is_change);
	TS_CHECK(check[1].has_pages && check[1].page_count == 0);
	done(stream);
}

TS_TEST(bad_pages)
{
	int64_t sequence;

	begin();
	cuda_begin(&fixture, 1, 0);
	sequence = cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	fixture_command(&fixture,
			&(struct fixture_command){
				.kind = TS_COMMAND_CHECK,
				.sequence = sequence,
				.object = CUDA_MEMORY,
				.blob = fixture_blob(&fixture, pairs, 32),
				.details = "{\"pages\":1152921504606846978,\"why\":\"each\"}" });
	refuse(TS_EFORMAT, "a check of command 2: its list of pages has another size");
	begin();
	fixture_object(&fixture, TS_OBJECT_MEMORY, CUDA_NEXT, CUDA_CONTEXT, NULL, 64, 0, "");
	cuda_begin(&fixture, 1, 0);
	sequence = cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	cuda_pages(&fixture, sequence, CUDA_NEXT, pairs, 1, "each");
	refuse(TS_EFORMAT, "a check of command 2: its memory has no pages");
}
