/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of device functions in variables. Code that was compiled separately has them there and
 * in tables of virtual functions, and they are other ones in each process. The words that the
 * recording names are read before they are restored, and compared with the recorded ones.
 */
#include <inttypes.h>
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

/* Functions of a module lie at the same distance from each other in each process. */
struct found {
	uint64_t low, high, delta; /* recorded addresses, and how far they moved */
	const char *name;          /* of the first function */
	size_t count, others;      /* words that moved by delta, and by anything else */
};

/* The recorded word; false: it is not in a piece. */
static bool read_recorded(const struct ts_replay_session *session, uint32_t memory, uint64_t offset,
			  uint64_t *ret_word)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, memory);

	for (uint32_t i = 0; i < info->piece_count; i++) {
		const struct ts_replay_piece *piece = &info->pieces[i];

		if (offset >= piece->offset && offset - piece->offset <= piece->bytes &&
		    piece->bytes - (offset - piece->offset) >= 8)
			return !ts_reader_blob_read(session->stream->reader, piece->blob.id,
						    offset - piece->offset, ret_word, 8, NULL);
	}
	return false;
}

static void take_word(struct ts_replay_session *session, uint32_t memory,
		      const struct ts_cuda_named *function, struct found *found)
{
	uint64_t bytes = ts_cuda_info(session, memory)->bytes, recorded = 0, here = 0;

	if (bytes < 8 || function->offset > bytes - 8 ||
	    !read_recorded(session, memory, function->offset, &recorded) || !recorded ||
	    session->cu.MemcpyDtoH(&here, ts_cuda_address(session, memory, function->offset), 8) ||
	    !here)
		return;
	if (found->count && here - recorded != found->delta) {
		found->others++;
		return;
	}
	found->low = found->count ? TS_MIN(found->low, recorded) : recorded;
	found->high = found->count ? TS_MAX(found->high, recorded) : recorded;
	found->delta = here - recorded;
	if (!found->count++)
		found->name = function->name;
}

bool ts_cuda_find_code_move(struct ts_replay_session *session, uint32_t module,
			    struct ts_page_move *ret_move, const char **ret_name)
{
	uint32_t context = ts_cuda_info(session, module)->parent;
	struct found found = { 0 };

	if (ts_cuda_enter(session, session->objects[context].handle))
		return false;
	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		const struct ts_cuda_details *details = &session->objects[i].details;

		if (ts_cuda_info(session, i)->parent != module ||
		    !(ts_cuda_info(session, i)->flags & TS_REPLAY_GLOBAL))
			continue;
		for (uint32_t j = 0; j < details->function_count; j++)
			take_word(session, i, &details->functions[j], &found);
	}
	/* A program may have exchanged some before the window. */
	if (found.others > found.count)
		ts_cuda_note(session, "addresses of functions in module %" PRIu64 " are unknown",
			     ts_cuda_info(session, module)->number);
	if (!found.count || found.others > found.count)
		return false;
	*ret_move = (struct ts_page_move){ found.low, found.high - found.low + 1, found.delta };
	*ret_name = found.name;
	return true;
}
