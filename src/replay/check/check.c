/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives captures from runs, hashes them and compares them with the recording and the first run.
 */
#include "replay/check/check.h"

#include <inttypes.h>

#include "base/local/hash.h"
#include "base/text.h"
#include "replay/stream/stream_internal.h"

/* ---- setup ---- */

static uint64_t all_bytes(const struct ts_replay_checker *checker)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < checker->count; i++)
		if (__builtin_add_overflow(bytes, checker->captures[i].range.bytes, &bytes))
			return UINT64_MAX;
	return bytes;
}

static int choose_keeping(struct ts_replay_checker *checker, struct ts_error *err)
{
	const struct ts_replay_options *options = &checker->replay->options;
	bool compares_runs = options->repeat > 1 || options->replacement_count;
	bool has_tolerance = ts_value_tolerance_is_set(&options->tolerance);
	uint64_t bytes = all_bytes(checker);
	char size[TS_FORMAT_BYTES];

	if (options->check == TS_REPLAY_CHECK_NONE || !compares_runs)
		return TS_OK;
	if (has_tolerance && bytes > TS_REPLAY_KEEP_MOST)
		return ts_error_set(
			err, TS_ENOMEM,
			"'--tolerance' keeps all content of a run in memory (%s): replay a part, or use '--check final'",
			ts_format_bytes(size, sizeof(size), bytes));
	checker->keeps = has_tolerance || bytes <= TS_REPLAY_KEEP_BYTES;
	return TS_OK;
}

static int make_arrays(struct ts_replay_checker *checker, struct ts_error *err)
{
	size_t count = checker->count + 1;

	checker->first = calloc(count, sizeof(*checker->first));
	checker->content = calloc(count, sizeof(*checker->content));
	checker->seen = calloc(count, sizeof(*checker->seen));
	checker->first_pages = calloc(count, sizeof(*checker->first_pages));
	checker->now_pages = calloc(count, sizeof(*checker->now_pages));
	if (!checker->first_pages || !checker->now_pages || !checker->first || !checker->content ||
	    !checker->seen || checker->count >= TS_REPLAY_NONE)
		return ts_replay_no_memory(err);
	return TS_OK;
}

int ts_replay_checker_new(struct ts_replay_checker **ret_checker, struct ts_replay *replay,
			  struct ts_error *err)
{
	struct ts_replay_checker *checker = calloc(1, sizeof(*checker));
	int rc;

	if (!checker)
		return ts_replay_no_memory(err);
	checker->replay = replay;
	checker->differs = checker->varies = TS_REPLAY_NONE;
	checker->fetch = checker->dump_capture = checker->final_pages = TS_REPLAY_NONE;
	checker->cause.position = checker->cause.other = TS_REPLAY_NONE;
	checker->has_pages = replay->options.target->can & TS_REPLAY_CAN_HASH_PAGES;
	if (replay->options.value_type)
		checker->type = ts_value_type_find(replay->options.value_type);
	rc = ts_replay_captures_choose(checker, err);
	if (!rc)
		rc = choose_keeping(checker, err);
	if (!rc)
		rc = make_arrays(checker, err);
	if (rc) {
		ts_replay_checker_free(checker);
		return rc;
	}
	replay->captures = checker->captures;
	replay->capture_count = (uint32_t)checker->count;
	*ret_checker = checker;
	return TS_OK;
}

void ts_replay_checker_free(struct ts_replay_checker *checker)
{
	if (!checker)
		return;
	for (size_t i = 0; i < checker->count; i++) {
		free(checker->expected[i].content);
		if (checker->content)
			free(checker->content[i]);
		if (checker->first_pages)
			ts_replay_page_list_release(&checker->first_pages[i]);
		if (checker->now_pages)
			ts_replay_page_list_release(&checker->now_pages[i]);
	}
	free(checker->first_pages);
	free(checker->now_pages);
	free(checker->cause.one);
	free(checker->cause.another);
	ts_pairmap_release(&checker->starts);
	free(checker->captures);
	free(checker->expected);
	free(checker->first);
	free((void *)checker->content);
	free(checker->seen);
	free(checker->differing);
	free(checker->varying);
	free(checker->recorded);
	free(checker->fetched);
	free(checker->dump);
	free(checker);
}

