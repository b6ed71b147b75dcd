/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command streams: objects, commands and blobs as rows, over windows, successors and files; and
 * inconsistent streams.
 */
#include "base/local/hash.h"
#include "trace/extract.h"

#include "unit/record/decode/decode_support.h"

static int64_t at(uint64_t counter)
{
	return 5000000000 + (int64_t)counter - (int64_t)STARTED;
}

static const struct ts_live_command plain_command = { .kind = TS_COMMAND_LAUNCH,
						      .offset = TS_ABSENT,
						      .other_offset = TS_ABSENT,
						      .bytes = TS_ABSENT };

static void put_kind(struct fixture *fixture, uint64_t sequence, uint64_t kind, const char *details)
{
	struct ts_live_command command = plain_command;

	command.sequence = sequence;
	command.kind = kind;
	put_command(fixture, &command, details);
}

static char *make_content(uint64_t bytes, uint64_t seed)
{
	char *content = malloc(bytes + 1);

	TS_CHECK(content != NULL);
	for (uint64_t i = 0; i < bytes; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		content[i] = (char)(seed >> 59);
	}
	return content;
}

static void check_content(struct ts_reader *reader, int64_t blob, const char *content,
			  uint64_t bytes)
{
	TS_AUTO_FREE char *back = malloc(bytes + 1);
	struct ts_error err = { 0 };
	uint64_t found = 0;

	TS_CHECK_INT(ts_reader_blob_size(reader, blob, &found, &err), 0);
	TS_CHECK_INT(found, bytes);
	if (ts_reader_blob_read(reader, blob, 0, back, bytes, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK(memcmp(back, content, bytes) == 0);
}

TS_TEST(objects_and_commands_are_rows_with_ids)
{
	struct ts_live_command copy = plain_command;
	const struct ts_object_row *object;
	const struct ts_thread_row *thread;
	struct ts_command_row row;
	struct fixture fixture;
	uint64_t described, given;
	struct rows rows;

	start(&fixture);
	put_blob(&fixture, 1, "code", 4);
	put_blob(&fixture, 2, "four", 4);
	described = fixture.counter;
	put_object(&fixture, 10, TS_OBJECT_CONTEXT, 0, TS_ABSENT, 0, "", "{\"devices\": [1]}");
	put_object(&fixture, 11, TS_OBJECT_STREAM, 10, TS_ABSENT, 0, "", "");
	put_object(&fixture, 12, TS_OBJECT_MODULE, 10, TS_ABSENT, 1, "saxpy.cl",
		   "{ \"binaries\": [ {\"device\": 1, \"blob\": 2}, {\"device\":2,\"blob\":1} ],"
		   " \"options\": \"\\\"blob\\\":2\" }");
	put_object(&fixture, 13, TS_OBJECT_MEMORY, 10, 4096, 0, "", "{}");
	copy.sequence = 5;
	copy.kind = TS_COMMAND_COPY;
	copy.queue = 11;
	copy.object = 13;
	copy.offset = 64;
	copy.bytes = 4;
	copy.blob = 2;
	copy.correlation = 77;
	copy.serial = 1;
	given = fixture.counter;
	put_command(&fixture, &copy, "{\"call\": \"clEnqueueWriteBuffer\", \"event\": 14}");
	put_gone(&fixture, 13);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).events, 0);
	TS_CHECK_INT(counts(&fixture).commands, 1);
	TS_CHECK_INT(counts(&fixture).blob_bytes, 8);
	finish(&fixture);

	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.start, at(given));
	TS_CHECK_INT(row.sequence, 5);
	TS_CHECK_INT(row.kind, TS_COMMAND_COPY);
	TS_CHECK_INT(row.offset, 64);
	TS_CHECK_INT(row.other, 0);
	TS_CHECK_INT(row.other_offset, TS_ABSENT);
	TS_CHECK_INT(row.bytes, 4);
	TS_CHECK_INT(row.correlation, 77);
	TS_CHECK(row.process != 0);
	TS_CHECK_STR(rows_text(&rows, row.details),
		     "{\"call\":\"clEnqueueWriteBuffer\",\"event\":14}");
	thread = ts_reader_entity(rows.reader, TS_TABLE_THREAD, row.thread);
	TS_CHECK_INT(thread->tid, PID);
	check_content(rows.reader, row.blob, "four", 4);
	object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, row.queue);
	TS_CHECK_INT(object->kind, TS_OBJECT_STREAM);
	TS_CHECK_STR(rows_text(&rows, object->details), "{\"number\":11}");
	TS_CHECK_INT(object->process, row.process);
	TS_CHECK_INT(object->destroyed, TS_ABSENT);
	object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, object->parent);
	TS_CHECK_INT(object->created, at(described));
	TS_CHECK_STR(rows_text(&rows, object->details), "{\"number\":10,\"devices\":[1]}");
	object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, row.object);
	TS_CHECK_INT(object->bytes, 4096);
	TS_CHECK_INT(object->address, 0x7f000000 + 13);
	TS_CHECK_INT(object->destroyed, at(given + 1));
	object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, row.object - 1);
	TS_CHECK_STR(rows_text(&rows, object->name), "saxpy.cl");
	check_content(rows.reader, object->blob, "code", 4);
	/* Blob numbers become ids; text that only looks like one does not. */
	TS_CHECK_STR(rows_text(&rows, object->details),
		     "{\"number\":12,\"binaries\":[{\"device\":1,\"blob\":2},{\"device\":2,"
		     "\"blob\":1}],\"options\":\"\\\"blob\\\":2\"}");
	rows_close(&rows);
}

