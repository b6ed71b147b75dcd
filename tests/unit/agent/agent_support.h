/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of src/agent: the agent runs inside the test, which reads the area as a recorder does.
 * Each test has one area in its own folder. A forked child has another area and calls
 * agent_open_reader() itself.
 */
#ifndef TS_TESTS_UNIT_AGENT_AGENT_SUPPORT_H
#define TS_TESTS_UNIT_AGENT_AGENT_SUPPORT_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/replay.h>
#include <tracesmith/schema.h>

#include "agent/tracer.h"
#include "base/text.h"
#include "live/area.h"
#include "live/discover.h"
#include "unit/runner.h"

#define SUPPORT __attribute__((unused)) static
#define RINGS_AT_MOST 64

/* What was drained from an area, by ring. */
struct agent_reader {
	int directory_fd;
	struct ts_area *area;
	struct ts_text rings[RINGS_AT_MOST];
	uint64_t dropped;
};

static char agent_folder[64];

/* ---- the area ---- */

/* TRACESMITH_AGENT is "session=1234;" followed by `settings`. */
SUPPORT void agent_begin(const char *settings)
{
	char text[512];

	snprintf(agent_folder, sizeof(agent_folder), "%s/ts-agent-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	TS_CHECK(mkdtemp(agent_folder) != NULL);
	setenv("TRACESMITH_LIVE_DIR", agent_folder, 1);
	snprintf(text, sizeof(text), "session=1234;%s", settings);
	setenv("TRACESMITH_AGENT", text, 1);
	agent_load();
}

SUPPORT struct ts_live_control *agent_control(void)
{
	TS_CHECK(ts_process_tracer.core && ts_process_tracer.core->control);
	return ts_process_tracer.core->control;
}

/* Opens the area of this process in its current state. */
SUPPORT void agent_open_reader(struct agent_reader *reader)
{
	const char *name;

	*reader = (struct agent_reader){ .directory_fd = -1 };
	agent_control();
	name = strrchr(ts_process_tracer.core->path, '/') + 1;
	reader->directory_fd = open(agent_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TS_CHECK(reader->directory_fd >= 0);
	TS_CHECK_INT(ts_area_open(&reader->area, reader->directory_fd, name, true, NULL), 0);
}

SUPPORT void agent_close_reader(struct agent_reader *reader)
{
	ts_area_close(reader->area);
	close(reader->directory_fd);
	for (size_t i = 0; i < RINGS_AT_MOST; i++)
		ts_text_release(&reader->rings[i]);
}

/* Closes what the agent has open; with `removes` set, removes the folder as well. */
SUPPORT void agent_end(bool removes)
{
	char command[128];

	if (ts_process_tracer.core)
		agent_close_area(ts_process_tracer.core);
	if (!removes)
		return;
	snprintf(command, sizeof(command), "rm -rf '%s'", agent_folder);
	TS_CHECK_INT(system(command), 0);
}

/* ---- reading ---- */

SUPPORT int agent_keep(void *context, struct ts_block *block, const void *payload,
		       struct ts_error *err)
{
	struct agent_reader *reader = context;

	(void)err;
	TS_CHECK(block->type != TS_BLOCK_LOSS);
	if (block->type == TS_BLOCK_RING && block->bytes) {
		TS_CHECK(block->ring < RINGS_AT_MOST);
		ts_text_append(&reader->rings[block->ring], payload, block->bytes);
		TS_CHECK(!reader->rings[block->ring].failed);
	}
	return TS_OK;
}

/* Drains what is there; returns bytes. */
SUPPORT uint64_t agent_drain(struct agent_reader *reader)
{
	struct ts_block_sink sink = { .append = agent_keep, .context = reader };
	struct ts_drain_result result = { 0 };

	TS_CHECK_INT(ts_area_drain(reader->area, 0, &sink, &result, NULL), 0);
	TS_CHECK(!ts_area_damage(reader->area));
	TS_CHECK_INT(result.damaged, 0);
	reader->dropped += result.dropped;
	return result.bytes;
}

/*
 * Iterates over the records of all rings in turn, or of one ring; agent_next() returns NULL after
 * the last.
 */
struct agent_cursor {
	const struct agent_reader *reader;
	int ring; /* current ring */
	bool only;
	size_t at;
};

SUPPORT const uint64_t *agent_next(struct agent_cursor *cursor, struct ts_live_record *ret_head)
{
	while (cursor->ring < RINGS_AT_MOST) {
		const struct ts_text *ring = &cursor->reader->rings[cursor->ring];
		const char *at;

		if (cursor->at < ring->length) {
			at = ring->data + cursor->at;
			memcpy(ret_head, at, sizeof(*ret_head));
			TS_CHECK(ret_head->words && ret_head->words <= TS_LIVE_RECORD_WORDS);
			cursor->at += ret_head->words * 8u;
			TS_CHECK(cursor->at <= ring->length);
			return (const uint64_t *)(const void *)at;
		}
		if (cursor->only)
			return NULL;
		cursor->ring++;
		cursor->at = 0;
	}
	return NULL;
}

/* The n-th record of a kind, in the order of rings. */
SUPPORT const uint64_t *agent_find(const struct agent_reader *reader, unsigned int kind,
				   unsigned int n, struct ts_live_record *ret_head)
{
	struct agent_cursor cursor = { .reader = reader };
	const uint64_t *record;

	while ((record = agent_next(&cursor, ret_head)))
		if (ret_head->kind == kind && n-- == 0)
			return record;
	return NULL;
}

SUPPORT uint64_t agent_count(const struct agent_reader *reader, unsigned int kind)
{
	struct agent_cursor cursor = { .reader = reader };
	struct ts_live_record head;
	uint64_t count = 0;

	while (agent_next(&cursor, &head))
		count += head.kind == kind;
	return count;
}

/* Copies the string at *at into the buffer, truncated, and advances *at. Padding must be zero. */
SUPPORT const char *agent_string(const uint64_t **at, char *buffer, size_t bytes)
{
	uint32_t length, words;
	const char *text = (const char *)*at;

	memcpy(&length, text, 4);
	words = (length + 4 + 7) / 8;
	for (uint32_t i = length + 4; i < words * 8; i++)
		TS_CHECK_INT(text[i], 0);
	snprintf(buffer, bytes, "%.*s", (int)length, text + 4);
	*at += words;
	return buffer;
}

/* Name of an entry of the process's dictionary, by number. */
SUPPORT const char *agent_site_name(uint32_t number, char *buffer, size_t bytes)
{
	const char *at = (const char *)agent_control() + TS_LIVE_DICTIONARY;
	const char *end = at + agent_control()->dictionary_used;
	struct ts_live_site site;

	while (at < end) {
		memcpy(&site, at, sizeof(site));
		if (--number == 0) {
			snprintf(buffer, bytes, "%.*s", (int)site.name_bytes,
				 at + sizeof(site) +
					 site.fields * sizeof(struct ts_live_site_field));
			return buffer;
		}
		at += site.bytes;
	}
	return NULL;
}

/* ---- acting as the recorder ---- */

SUPPORT void agent_beat(int64_t heartbeat)
{
	__atomic_store_n(&agent_control()->recorder_pid, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&agent_control()->heartbeat, heartbeat, __ATOMIC_RELEASE);
}

/* Waits for a forked child, which must have succeeded. */
SUPPORT void agent_join_child(pid_t pid)
{
	int status = -1;

	TS_CHECK(pid > 0);
	TS_CHECK_INT(waitpid(pid, &status, 0), pid);
	TS_CHECK_INT(status, 0);
}

#endif