/* ---- a run ---- */

void ts_replay_checker_begin(struct ts_replay_checker *checker, enum ts_replay_phase phase)
{
	checker->phase = phase;
	memset(checker->seen, 0, checker->count * sizeof(*checker->seen));
}

int ts_replay_checker_end(struct ts_replay_checker *checker, struct ts_error *err)
{
	for (size_t i = 0; i < checker->count; i++)
		if (!checker->seen[i])
			return ts_error_set(
				err, TS_EIO,
				"the target did not deliver all captures: capture %zu is missing",
				i);
	return checker->has_pages ? ts_replay_pages_end(checker, err) : TS_OK;
}

/* Replaces *position with a copy of the data. */
static int keep(void **position, const void *data, uint64_t bytes, struct ts_error *err)
{
	void *copy = malloc(bytes ? bytes : 1);

	if (!copy)
		return ts_replay_no_memory(err);
	memcpy(copy, data, bytes);
	free(*position);
	*position = copy;
	return TS_OK;
}

/* Contents whose hashes differ: equal within the tolerance? */
static bool is_near(const struct ts_replay_checker *checker, uint32_t capture, const void *content,
		    const void *data)
{
	return content && !ts_value_compare(checker->type, &checker->replay->options.tolerance,
					    content, data, checker->captures[capture].range.bytes)
				   .bytes;
}

static int set_reference(struct ts_replay_checker *checker, uint32_t capture, uint64_t hash,
			 const void *data, struct ts_error *err)
{
	struct ts_replay_expected *expected = &checker->expected[capture];

	checker->expectations += !expected->is_recorded;
	expected->is_recorded = true;
	expected->hash = hash;
	expected->blob = (struct ts_replay_blob_ref){ 0 };
	return checker->keeps
		       ? keep(&expected->content, data, checker->captures[capture].range.bytes, err)
		       : TS_OK;
}

/*
 * Reads the recorded content of a check; NULL: there is none, or it is not what was hashed, because
 * the program changed the memory meanwhile.
 */
static int load_recorded(const struct ts_replay_checker *checker, uint32_t capture, void **ret_data,
			 struct ts_error *err)
{
	const struct ts_replay_expected *expected = &checker->expected[capture];
	void *data;
	int rc;

	if (!expected->blob.id)
		return TS_OK;
	data = malloc(expected->blob.bytes ? expected->blob.bytes : 1);
	if (!data)
		return ts_replay_no_memory(err);
	rc = ts_replay_blob_read(checker->replay->reader, &expected->blob, data, err);
	if (!rc && ts_hash64(data, expected->blob.bytes) == expected->hash)
		*ret_data = data;
	else
		free(data);
	return rc;
}

/* Keeps the first difference by plan order: captures arrive in any order. */
static int differ(struct ts_replay_checker *checker, uint32_t capture, void **recorded,
		  const void *data, struct ts_error *err)
{
	checker->different++;
	if (checker->differs != TS_REPLAY_NONE && checker->differs <= capture)
		return TS_OK;
	checker->differs = capture;
	free(checker->recorded);
	checker->recorded = TS_STEAL(*recorded);
	return checker->recorded || checker->expected[capture].content
		       ? keep(&checker->differing, data, checker->captures[capture].range.bytes,
			      err)
		       : TS_OK;
}

static int compare_recorded(struct ts_replay_checker *checker, uint32_t capture, uint64_t hash,
			    const void *data, struct ts_error *err)
{
	const struct ts_replay_expected *expected = &checker->expected[capture];
	TS_AUTO_FREE void *recorded = NULL;
	int rc;

	if (!expected->is_recorded || hash == expected->hash)
		return TS_OK;
	rc = load_recorded(checker, capture, &recorded, err);
	if (rc)
		return rc;
	if (is_near(checker, capture, recorded ? recorded : expected->content, data)) {
		checker->near++;
		return TS_OK;
	}
	return differ(checker, capture, &recorded, data, err);
}