TS_TEST(blobs_of_any_size_come_back)
{
	static const uint64_t sizes[] = {
		1, 7, 8, 15360, 15361, 1 << 20, (1 << 20) + 1, 3 << 20, 5 * 1000 * 1000
	};
	char *contents[TS_ARRAY_SIZE(sizes)];
	struct ts_command_row row;
	struct fixture fixture;
	struct rows rows;

	start(&fixture);
	for (size_t i = 0; i < TS_ARRAY_SIZE(sizes); i++) {
		struct ts_live_command command = plain_command;

		contents[i] = make_content(sizes[i], i + 1);
		put_blob(&fixture, i + 1, contents[i], sizes[i]);
		command.blob = i + 1;
		command.sequence = i;
		put_command(&fixture, &command, "");
		drain(&fixture);
	}
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	for (size_t i = 0; i < TS_ARRAY_SIZE(sizes); i++) {
		TS_CHECK(rows_next(&rows, &row));
		check_content(rows.reader, row.blob, contents[i], sizes[i]);
		free(contents[i]);
	}
	rows_close(&rows);
}

TS_TEST(equal_rows_are_stored_once)
{
	TS_AUTO_FREE char *content = make_content(3 << 20, 9);
	struct ts_command_row row;
	struct fixture fixture;
	int64_t first = 0;
	struct rows rows;

	start(&fixture);
	/* The third differs in its last row only, the fourth in its first. */
	for (uint64_t i = 1; i <= 4; i++) {
		struct ts_live_command command = plain_command;

		if (i == 3)
			content[(3 << 20) - 1] ^= 1;
		if (i == 4)
			content[0] ^= 1;
		put_blob(&fixture, i, content, 3 << 20);
		command.blob = i;
		put_command(&fixture, &command, "");
		drain(&fixture);
	}
	TS_CHECK_INT(counts(&fixture).blob_bytes, 12 << 20);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_BLOB), 3 + 1 + 3);
	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	for (int i = 0; i < 4; i++) {
		TS_CHECK(rows_next(&rows, &row));
		if (i == 0)
			first = row.blob;
		if (i == 1)
			TS_CHECK_INT(row.blob, first);
		if (i == 2)
			TS_CHECK(row.blob != first);
	}
	check_content(rows.reader, row.blob, content, 3 << 20);
	rows_close(&rows);
}

/* Commands outside all windows are in the trace, too; no window counts their events. */
TS_TEST(windows_leave_nothing_out)
{
	struct fixture fixture;

	start(&fixture);
	put_window(&fixture, TS_LIVE_WINDOW_CLOSE, STARTED);
	put_kind(&fixture, 1, TS_COMMAND_LAUNCH, "");
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).outside, 0);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_COMMAND), 1);
}

