/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and ids of dictionary columns; test_arrow_stream.c has what streams make of them. */
#include "arrow/arrow_dictionary.h"

#include "unit/runner.h"

TS_TEST(texts_have_one_index)
{
	struct ts_arrow_dictionary dictionary;
	struct ts_arrow_kept kept = { 0 };
	const void *offsets, *text;
	int64_t index = -1;
	uint32_t count;

	ts_arrow_dictionary_init(&dictionary);
	TS_CHECK_INT(ts_arrow_dictionary_add(&dictionary, "first", 5, &index), 0);
	TS_CHECK_INT(index, 0);
	TS_CHECK_INT(ts_arrow_dictionary_add(&dictionary, "", 0, &index), 0);
	TS_CHECK_INT(index, 1);
	TS_CHECK_INT(ts_arrow_dictionary_add(&dictionary, "first", 5, &index), 0);
	TS_CHECK_INT(index, 0);
	TS_CHECK_INT(ts_arrow_dictionary_get(&dictionary, &kept, &count, &offsets, &text), 0);
	TS_CHECK_INT(count, 2);
	TS_CHECK_INT(((const int32_t *)offsets)[2], 5);
	TS_CHECK_MEM(text, "first", 5);
	ts_arrow_dictionary_release(&dictionary);
	ts_arrow_kept_release(&kept);
}

/* One that does not fit any more has no index, now and when it is met again. */
TS_TEST(texts_that_do_not_fit)
{
	struct ts_arrow_dictionary dictionary;
	int64_t index = -1;

	ts_arrow_dictionary_init(&dictionary);
	dictionary.bytes = INT32_MAX - 3;
	TS_CHECK(ts_arrow_dictionary_add(&dictionary, "four", 4, &index) != 0);
	TS_CHECK(ts_arrow_dictionary_add(&dictionary, "four", 4, &index) != 0);
	TS_CHECK_INT(index, -1);
	ts_arrow_dictionary_release(&dictionary);
}

/* Ids far from each other take no more memory than the caller allows. */
TS_TEST(pages_are_limited)
{
	const int64_t far = INT64_C(1) << 20;
	struct ts_arrow_ids ids;

	TS_CHECK_INT(ts_arrow_ids_init(&ids, UINT64_C(1) << 32, 2), 0);
	for (int64_t i = 0; i < 4; i++)
		ts_arrow_ids_put(&ids, i * far, i);
	ts_arrow_ids_put(&ids, far + 1, 5);
	TS_CHECK_INT(ts_arrow_ids_get(&ids, 0), 0);
	TS_CHECK_INT(ts_arrow_ids_get(&ids, far), 1);
	TS_CHECK_INT(ts_arrow_ids_get(&ids, far + 1), 5);
	TS_CHECK_INT(ts_arrow_ids_get(&ids, 2 * far), TS_ARROW_NOT_LOOKED_UP);
	TS_CHECK_INT(ts_arrow_ids_get(&ids, 3 * far), TS_ARROW_NOT_LOOKED_UP);
	TS_CHECK_INT(ts_arrow_ids_get(&ids, -1), TS_ARROW_NOT_LOOKED_UP);
	ts_arrow_ids_release(&ids);
}