static int compare_runs(struct ts_replay_checker *checker, uint32_t capture, uint64_t hash,
			const void *data, struct ts_error *err)
{
	if (hash == checker->first[capture] ||
	    is_near(checker, capture, checker->content[capture], data))
		return TS_OK;
	if (checker->varies != TS_REPLAY_NONE && checker->varies <= capture)
		return TS_OK;
	checker->varies = capture;
	return keep(&checker->varying, data, checker->captures[capture].range.bytes, err);
}

static int take(struct ts_replay_checker *checker, uint32_t capture, uint64_t hash,
		const void *data, struct ts_error *err)
{
	uint64_t bytes = checker->captures[capture].range.bytes;
	int rc = TS_OK;

	switch (checker->phase) {
	case TS_REPLAY_PHASE_REFERENCE:
		return set_reference(checker, capture, hash, data, err);
	case TS_REPLAY_PHASE_FIRST:
		checker->first[capture] = hash;
		if (checker->keeps && checker->replay->options.repeat > 1)
			rc = keep(&checker->content[capture], data, bytes, err);
		return rc ? rc : compare_recorded(checker, capture, hash, data, err);
	case TS_REPLAY_PHASE_AGAIN:
		return compare_runs(checker, capture, hash, data, err);
	case TS_REPLAY_PHASE_REORDERED:
		return TS_OK;
	case TS_REPLAY_PHASE_FETCH:
		break;
	}
	/* Keeps content that differs from what it will be compared with. */
	if (capture == checker->fetch && !checker->fetched &&
	    memcmp(data, checker->varying, bytes) != 0)
		rc = keep(&checker->fetched, data, bytes, err);
	return rc;
}

int ts_replay_checker_content(void *context, uint32_t capture, const void *data,
			      struct ts_error *err)
{
	struct ts_replay_checker *checker = context;
	const struct ts_replay_options *options = &checker->replay->options;
	uint64_t bytes;
	int rc = TS_OK;

	if (capture >= checker->count || checker->seen[capture] ||
	    checker->captures[capture].is_pages)
		return ts_error_set(err, TS_EINVAL, "the target delivered an unknown capture");
	checker->seen[capture] = true;
	bytes = checker->captures[capture].range.bytes;
	if (capture == checker->dump_capture && checker->phase != TS_REPLAY_PHASE_REFERENCE)
		rc = keep(&checker->dump, data, bytes, err);
	if (checker->has_pages && checker->phase == TS_REPLAY_PHASE_FIRST)
		checker->first[capture] = ts_hash64(data, bytes);
	/* Pages are compared instead. */
	if (rc || checker->has_pages || options->check == TS_REPLAY_CHECK_NONE)
		return rc;
	return take(checker, capture, ts_hash64(data, bytes), data, err);
}

uint32_t ts_replay_checker_wants(const struct ts_replay_checker *checker)
{
	if (checker->has_pages || checker->varies == TS_REPLAY_NONE ||
	    checker->content[checker->varies] || checker->fetched)
		return TS_REPLAY_NONE;
	return checker->varies;
}

/* ---- results ---- */

const void *ts_replay_dump(const struct ts_replay *replay, uint64_t *ret_bytes)
{
	const struct ts_replay_checker *checker = replay->checker;

	if (!checker || !checker->dump)
		return NULL;
	*ret_bytes = checker->dump_bytes;
	return checker->dump;
}

const struct ts_replay_range *ts_replay_dumped(const struct ts_replay *replay)
{
	const struct ts_replay_checker *checker = replay->checker;

	return checker && checker->dump_capture != TS_REPLAY_NONE
		       ? &checker->captures[checker->dump_capture].range
		       : NULL;
}

uint64_t ts_replay_hash_of(const struct ts_replay *replay, uint32_t capture)
{
	return replay->checker->first[capture];
}