TS_TEST(each_window_has_objects_of_its_own)
{
	const struct ts_object_row *object;
	struct ts_command_row row;
	struct fixture fixture;
	struct rows rows;
	int launches = 0;

	start(&fixture);
	for (uint64_t window = 1; window <= 2; window++) {
		struct ts_live_command command = plain_command;
		char content[16];

		snprintf(content, sizeof(content), "content %llu", (unsigned long long)window);
		put_blob(&fixture, window, content, 9);
		put_object(&fixture, 7, TS_OBJECT_MEMORY, 0, 9, window, "", "");
		put_kind(&fixture, 1, TS_COMMAND_OPEN, "{\"window\":1}");
		/* Described again inside the window: nothing changes. */
		put_object(&fixture, 7, TS_OBJECT_MEMORY, 0, 9, window, "again", "");
		command.object = 7;
		put_command(&fixture, &command, "");
		command.kind = TS_COMMAND_CHECK;
		command.blob = window == 2 ? window : 0;
		put_command(&fixture, &command, "");
		put_kind(&fixture, 3, TS_COMMAND_CLOSE,
			 window == 2 ? "{\"window\":2,\"failed\":\"the \\\"disk\\\" was full\"}"
				     : "{\"window\":1}");
	}
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).replayable_windows, 1);
	TS_CHECK_INT(counts(&fixture).failed_windows, 1);
	TS_CHECK_STR(counts(&fixture).not_replayable, "the \"disk\" was full");
	TS_CHECK_INT(counts(&fixture).commands, 2);
	TS_CHECK_INT(counts(&fixture).checks, 2);
	TS_CHECK_INT(counts(&fixture).kept_checks, 1);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	while (rows_next(&rows, &row)) {
		char content[32];

		if (row.kind != TS_COMMAND_LAUNCH)
			continue;
		snprintf(content, sizeof(content), "content %d", ++launches);
		object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, row.object);
		TS_CHECK_STR(rows_text(&rows, object->name), "again");
		TS_CHECK(object->created < row.start);
		check_content(rows.reader, object->blob, content, 9);
	}
	TS_CHECK_INT(launches, 2);
	rows_close(&rows);
}

/* Rows that continue a list have the columns of the first; what ends the object repeats the first.
 */
TS_TEST(lists_continue_in_further_rows)
{
	static const char *const lists[] = { "[[0,4096]]", "[[4096,4096]]", "[[8192,1]]",
					     "[[0,4096]]" };
	struct ts_object_row row;
	struct fixture fixture;
	struct rows rows;
	int count = 0;

	start(&fixture);
	put_object(&fixture, 6, TS_OBJECT_DEVICE, 0, 0, 0, "", "");
	put_object(&fixture, 7, TS_OBJECT_MEMORY, 6, 1 << 20, 0, "arena",
		   "{\"sparse\":true,\"mapped\":[[0,4096]]}");
	put_object(&fixture, 7, TS_OBJECT_MEMORY, 0, 0, 0, "",
		   "{\"more\":true,\"mapped\":[[4096,4096]]}");
	put_object(&fixture, 7, TS_OBJECT_MEMORY, 0, 0, 0, "",
		   "{\"mapped\":[[8192,1]],\"more\": true}");
	put_gone(&fixture, 7);
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_OBJECT);
	while (rows_next(&rows, &row)) {
		const char *details = rows_text(&rows, row.details);

		if (row.kind != TS_OBJECT_MEMORY)
			continue;
		TS_CHECK(strstr(details, "{\"number\":7,") && strstr(details, lists[count]));
		TS_CHECK(row.bytes == 1 << 20 && row.parent > 0);
		TS_CHECK_STR(rows_text(&rows, row.name), "arena");
		TS_CHECK((row.destroyed == TS_ABSENT) == (count < 3));
		count++;
	}
	TS_CHECK_INT(count, 4);
	rows_close(&rows);
}

TS_TEST(a_window_that_could_not_open_is_told)
{
	struct fixture fixture;

	start(&fixture);
	put_kind(&fixture, 0, TS_COMMAND_CLOSE,
		 "{\"window\":1,\"failed\":\"user event 12 is not set\"}");
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).replayable_windows, 0);
	TS_CHECK_INT(counts(&fixture).failed_windows, 1);
	TS_CHECK_STR(counts(&fixture).not_replayable, "user event 12 is not set");
	finish(&fixture);
}

/* ---- successors ---- */

