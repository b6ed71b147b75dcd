/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run returns: hashes of pages, contents of memory, bytes that were copied to the host. They
 * are as in the recorded process: addresses that differ here are changed back.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

/* ---- pages ---- */

static int deliver_pages(struct ts_replay_session *session, uint32_t capture, const bool *wanted,
			 struct ts_error *err)
{
	const struct ts_cuda_pages *pages = &session->pages;
	struct ts_replay_outcome *outcome = session->outcome;
	TS_AUTO_FREE struct ts_replay_page *out = ts_alloc_array(pages->count + 1, sizeof(*out));
	uint64_t count = 0;

	if (!out)
		return ts_error_set(err, TS_ENOMEM, "no memory for hashes of pages");
	for (size_t i = 0; i < pages->count; i++)
		if (!wanted || wanted[i])
			out[count++] = (struct ts_replay_page){ pages->items[i].memory, 0,
								pages->items[i].offset,
								pages->items[i].hash };
	return outcome->pages ? outcome->pages(outcome->context, capture, out, count, err) : TS_OK;
}

/* Copies and fills write what they name; other commands may write everything. */
static bool writes_known(const struct ts_cuda_step *step)
{
	const struct ts_replay_command_info *command = step->command;

	return !command->unknown_access && command->kind != TS_COMMAND_LAUNCH &&
	       command->kind != TS_COMMAND_ALLOC && command->kind != TS_COMMAND_FREE;
}

static int capture_pages(struct ts_replay_session *session, uint32_t position, uint32_t capture,
			 struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	bool all = !session->has_pages;
	TS_AUTO_FREE bool *changed = NULL;
	int rc = ts_cuda_list_pages(session, err);

	if (rc)
		return rc;
	changed = calloc(session->pages.count + 1, sizeof(*changed));
	if (!changed)
		return ts_error_set(err, TS_ENOMEM, "no memory for hashes of pages");
	session->has_pages = true;
	if (writes_known(step) && !all && session->knows_pages)
		rc = ts_cuda_hash_pages(session, step->command->writes, step->command->write_count,
					changed, err);
	else
		rc = ts_cuda_hash_pages(session, NULL, 0, changed, err);
	session->knows_pages = true;
	return rc ? rc : deliver_pages(session, capture, all ? NULL : changed, err);
}

/* ---- contents ---- */

static int read_part(struct ts_replay_session *session, uint32_t memory, uint64_t offset, char *to,
		     uint64_t bytes, struct ts_error *err)
{
	uint64_t address = ts_cuda_address(session, memory, offset);
	void *stream;
	int code;

	if (ts_cuda_is_host(session, memory)) {
		memcpy(to, (const void *)(uintptr_t)address, bytes);
		return TS_OK;
	}
	code = ts_cuda_enter_for(session, memory, &stream);
	if (!code)
		code = session->cu.MemcpyDtoHAsync(to, address, bytes, stream);
	if (!code)
		code = session->cu.StreamSynchronize(stream);
	return code ? ts_cuda_fail(session, code, err, "cannot read memory at 0x%" PRIx64, address)
		    : TS_OK;
}

/* What is not mapped counts as zeros. */
static int read_range(struct ts_replay_session *session, const struct ts_replay_range *range,
		      char *to, struct ts_error *err)
{
	uint64_t done = 0;
	int rc = TS_OK;

	while (done < range->bytes && !rc) {
		bool is_mapped;
		uint64_t part = ts_cuda_mapped_part(session, range->memory, range->offset + done,
						    range->bytes - done, &is_mapped);

		if (is_mapped)
			rc = read_part(session, range->memory, range->offset + done, to + done,
				       part, err);
		else
			memset(to + done, 0, part);
		done += part;
	}
	if (!rc)
		ts_cuda_move_back(session, to, range->bytes,
				  ts_cuda_info(session, range->memory)->address + range->offset);
	return rc;
}

static int capture_content(struct ts_replay_session *session, uint32_t capture,
			   struct ts_error *err)
{
	const struct ts_replay_range *range = &session->replay->captures[capture].range;
	struct ts_replay_outcome *outcome = session->outcome;
	int rc;

	if (!outcome->content)
		return TS_OK;
	rc = ts_cuda_need_scratch(session, range->bytes, err);
	if (!rc)
		rc = read_range(session, range, session->scratch, err);
	return rc ? rc : outcome->content(outcome->context, capture, session->scratch, err);
}

/* Bytes that a copy brought to pageable memory of the host. */
static int capture_copied(struct ts_replay_session *session, uint32_t position, uint32_t capture,
			  struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	const struct ts_replay_command_info *command = step->command;
	uint64_t bytes = command->bytes;
	char *data = step->scratch ? step->scratch : session->scratch;
	TS_AUTO_FREE char *copy = NULL;
	int rc = TS_OK;

	if (!session->outcome->content)
		return TS_OK;
	/* Pinned memory of the host: it has the bytes, until something else is written there. */
	copy = ts_alloc_array(bytes, 1);
	if (!copy)
		return ts_error_set(err, TS_ENOMEM, "no memory for %" PRIu64 " bytes", bytes);
	if (command->object != TS_REPLAY_NONE) {
		const struct ts_replay_range range = { command->object, command->offset, bytes };

		rc = read_range(session, &range, copy, err);
	} else {
		memcpy(copy, data, bytes);
		ts_cuda_move_back(session, copy, bytes,
				  command->is_rect ? 0 : command->other_offset);
	}
	return rc ? rc : session->outcome->content(session->outcome->context, capture, copy, err);
}

/* ---- all captures of a position ---- */

static int deliver(struct ts_replay_session *session, uint32_t position, uint32_t capture,
		   struct ts_error *err)
{
	const struct ts_replay_capture *wanted = &session->replay->captures[capture];

	if (wanted->is_pages && position < session->plan->count)
		return capture_pages(session, position, capture, err);
	if (wanted->is_pages) {
		int rc = ts_cuda_list_pages(session, err);

		if (!rc)
			rc = ts_cuda_hash_pages(session, NULL, 0, NULL, err);
		return rc ? rc : deliver_pages(session, capture, NULL, err);
	}
	if (wanted->range.memory == TS_REPLAY_NONE)
		return capture_copied(session, position, capture, err);
	return capture_content(session, capture, err);
}

/* Copied bytes that have a place of their own are delivered at the end of the run. */
static bool can_wait(const struct ts_replay_session *session, const struct ts_cuda_step *step,
		     const struct ts_replay_capture *capture)
{
	return !session->is_serial && !capture->is_pages &&
	       capture->range.memory == TS_REPLAY_NONE && step->scratch;
}

int ts_cuda_capture_after(struct ts_replay_session *session, uint32_t position,
			  struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	int rc = TS_OK;

	for (uint32_t i = 0; i < step->capture_count && !rc; i++) {
		uint32_t capture = step->first_capture + i;

		if (can_wait(session, step, &session->replay->captures[capture]))
			continue;
		if (session->is_pending)
			rc = ts_cuda_wait_all(session, position, err);
		if (!rc)
			rc = deliver(session, position, capture, err);
	}
	return rc;
}

int ts_cuda_capture_end(struct ts_replay_session *session, struct ts_error *err)
{
	const struct ts_replay *replay = session->replay;
	int rc = TS_OK;

	for (uint32_t i = 0; i < replay->capture_count && !rc; i++) {
		uint32_t position = replay->captures[i].position;

		if (position >= session->plan->count)
			rc = deliver(session, position, i, err);
		else if (can_wait(session, &session->steps[position], &replay->captures[i]))
			rc = deliver(session, position, i, err);
	}
	return rc;
}
