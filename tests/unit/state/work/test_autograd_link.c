/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward operators of backward ones: by numbers in names, by numbers in arguments, by arrows;
 * which of several operators with one number it is; and operators without one.
 */
#include "state/work/autograd_link.h"
#include "unit/state/work/work_support.h"

static const struct ts_work_options everything = { .load_flags = TS_AUTOGRAD_LINK_LOAD_FLAGS,
						   .from_step = TS_ABSENT,
						   .to_step = TS_ABSENT,
						   .from = TS_ABSENT,
						   .to = TS_ABSENT,
						   .all = true };

#define NUMBERED(name, tid, ts, dur, sequence, thread) \
	EVENT("cpu_op", name, "1", tid, ts, dur,       \
	      "'Sequence number':" sequence ",'Fwd thread id':" thread)

/* The forward operator of what the backward thread (tid 2) does at an instant; "": none. */
static void check_forward(const struct loaded *l, int64_t us, const char *expected)
{
	TS_AUTO(ts_autograd_link) forward = NULL;
	TS_SCOPED(ts_text) name = { 0 };
	uint32_t slice = TS_WORK_NONE;

	TS_CHECK_INT(ts_autograd_link_new(&forward, l->work, NULL), 0);
	for (uint32_t i = 0; i < l->work->thread_count; i++)
		if (l->work->threads[i].tid == 2)
			slice = ts_autograd_link_at(forward, i, us * 1000);
	if (slice != TS_WORK_NONE)
		ts_autograd_link_append(l->work, &name, slice, 4);
	TS_CHECK_STR(ts_text_cstr(&name), expected);
}

TS_TEST(numbers_in_arguments_join)
{
	struct loaded l;

	load_events(&l, &everything,
		    NUMBERED("aten::linear", "1", "10", "20", "7", "0")
			    NUMBERED("aten::addmm", "1", "15", "10", "7", "0")
				    NUMBERED("aten::relu", "1", "40", "10", "8", "0")
					    NUMBERED("AddmmBackward0", "2", "100", "50", "7", "1")
						    OP_BY("aten::mm", "2", "110", "30"),
		    NULL);
	/* Of two operators with one number, the last to begin created the node. */
	check_forward(&l, 120, "aten::linear > aten::addmm");
	check_forward(&l, 105, "aten::linear > aten::addmm");
	check_forward(&l, 90, "");
	check_forward(&l, 151, "");
	unload(&l);
}

/* Ranges of emit_nvtx. What runs in a node has a number of its own thread, which does not count. */
TS_TEST(numbers_in_names_join)
{
	struct loaded l;

	load_events(&l, &everything,
		    OP_BY("aten::mul, seq = 8, op_id = 5", "1", "10", "5")
			    OP_BY("aten::add, seq = 9", "1", "20", "5")
				    OP_BY("MulBackward0, seq = 8, op_id = 9", "2", "100", "50")
					    OP_BY("aten::mul, seq = 9", "2", "110", "30")
						    OP_BY("AddBackward0, stashed seq = 9, seq = 8",
							  "2", "200", "50"),
		    NULL);
	check_forward(&l, 120, "aten::mul");
	check_forward(&l, 210, "aten::add");
	unload(&l);
}

TS_TEST(a_later_step_does_not_count)
{
	struct loaded l;

	load_events(&l, &everything,
		    NUMBERED("aten::first", "1", "10", "5", "3", "0")
			    NUMBERED("ExpBackward0", "2", "20", "5", "3", "1")
				    NUMBERED("aten::second", "1", "30", "5", "3", "0")
					    NUMBERED("ExpBackward0", "2", "40", "5", "3", "1"),
		    NULL);
	check_forward(&l, 21, "aten::first");
	check_forward(&l, 41, "aten::second");
	unload(&l);
}

TS_TEST(arrows_join_where_there_are_no_numbers)
{
	struct loaded l;

	load_events(
		&l, &everything,
		OP_BY("aten::exp", "1", "10", "5") OP_BY(
			"ExpBackward0", "2", "20",
			"5") "{'ph':'s','cat':'fwdbwd','name':'fwdbwd','id':4,'pid':1,'tid':1,'ts':10},"
			     "{'ph':'f','bp':'e','cat':'fwdbwd','name':'fwdbwd','id':4,'pid':1,'tid':2,'ts':20},",
		NULL);
	check_forward(&l, 21, "aten::exp");
	unload(&l);
}

TS_TEST(without_numbers_nothing_is_told)
{
	struct loaded l;

	load_events(&l, &everything,
		    OP_BY("aten::exp, seq = ", "1", "10", "5")
			    OP_BY("ExpBackward0, seq = 99999999999999999999", "2", "20", "5")
				    OP_BY("Backward", "2", "30", "5"),
		    NULL);
	check_forward(&l, 21, "");
	check_forward(&l, 31, "");
	unload(&l);
}