/* A successor takes over at every point of a blob, and the content is the same. */
TS_TEST(a_successor_goes_on_inside_a_blob)
{
	const uint64_t bytes = (2 << 20) + 12345;
	TS_AUTO_FREE char *content = make_content(bytes, 4);
	struct ts_live_command command = plain_command;
	const struct ts_object_row *object;
	struct ts_command_row row;
	struct fixture fixture;
	struct rows rows;
	int parts = 0;

	start(&fixture);
	put_blob(&fixture, 1, "code", 4);
	put_object(&fixture, 5, TS_OBJECT_MODULE, 0, TS_ABSENT, 1, "kernels", "{\"a\":1}");
	put_kind(&fixture, 1, TS_COMMAND_OPEN, "{\"window\":1}");
	for (uint64_t done = 0; done < bytes; done += TS_LIVE_BLOB_PART) {
		put_blob_part(&fixture, 2, bytes, done, content + done,
			      TS_MIN(bytes - done, TS_LIVE_BLOB_PART));
		if (parts++ % 20 == 0) {
			drain(&fixture);
			succeed(&fixture);
		}
	}
	drain(&fixture);
	succeed(&fixture);
	command.blob = 2;
	command.object = 5;
	put_command(&fixture, &command, "");
	/* A blob stored before the change is known by its number. */
	command.blob = 1;
	put_command(&fixture, &command, "");
	put_gone(&fixture, 5);
	put_kind(&fixture, 3, TS_COMMAND_CLOSE, "{\"window\":1}");
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).replayable_windows, 1);
	TS_CHECK_INT(counts(&fixture).blob_bytes, bytes + 4);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	TS_CHECK(rows_next(&rows, &row) && rows_next(&rows, &row));
	check_content(rows.reader, row.blob, content, bytes);
	object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, row.object);
	TS_CHECK_STR(rows_text(&rows, object->name), "kernels");
	TS_CHECK_STR(rows_text(&rows, object->details), "{\"number\":5,\"a\":1}");
	TS_CHECK(object->destroyed != TS_ABSENT);
	TS_CHECK(rows_next(&rows, &row));
	check_content(rows.reader, row.blob, "code", 4);
	rows_close(&rows);
	TS_CHECK_INT(losses_of(fixture.path, "blobs", ""), 0);
}

/* The state of a failed rotation: ids of the other file are not taken over. */
TS_TEST(another_file_has_no_ids_of_the_first)
{
	for (int crashed = 0; crashed < 2; crashed++) {
		TS_AUTO_FREE char *content = make_content(3 << 20, 4);
		struct ts_live_command command = plain_command;
		const struct ts_object_row *object;
		struct ts_command_row row;
		struct fixture fixture;
		struct rows rows;

		start(&fixture);
		put_kind(&fixture, 1, TS_COMMAND_OPEN, "{\"window\":1}");
		put_blob(&fixture, 1, "code", 4);
		put_object(&fixture, 5, TS_OBJECT_MODULE, 0, TS_ABSENT, 1, "kernels", "");
		for (uint64_t done = 0; done < (2 << 20); done += 8192)
			put_blob_part(&fixture, 2, 3 << 20, done, content + done, 8192);
		drain(&fixture);
		TS_CHECK_INT(ts_decoder_seal(fixture.decoder), 0);
		TS_CHECK_INT(ts_writer_finish(fixture.writer, NULL), 0);
		if (crashed) {
			struct ts_writer *old = fixture.writer;
			struct ts_block_sink sink = { .append = give_next, .context = &fixture };
			struct ts_block block = { .type = TS_BLOCK_OPEN,
						  .bytes = sizeof(fixture.open) };

			open_file(&fixture, "t2.sbt");
			TS_CHECK_INT(ts_decoder_new(&fixture.next, NULL, NULL), 0);
			ts_decoder_set_writer(fixture.next, fixture.writer, false, "t2");
			TS_CHECK_INT(ts_decoder_block(fixture.next, &block, &fixture.open, NULL),
				     0);
			TS_CHECK_INT(ts_decoder_save_state(fixture.decoder, &sink, NULL), 0);
			ts_decoder_free(fixture.decoder);
			ts_writer_close(old);
			fixture.decoder = fixture.next;
		} else {
			ts_writer_close(fixture.writer);
			open_file(&fixture, "t2.sbt");
			TS_CHECK_INT(
				ts_decoder_set_writer(fixture.decoder, fixture.writer, true, "t2"),
				0);
		}
		for (uint64_t done = 2 << 20; done < (3 << 20); done += 8192)
			put_blob_part(&fixture, 2, 3 << 20, done, content + done, 8192);
		command.object = 5;
		command.blob = 2;
		put_command(&fixture, &command, "");
		put_blob(&fixture, 3, "code", 4);
		command.blob = 3;
		put_command(&fixture, &command, "");
		drain(&fixture);
		finish(&fixture);
		rows = rows_open(fixture.path, TS_TABLE_COMMAND);
		TS_CHECK(rows_next(&rows, &row));
		TS_CHECK_INT(row.blob, 0);
		object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, row.object);
		TS_CHECK_INT(object->kind, TS_OBJECT_MODULE);
		TS_CHECK_INT(object->blob, 0);
		TS_CHECK_STR(rows_text(&rows, object->details), "{\"number\":5}");
		TS_CHECK(rows_next(&rows, &row));
		check_content(rows.reader, row.blob, "code", 4);
		rows_close(&rows);
		TS_CHECK_INT(losses_of(fixture.path, "blobs", "a command or an object refers"), 1);
		TS_CHECK_INT(losses_of(fixture.path, "blobs", "its pieces"), 0);
	}
}

