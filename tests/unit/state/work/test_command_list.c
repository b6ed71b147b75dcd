/* SPDX-License-Identifier: Apache-2.0 */
/* Command lists: their contents, order and operands. */
#include "state/work/command_list.h"
#include "unit/state/graph/graph_support.h"

struct listed {
	struct graphed graphed;
	struct ts_command_list *result;
};

static void list(struct listed *listed, const char *events)
{
	struct ts_error err;

	load_graph(&listed->graphed, 0, events);
	if (ts_command_list_new(&listed->result, listed->graphed.loaded.work, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
}

static void unlist(struct listed *listed)
{
	ts_command_list_free(listed->result);
	unload_graph(&listed->graphed);
}

/* Kinds, streams and sequences as text, which reads better than numbers. */
static void check_list(const struct listed *listed, const char *expected)
{
	const struct ts_work *work = listed->graphed.loaded.work;
	TS_SCOPED(ts_text) text = { 0 };

	for (size_t i = 0; i < listed->result->count; i++) {
		const struct ts_command_entry *one = &listed->result->list[i];

		if (one->stream == TS_WORK_NONE)
			ts_text_append_str(&text, "-");
		else
			ts_text_append_int(&text, work->streams[one->stream].number);
		ts_text_printf(&text, "/%d %s %d\n", (int)one->sequence,
			       ts_enum_name("command_kind", one->kind), (int)one->correlation);
	}
	TS_CHECK_STR(ts_text_cstr(&text), expected);
}

TS_TEST(all_kinds_in_order)
{
	struct listed listed;

	list(&listed,
	     CALL("0", "2", "1") KERNEL("a", "7", "10", "20", "1") NAMED_CALL(
		     "cudaMemcpyAsync", "3", "1",
		     "2") COPY_OF("Memcpy HtoD (Pinned -> Device)", "8", "12", "2",
				  "2") NAMED_CALL("cudaMemsetAsync", "5", "1", "3")
		     DEVICE("gpu_memset", "Memset (Device)", "7", "40", "2", "3",
			    ",'bytes':512") NAMED_CALL("cudaEventRecord", "7", "1", "4")
			     NAMED_CALL("cudaStreamWaitEvent", "8", "1", "5") SYNC(
				     "Stream Wait Event", "8", "8", "1", "5",
				     ",'wait_on_stream':7,'wait_on_cuda_event_record_corr_id':4,"
				     "'wait_on_cuda_event_id':19")
				     NAMED_CALL("cudaStreamSynchronize", "10", "50", "6") SYNC(
					     "Stream Sync", "7", "10", "50", "6",
					     "") NAMED_CALL("cudaEventQuery", "61", "1", "7")
					     NAMED_CALL("cudaDeviceSynchronize", "65", "5",
							"8") CALL("80", "1", "9")
						     NAMED_CALL("cudaMalloc", "90", "1", "10")
							     KERNEL("no call", "8", "2", "1",
								    "99"));
	check_list(&listed, "7/0 launch 1\n"
			    "7/1 fill 3\n"
			    "7/2 record 4\n"
			    "7/3 sync 6\n"
			    "8/0 launch 99\n"
			    "8/1 copy 2\n"
			    "8/2 wait 5\n"
			    "-/0 sync 8\n"
			    "-/1 launch 9\n");
	unlist(&listed);
}

TS_TEST(operands)
{
	const struct ts_command_entry *one;
	struct listed listed;

	list(&listed, DEVICE("kernel", "a", "7", "10", "20", "1",
			     ",'grid':[8,16,5],'block':[128,1,1],'registers per thread':122,"
			     "'shared memory':12544,'graph id':3,'graph node id':12")
			      COPY_OF("Memcpy HtoD (Pinned -> Device)", "7", "40", "2", "2")
				      NAMED_CALL("cudaEventRecord", "50", "1", "4")
					      NAMED_CALL("cudaStreamWaitEvent", "52", "1", "5")
						      SYNC("Stream Wait Event", "8", "52", "1", "5",
							   ",'wait_on_stream':7,"
							   "'wait_on_cuda_event_record_corr_id':4,"
							   "'wait_on_cuda_event_id':19"));
	check_list(&listed, "7/0 launch 1\n7/1 copy 2\n7/2 record 4\n8/0 wait 5\n");
	one = &listed.result->list[0];
	TS_CHECK_INT(one->grid[0], 8);
	TS_CHECK_INT(one->grid[1], 16);
	TS_CHECK_INT(one->grid[2], 5);
	TS_CHECK_INT(one->block[0], 128);
	TS_CHECK_INT(one->registers, 122);
	TS_CHECK_INT(one->shared_bytes, 12544);
	TS_CHECK_INT(one->bytes, TS_ABSENT);
	TS_CHECK_INT(one->issued, TS_ABSENT);
	TS_CHECK_INT(one->thread, TS_WORK_NONE);
	one = &listed.result->list[1];
	TS_CHECK_INT(one->bytes, 64);
	TS_CHECK_INT(one->copy_kind, TS_COPY_HOST_TO_DEVICE);
	TS_CHECK_INT(one->grid[0], TS_ABSENT);
	one = &listed.result->list[2];
	TS_CHECK_INT(one->event, 19);
	TS_CHECK_INT(one->start, TS_ABSENT);
	TS_CHECK_INT(one->issued, 50000);
	one = &listed.result->list[3];
	TS_CHECK_INT(one->event, 19);
	TS_CHECK_INT(one->record_correlation, 4);
	TS_CHECK_INT(listed.graphed.loaded.work->streams[one->on_stream].number, 7);
	unlist(&listed);
}

/* A launch without effect is listed, and marked; one with a command in the trace is listed once. */
TS_TEST(missing)
{
	struct listed listed;

	list(&listed, CALL("0", "2", "1") KERNEL("a", "7", "10", "20", "1")
			      NAMED_CALL("cudaGraphLaunch", "5", "2", "2")
				      NAMED_CALL("cudaMemcpy", "9", "2", "3"));
	check_list(&listed, "7/0 launch 1\n-/0 launch 2\n-/1 copy 3\n");
	TS_CHECK_INT(listed.result->list[0].flags, 0);
	TS_CHECK_INT(listed.result->list[1].flags, TS_COMMAND_ENTRY_MISSING);
	TS_CHECK_INT(listed.result->list[2].flags, TS_COMMAND_ENTRY_MISSING);
	unlist(&listed);
}

/* Many commands of one call stay in the device's order. */
TS_TEST(nodes_of_a_graph)
{
	struct listed listed;

	list(&listed, NAMED_CALL("cudaGraphLaunch", "0", "2", "1") KERNEL("b", "7", "30", "20", "1")
			      KERNEL("a", "7", "10", "20", "1") KERNEL("c", "7", "60", "20", "1"));
	TS_CHECK_INT(listed.result->count, 3);
	TS_CHECK_STR(ts_work_text(listed.graphed.loaded.work, listed.result->list[0].name), "a");
	TS_CHECK_STR(ts_work_text(listed.graphed.loaded.work, listed.result->list[1].name), "b");
	TS_CHECK_INT(listed.result->list[2].sequence, 2);
	unlist(&listed);
}

TS_TEST(nothing)
{
	struct listed listed;

	list(&listed, OP("a", "0", "10"));
	TS_CHECK_INT(listed.result->count, 0);
	unlist(&listed);
}