/* ---- inconsistent streams ---- */

TS_TEST(blobs_that_do_not_fit_are_named_by_nobody)
{
	static const struct {
		uint64_t number, bytes, offset, count;
	} second[] = {
		{ 1, 16, 9, 7 },          { 1, 16, 7, 8 }, { 1, 17, 8, 8 },
		{ 1, 16, 8, 9 },          { 2, 16, 8, 8 }, { 1, 16, 0, 8 },
		{ 1, 16, UINT64_MAX, 8 }, { 0, 16, 8, 8 }, { 1, 16, 8, 0 },
	};
	struct ts_live_command command = plain_command;

	command.blob = 1;
	for (size_t i = 0; i < TS_ARRAY_SIZE(second); i++) {
		struct ts_command_row row;
		struct fixture fixture;
		struct rows rows;

		start(&fixture);
		put_blob_part(&fixture, 1, 16, 0, "12345678", 8);
		put_blob_part(&fixture, second[i].number, second[i].bytes, second[i].offset,
			      "123456789", second[i].count);
		put_blob_part(&fixture, 1, 16, 8, "12345678", 8);
		put_command(&fixture, &command, "");
		drain(&fixture);
		finish(&fixture);
		TS_CHECK(losses_of(fixture.path, "blobs", "its pieces") >= 1);
		TS_CHECK_INT(losses_of(fixture.path, "blobs", "a command or an object refers"), 1);
		rows = rows_open(fixture.path, TS_TABLE_COMMAND);
		TS_CHECK(rows_next(&rows, &row));
		TS_CHECK_INT(row.blob, 0);
		rows_close(&rows);
	}
}

TS_TEST(a_blob_that_never_ends_is_no_loss)
{
	struct fixture fixture;

	start(&fixture);
	put_blob_part(&fixture, 1, INT64_MAX, 0, "12345678", 8);
	drain(&fixture);
	succeed(&fixture);
	put_blob(&fixture, 2, "abc", 3);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).blob_bytes, 3);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "blobs", ""), 0);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_BLOB), 1);
}

TS_TEST(unknown_numbers_and_bad_details_are_counted)
{
	struct ts_live_command command = plain_command;
	struct ts_command_row row;
	struct fixture fixture;
	struct rows rows;

	start(&fixture);
	put_object(&fixture, 3, TS_OBJECT_MEMORY, UINT64_MAX, -7, 99, "", "[1]");
	put_object(&fixture, 0, TS_OBJECT_MEMORY, 0, 0, 0, "", "");
	put_object(&fixture, 4, 4000000000u, 4, TS_ABSENT, 0, "", "{\"blob\":1e3,\"blob\":7}");
	put_gone(&fixture, 1234);
	command.queue = UINT64_MAX;
	command.object = 17;
	command.serial = UINT64_MAX;
	command.kind = UINT64_MAX;
	command.correlation = UINT64_MAX;
	put_command(&fixture, &command, "{\"a\":}");
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "objects", "a command or an object refers"), 3);
	TS_CHECK_INT(losses_of(fixture.path, "objects", "too many live objects"), 1);
	TS_CHECK_INT(losses_of(fixture.path, "blobs", "a command or an object refers"), 2);
	TS_CHECK_INT(losses_of(fixture.path, "details", ""), 2);
	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.queue, 0);
	TS_CHECK_INT(row.object, 0);
	TS_CHECK_INT(row.details, 0);
	TS_CHECK_INT(row.kind, TS_COMMAND_UNKNOWN);
	rows_close(&rows);
}

/*
 * Programs may create objects and blobs without end: removed ones are forgotten, and so are old
 * blob numbers.
 */
TS_TEST(streams_without_end_take_bounded_memory)
{
	struct ts_live_command command = plain_command;
	struct ts_command_row row;
	struct fixture fixture;
	struct rows rows;
	int commands = 0;

	start(&fixture);
	put_blob(&fixture, 1, "kept", 4);
	put_object(&fixture, 1, TS_OBJECT_MODULE, 0, TS_ABSENT, 1, "", "");
	for (uint64_t i = 2; i < 140000; i++) {
		char content[24];

		snprintf(content, sizeof(content), "%llu", (unsigned long long)i / 2);
		put_blob(&fixture, i, content, strlen(content));
		put_object(&fixture, i, TS_OBJECT_MEMORY, 1, 8, i, "", "");
		put_gone(&fixture, i);
		if (i % 1000 == 0)
			drain(&fixture);
	}
	/* A blob that an object refers to is known while the object lives; others are not. */
	command.blob = 1;
	command.object = 1;
	put_command(&fixture, &command, "");
	command.blob = 139999;
	put_command(&fixture, &command, "");
	drain(&fixture);
	succeed(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	while (rows_next(&rows, &row)) {
		TS_CHECK(row.blob != 0 && row.object != 0);
		check_content(rows.reader, row.blob, commands ? "69999" : "kept", commands ? 5 : 4);
		commands++;
	}
	TS_CHECK_INT(commands, 2);
	rows_close(&rows);
}

TS_TEST(too_many_live_objects_are_counted)
{
	struct fixture fixture;

	start(&fixture);
	for (uint64_t i = 1; i <= 262144 + 10; i++) {
		put_object(&fixture, i, TS_OBJECT_EVENT, 0, TS_ABSENT, 0, "", "");
		if (i % 1000 == 0)
			drain(&fixture);
	}
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "objects", "too many live objects"), 10);
}

/* A program whose bytes equal another's shares rows with it, and cannot corrupt them. */
TS_TEST(areas_do_not_mix)
{
	struct ts_live_command command = plain_command;
	const struct ts_object_row *object;
	struct ts_command_row row;
	struct fixture fixture;
	struct rows rows;
	int64_t process = 0;

	start(&fixture);
	put_blob(&fixture, 1, "same", 4);
	put_object(&fixture, 1, TS_OBJECT_MEMORY, 0, 4, 1, "mine", "");
	command.object = 1;
	command.blob = 1;
	put_command(&fixture, &command, "");
	drain(&fixture);
	put_thread(&fixture.ring, fixture.counter++, 1, PID + 1, 0, "main");
	/* The same numbers, and half a blob of that number. */
	put_blob_part(&fixture, 1, 8, 0, "half", 4);
	put_object(&fixture, 1, TS_OBJECT_STREAM, 0, 4, 0, "yours", "");
	command.blob = 0;
	put_command(&fixture, &command, "");
	drain_area(&fixture, OTHER_AREA);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	for (int i = 0; i < 2; i++) {
		TS_CHECK(rows_next(&rows, &row));
		object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, row.object);
		TS_CHECK_STR(rows_text(&rows, object->name), i ? "yours" : "mine");
		TS_CHECK_INT(object->process, row.process);
		TS_CHECK(row.process != process);
		process = row.process;
	}
	rows_close(&rows);
}

static void put_stream_of_all(struct fixture *fixture)
{
	struct ts_live_command command = plain_command;

	put_blob(fixture, 1, "0123456789abcdef", 16);
	put_object(fixture, 1, TS_OBJECT_CONTEXT, 0, TS_ABSENT, 0, "context", "{\"devices\":[2]}");
	put_object(fixture, 2, TS_OBJECT_MODULE, 1, TS_ABSENT, 1, "code",
		   "{\"binaries\":[{\"device\":2,\"blob\":1}]}");
	put_kind(fixture, 1, TS_COMMAND_OPEN, "{\"window\":1}");
	command.queue = command.object = 1;
	command.blob = 1;
	command.serial = 1;
	command.correlation = 3;
	put_command(fixture, &command, "{\"call\":\"x\"}");
	put_gone(fixture, 2);
	put_kind(fixture, 3, TS_COMMAND_CLOSE, "{\"failed\":\"why\"}");
}

/* Any word of any record may be arbitrary. */
TS_TEST(hostile_records_spoil_nobody_else)
{
	static const uint64_t values[] = { 0,          1,           UINT64_MAX, UINT64_C(1) << 63,
					   0xffffffff, 0x100000000, INT64_MAX,  15361 };
	TS_SCOPED(ts_text) good = { 0 };
	struct fixture fixture;
	size_t words;

	start(&fixture);
	put_stream_of_all(&fixture);
	ts_text_append(&good, fixture.ring.data, fixture.ring.length);
	drain(&fixture);
	finish(&fixture);
	words = good.length / 8;
	for (size_t word = 0; word < words; word++) {
		for (size_t i = 0; i < TS_ARRAY_SIZE(values); i++) {
			start(&fixture);
			ts_text_clear(&fixture.ring);
			ts_text_append(&fixture.ring, good.data, good.length);
			memcpy(fixture.ring.data + word * 8, &values[i], 8);
			drain(&fixture);
			if (i % 2)
				succeed(&fixture);
			put_thread(&fixture.ring, fixture.counter++, 1, PID + 1, 0, "main");
			put_stream_of_all(&fixture);
			drain_area(&fixture, OTHER_AREA);
			finish(&fixture);
			TS_CHECK(count_rows(fixture.path, TS_TABLE_COMMAND) >= 3);
		}
	}
}

/* Truncated or modified states do no harm. */
struct copied {
	struct ts_block blocks[32];
	char *payloads[32];
	size_t count;
};

static int copy_block(void *context, struct ts_block *block, const void *payload,
		      struct ts_error *err)
{
	struct copied *copied = context;

	(void)err;
	TS_CHECK(copied->count < TS_ARRAY_SIZE(copied->blocks));
	copied->blocks[copied->count] = *block;
	copied->payloads[copied->count] = malloc(block->bytes + 1);
	memcpy(copied->payloads[copied->count++], payload, block->bytes);
	return TS_OK;
}

TS_TEST(cut_and_changed_states_are_survived)
{
	struct copied copied = { .count = 0 };
	struct ts_block_sink sink = { .append = copy_block, .context = &copied };
	struct op op = { .name = "k", .correlation = 4, .start = 5000, .end = 6000 };
	struct fixture fixture;

	start(&fixture);
	put_stream_of_all(&fixture);
	put_object(&fixture, 8, TS_OBJECT_MEMORY, 1, 16, 1, "m", "");
	put_device_clock(&fixture, 0, STARTED + 4000, 100, 1);
	put_stream(&fixture, 0, 1, 1, 0, 0, "q");
	put_call(&fixture, "clEnqueueNDRangeKernel", 1, 4, 0);
	put_op(&fixture, &op);
	put_texts(&fixture, TS_LIVE_FACT, NULL, 0, "opencl", "1");
	put_blob_part(&fixture, 2, 100, 0, "123456789", 9);
	drain(&fixture);
	TS_CHECK_INT(ts_decoder_seal(fixture.decoder), 0);
	TS_CHECK_INT(ts_decoder_save_state(fixture.decoder, &sink, NULL), 0);
	finish(&fixture);
	for (uint32_t turn = 0; turn < 1200; turn++) {
		start(&fixture);
		ts_decoder_free(fixture.decoder);
		/* Every other one in the same file, as far as it knows. */
		fixture.open.trace_bytes = turn % 2 ? 64 : 0;
		open_decoder(&fixture);
		for (size_t i = 0; i < copied.count; i++) {
			struct ts_block block = copied.blocks[i];
			char *payload;

			if (block.type == TS_BLOCK_STATE && turn < 400)
				block.bytes -= TS_MIN(turn / 2 * 8, block.bytes);
			payload = malloc(block.bytes ? block.bytes : 1);
			memcpy(payload, copied.payloads[i], block.bytes);
			for (uint32_t k = 0; block.type == TS_BLOCK_STATE && turn >= 400 && k < 3;
			     k++)
				if (block.bytes)
					payload[ts_hash_mix64(turn * 8 + k) % block.bytes] ^=
						(char)(ts_hash_mix64(turn * 31 + k) | 1);
			TS_CHECK_INT(ts_decoder_block(fixture.decoder, &block, payload, NULL), 0);
			free(payload);
		}
		fixture.sides[0].position = 1 << 20;
		ts_text_clear(&fixture.ring);
		put_thread(&fixture.ring, fixture.counter++, 1, PID, 0, "main");
		put_blob_part(&fixture, 2, 100, 9, "123456789", 9);
		put_op(&fixture, &op);
		put_object(&fixture, 8, TS_OBJECT_MEMORY, 1, 16, 1, "m", "");
		put_stream_of_all(&fixture);
		drain(&fixture);
		TS_CHECK_INT(ts_decoder_finish(fixture.decoder), 0);
		TS_CHECK_INT(ts_writer_finish(fixture.writer, NULL), 0);
		ts_decoder_free(fixture.decoder);
		ts_writer_close(fixture.writer);
		ts_text_release(&fixture.ring);
		check_finished(fixture.path);
	}
	for (size_t i = 0; i < copied.count; i++)
		free(copied.payloads[i]);
}

/* ---- a window in its own file ---- */

TS_TEST(a_part_of_a_trace_has_its_command_stream)
{
	const char *part = file_in_folder("part.sbt");
	TS_AUTO_FREE char *large = make_content((2 << 20) + 99, 77);
	struct ts_extract_filter filter = { .pid = PID, .commands = true };
	const struct ts_object_row *object;
	struct ts_command_row row;
	struct fixture fixture;
	struct rows rows;
	int found = 0;

	start(&fixture);
	for (uint64_t window = 1; window <= 3; window++) {
		struct ts_live_command command = plain_command;

		large[0] = (char)window;
		put_blob(&fixture, window * 10 + 1, large, (2 << 20) + 99);
		put_blob(&fixture, window * 10 + 2, "binary", 6);
		if (window == 2)
			filter.from_ns = at(fixture.counter);
		put_object(&fixture, 1, TS_OBJECT_CONTEXT, 0, TS_ABSENT, 0, "", "");
		put_object(&fixture, 2, TS_OBJECT_MEMORY, 1, (2 << 20) + 99, window * 10 + 1, "",
			   "");
		put_object(&fixture, 3, TS_OBJECT_MODULE, 1, TS_ABSENT, 0, "",
			   window == 2 ? "{\"binaries\":[{\"device\":1,\"blob\":22}]}" : "");
		put_kind(&fixture, 1, TS_COMMAND_OPEN, "{}");
		command.object = 2;
		put_command(&fixture, &command, "{\"w\":1}");
		if (window == 2)
			filter.to_ns = at(fixture.counter);
		fixture.counter += 100;
		/* The program closes it some time after the request. */
		put_kind(&fixture, 3, TS_COMMAND_CHECK, "{\"hash\":\"1\"}");
		put_kind(&fixture, 3, TS_COMMAND_CLOSE, "{}");
	}
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(ts_extract(fixture.path, part, &filter, NULL), 0);
	check_finished(part);
	rows = rows_open(part, TS_TABLE_COMMAND);
	large[0] = 2;
	while (rows_next(&rows, &row)) {
		found++;
		if (row.kind != TS_COMMAND_LAUNCH)
			continue;
		object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, row.object);
		check_content(rows.reader, object->blob, large, (2 << 20) + 99);
		TS_CHECK(ts_reader_entity(rows.reader, TS_TABLE_OBJECT, object->parent) != NULL);
		object = ts_reader_entity(rows.reader, TS_TABLE_OBJECT, row.object + 1);
		/* Blob ids in details are those of the new file. */
		TS_CHECK_STR(rows_text(&rows, object->details),
			     "{\"number\":3,\"binaries\":[{\"device\":1,\"blob\":4}]}");
		check_content(rows.reader, 4, "binary", 6);
	}
	TS_CHECK_INT(found, 4);
	TS_CHECK_INT(ts_reader_rows(rows.reader, TS_TABLE_OBJECT), 3);
	TS_CHECK_INT(ts_reader_rows(rows.reader, TS_TABLE_BLOB), 4);
	rows_close(&rows);
	/* Without commands nothing of them is extracted. */
	filter.commands = false;
	TS_CHECK_INT(ts_extract(fixture.path, part, &filter, NULL), 0);
	TS_CHECK_INT(count_rows(part, TS_TABLE_COMMAND), 0);
	TS_CHECK_INT(count_rows(part, TS_TABLE_BLOB), 0);
}
