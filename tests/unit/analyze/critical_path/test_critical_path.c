/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path and what-if on small handmade graphs with answers computed by hand. */
#include "unit/analyze/critical_path/critical_path_support.h"

/* Work on the host 0-10 and 12-30; launches at 10 and 30; kernels 15-17 and 35-40. */
static struct fixture *make_host_bound(void)
{
	struct fixture *fixture = make();
	struct ref prepare = add_stretch(fixture, 0, "prep", 0, US(10));
	struct ref first = add_call(fixture, 0, "cudaLaunchKernel", US(10), US(12));
	struct ref again = add_stretch(fixture, 0, "prep", US(12), US(30));
	struct ref second = add_call(fixture, 0, "cudaLaunchKernel", US(30), US(32));
	struct ref k1 = add_command(fixture, 0, "k1", US(15), US(17), &first);
	struct ref k2 = add_command(fixture, 0, "k2", US(35), US(40), &second);

	add_edge(fixture, prepare, first, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, first, again, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, again, second, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, k1, k2, TS_EDGE_STREAM, 0);
	return fixture;
}

TS_TEST(a_host_that_is_too_slow_is_the_path)
{
	struct answer answer = analyze_path(make_host_bound(), NULL, 0);

	check_path(&answer, "host prep 10\nhost cudaLaunchKernel 2\nhost prep 18\nlaunch k2 5\n"
			    "compute k2 5\n");
	CHECK_END(&answer, "nothing", 0, 40);
	/*
	 * Second launch at 2, so k2 could begin at 7; but k1 runs 5-7, and changing streams takes 1
	 * us.
	 */
	CHECK_END(&answer, "prep", 0, 13);
	CHECK_END(&answer, "prep", 0.5, 26);
	/* Twice 2 us: of the first call, and of the second, in which k2 waits for its launch. */
	CHECK_END(&answer, "cudaLaunchKernel", 0, 36);
	CHECK_END(&answer, "cudaLaunchKernel", 0.5, 38);
	CHECK_END(&answer, "k1", 0, 40);
	CHECK_END(&answer, "k2", 0, 35);
	CHECK_END(&answer, "k2", 0.5, 37.5);
	/* Launches that take no time themselves still take 3 us to reach the device. */
	CHECK_END(&answer, "*", 0, 4);
	release(&answer);
}

TS_TEST(a_device_that_is_too_slow_is_the_path)
{
	struct fixture *fixture = make();
	struct ref l1 = add_call(fixture, 0, "cudaLaunchKernel", 0, US(2));
	struct ref l2 = add_call(fixture, 0, "cudaLaunchKernel", US(2), US(4));
	struct ref l3 = add_call(fixture, 0, "cudaLaunchKernel", US(4), US(6));
	struct ref k1 = add_command(fixture, 0, "k1", US(5), US(25), &l1);
	struct ref k2 = add_command(fixture, 0, "k2", US(26), US(46), &l2);
	struct ref k3 = add_command(fixture, 0, "k3", US(47), US(57), &l3);
	struct answer answer;

	add_edge(fixture, l1, l2, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, l2, l3, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, k1, k2, TS_EDGE_STREAM, 0);
	add_edge(fixture, k2, k3, TS_EDGE_STREAM, 0);
	answer = analyze_path(fixture, NULL, 0);
	check_path(&answer, "launch k1 5\ncompute k1 20\ngap k2 1\ncompute k2 20\ngap k3 1\n"
			    "compute k3 10\n");
	CHECK_END(&answer, "k2", 0, 37);
	CHECK_END(&answer, "k2", 0.5, 47);
	/* k1 ends at 5, but k2 is launched at 2 and that takes 5. */
	CHECK_END(&answer, "k1", 0, 38);
	CHECK_END(&answer, "k?", 0, 9);
	CHECK_END(&answer, "cudaLaunchKernel", 0, 55);
	release(&answer);
}

TS_TEST(an_event_of_another_stream_leads_on)
{
	struct fixture *fixture = make();
	struct ref la = add_call(fixture, 0, "cudaLaunchKernel", 0, US(2));
	struct ref lb = add_call(fixture, 0, "cudaLaunchKernel", US(2), US(4));
	struct ref lc = add_call(fixture, 0, "cudaLaunchKernel", US(4), US(6));
	struct ref a = add_command(fixture, 0, "a", US(5), US(30), &la);
	struct ref b = add_command(fixture, 1, "b", US(32), US(42), &lb);
	struct ref c = add_command(fixture, 1, "c", US(43), US(50), &lc);
	struct answer answer;

	add_edge(fixture, la, lb, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, lb, lc, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, a, b, TS_EDGE_EVENT, 0);
	add_edge(fixture, b, c, TS_EDGE_STREAM, 0);
	answer = analyze_path(fixture, NULL, 0);
	check_path(&answer,
		   "launch a 5\ncompute a 25\ngap b 2\ncompute b 10\ngap c 1\ncompute c 7\n");
	TS_CHECK_INT(answer.path.jumps, 0);
	CHECK_END(&answer, "a", 0, 25);
	CHECK_END(&answer, "b", 0, 40);
	release(&answer);
}

/*
 * A launch at 0, its kernel 5-25; the host waits for it 2-28, works until 40, launches again;
 * kernel 45-50.
 */
static struct fixture *make_sync(void)
{
	struct fixture *fixture = make();
	struct ref l1 = add_call(fixture, 0, "cudaLaunchKernel", 0, US(2));
	struct ref sync = add_call(fixture, 0, "cudaStreamSynchronize", US(2), US(28));
	struct ref l2 = add_call(fixture, 0, "cudaLaunchKernel", US(40), US(42));
	struct ref python = add_stretch(fixture, 0, "python", US(28), US(40));
	struct ref k1 = add_command(fixture, 0, "k1", US(5), US(25), &l1);
	struct ref k2 = add_command(fixture, 0, "k2", US(45), US(50), &l2);

	add_edge(fixture, l1, sync, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, sync, python, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, python, l2, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, k1, sync, TS_EDGE_SYNC, TS_EDGE_TO_END);
	add_edge(fixture, k1, k2, TS_EDGE_STREAM, 0);
	return fixture;
}

TS_TEST(a_host_that_waits_is_not_the_path)
{
	struct answer answer = analyze_path(make_sync(), NULL, 0);

	check_path(&answer,
		   "launch k1 5\ncompute k1 20\nhost cudaStreamSynchronize 3\nhost python 12\n"
		   "launch k2 5\ncompute k2 5\n");
	/* The wait ends 3 us after the kernel, whenever that is. */
	CHECK_END(&answer, "k1", 0, 30);
	CHECK_END(&answer, "python", 0, 38);
	/* A wait that costs nothing still waits. */
	CHECK_END(&answer, "cudaStreamSynchronize", 0, 50);
	release(&answer);
}

TS_TEST(a_wait_long_after_what_is_known_is_unknown)
{
	struct fixture *fixture = make();
	struct ref l1 = add_call(fixture, 0, "cudaLaunchKernel", 0, US(2));
	struct ref sync = add_call(fixture, 0, "cudaDeviceSynchronize", US(2), US(900));
	struct ref k1 = add_command(fixture, 0, "k1", US(5), US(25), &l1);
	struct answer answer;

	add_edge(fixture, l1, sync, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, k1, sync, TS_EDGE_SYNC, TS_EDGE_TO_END);
	answer = analyze_path(fixture, NULL, 0);
	check_path(&answer, "launch k1 5\ncompute k1 20\nunknown cudaDeviceSynchronize 875\n");
	release(&answer);
}

TS_TEST(a_command_long_after_what_is_known_waits_for_something_unknown)
{
	struct fixture *fixture = make();
	struct ref l1 = add_call(fixture, 0, "cudaLaunchKernel", 0, US(2));
	struct ref l2 = add_call(fixture, 0, "cudaLaunchKernel", US(2), US(4));
	struct ref k1 = add_command(fixture, 0, "k1", US(2000), US(2100), &l1);
	struct ref k2 = add_command(fixture, 0, "k2", US(3600), US(3700), &l2);
	struct answer answer;

	add_edge(fixture, l1, l2, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, k1, k2, TS_EDGE_STREAM, 0);
	answer = analyze_path(fixture, NULL, 0);
	check_path(&answer, "unknown k1 2000\ncompute k1 100\nunknown k2 1500\ncompute k2 100\n");
	release(&answer);
}

/* The graph has edges from the last one to begin to the ends of the others. */
static void meet(struct fixture *fixture, struct ref last, struct ref other)
{
	add_edge(fixture, last, other, TS_EDGE_COLLECTIVE, TS_EDGE_FROM_START | TS_EDGE_TO_END);
}

TS_TEST(the_last_rank_to_come_holds_a_collective)
{
	struct fixture *fixture = make();
	struct ref work0 = add_stretch(fixture, 0, "quick", 0, US(10));
	struct ref work1 = add_stretch(fixture, 2, "slow", 0, US(40));
	struct ref l0 = add_call(fixture, 0, "cudaLaunchKernel", US(10), US(12));
	struct ref l1 = add_call(fixture, 2, "cudaLaunchKernel", US(40), US(42));
	struct ref n0 = add_command(fixture, 0, "ncclKernel_AllReduce", US(15), US(55), &l0);
	struct ref n1 = add_command(fixture, 2, "ncclKernel_AllReduce", US(45), US(55), &l1);
	struct answer answer;

	add_edge(fixture, work0, l0, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, work1, l1, TS_EDGE_PROGRAM, 0);
	meet(fixture, n1, n0);
	answer = analyze_path(fixture, NULL, 0);
	/* Rank 0 waits 30 us inside its kernel: that is not its own work. */
	check_path(&answer, "host slow 40\nlaunch ncclKernel_AllReduce 5\n"
			    "communication ncclKernel_AllReduce 10\n");
	CHECK_END(&answer, "slow", 0, 25);
	CHECK_END(&answer, "quick", 0, 55);
	CHECK_END(&answer, "nccl*", 0, 45);
	CHECK_END(&answer, "nccl*", 0.5, 50);
	release(&answer);
}

TS_TEST(without_the_last_rank_the_one_before_it_is_the_last)
{
	struct fixture *fixture = make();
	struct ref slow = add_stretch(fixture, 4, "slow", 0, US(40));
	struct ref fair = add_stretch(fixture, 2, "fair", 0, US(30));
	struct ref l0 = add_call(fixture, 0, "cudaLaunchKernel", 0, US(2));
	struct ref l1 = add_call(fixture, 2, "cudaLaunchKernel", US(30), US(32));
	struct ref l2 = add_call(fixture, 4, "cudaLaunchKernel", US(40), US(42));
	struct ref n0 = add_command(fixture, 0, "nccl", US(5), US(55), &l0);
	struct ref n1 = add_command(fixture, 2, "nccl", US(35), US(55), &l1);
	struct ref n2 = add_command(fixture, 4, "nccl", US(45), US(55), &l2);
	struct ref next = add_command(fixture, 4, "next", US(55), US(75), NULL);
	struct answer answer;

	add_edge(fixture, slow, l2, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, fair, l1, TS_EDGE_PROGRAM, 0);
	add_edge(fixture, n2, next, TS_EDGE_STREAM, 0);
	meet(fixture, n2, n0);
	meet(fixture, n2, n1);
	answer = analyze_path(fixture, NULL, 0);
	check_path(&answer,
		   "host slow 40\nlaunch nccl 5\ncommunication nccl 10\ncompute next 20\n");
	/* Rank 2, which was last, now waits for rank 1, which begins at 35. */
	CHECK_END(&answer, "slow", 0, 65);
	CHECK_END(&answer, "fair", 0, 75);
	/* All have arrived at 5. */
	CHECK_END(&answer, "[sf][la]*", 0, 35);
	release(&answer);
}

TS_TEST(ranks_can_be_looked_at_alone)
{
	struct fixture *fixture = make();
	struct ref l0 = add_call(fixture, 0, "cudaLaunchKernel", 0, US(2));
	struct ref l1 = add_call(fixture, 2, "cudaLaunchKernel", 0, US(2));
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_error err;

	add_command(fixture, 0, "k", US(5), US(10), &l0);
	add_command(fixture, 2, "k", US(5), US(20), &l1);
	finish(fixture);
	for (uint32_t rank = 0; rank < 2; rank++) {
		TS_CHECK_INT(ts_path_model_init(&model, &fixture->graph, rank, &err), 0);
		TS_CHECK_INT(model.count, 4);
		TS_CHECK_INT(ts_path_window_init(&window, &model, NULL, 0, &err), 0);
		TS_CHECK_INT(window.to, rank ? US(20) : US(10));
		ts_path_window_release(&window);
		ts_path_model_release(&model);
	}
	unmake(fixture);
}

TS_TEST(an_instance_of_an_annotation_is_a_window)
{
	struct fixture *fixture = make_host_bound();
	struct answer answer;

	add_slice(fixture, 0, "step", 0, US(12));
	add_slice(fixture, 0, "step", US(12), US(31));
	answer = analyze_path(fixture, "step", 1);
	/*
	 * Work issued in the step counts until it ends; the launch call, which continues after the
	 * step, does not.
	 */
	TS_CHECK_INT(answer.window.from, US(12));
	TS_CHECK_INT(answer.window.to, US(40));
	check_path(&answer, "host prep 18\nlaunch k2 5\ncompute k2 5\n");
	CHECK_END(&answer, "prep", 0, 23);
	release(&answer);

	fixture = make_host_bound();
	add_slice(fixture, 0, "step", 0, US(12));
	answer = analyze_path(fixture, "st*", 0);
	/* k1 is issued at 10 and runs until 17; the host has reached 12 by then. */
	TS_CHECK_INT(answer.window.to, US(17));
	check_path(&answer, "host prep 10\nlaunch k1 5\ncompute k1 2\n");
	release(&answer);
}

TS_TEST(an_instance_that_is_not_there_is_an_error)
{
	struct fixture *fixture = make_host_bound();
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_error err;

	add_slice(fixture, 0, "step", 0, US(12));
	finish(fixture);
	TS_CHECK_INT(ts_path_model_init(&model, &fixture->graph, TS_WORK_NONE, &err), 0);
	TS_CHECK_INT(ts_path_window_init(&window, &model, "step", 1, &err), TS_ENOTFOUND);
	TS_CHECK_STR(err.message, "annotation 'step': instance 1: there are 1, numbered from 0");
	ts_path_window_release(&window);
	TS_CHECK_INT(ts_path_window_init(&window, &model, "nope", 0, &err), TS_ENOTFOUND);
	ts_path_window_release(&window);
	ts_path_model_release(&model);
	unmake(fixture);
}

TS_TEST(where_nothing_is_known_the_path_goes_on_with_what_ended_last)
{
	struct fixture *fixture = make();
	struct answer answer;

	/* Two streams, no calls, nothing that connects them. */
	add_command(fixture, 0, "a", US(10), US(30), NULL);
	add_command(fixture, 1, "b", US(35), US(50), NULL);
	answer = analyze_path(fixture, NULL, 0);
	check_path(&answer, "compute a 20\nunknown - 5\ncompute b 15\n");
	TS_CHECK_INT(answer.path.jumps, 1);
	/* Work that is not known to have waited does not start sooner. */
	CHECK_END(&answer, "a", 0, 50);
	release(&answer);
}

TS_TEST(an_empty_window_has_no_path)
{
	struct fixture *fixture = make();
	struct answer answer;

	need_rank(fixture, 0);
	answer = analyze_path(fixture, NULL, 0);
	TS_CHECK_INT(answer.path.count, 0);
	TS_CHECK_INT(answer.window.last, TS_WORK_NONE);
	release(&answer);
}

TS_TEST(times_at_the_ends_of_what_fits_do_not_overflow)
{
	struct fixture *fixture = make();
	struct ref l1 = add_call(fixture, 0, "cudaLaunchKernel", INT64_MIN + 1, INT64_MIN + 2);
	struct ref k1 = add_command(fixture, 0, "k", -5, INT64_MAX - 1, &l1);
	struct ref k2 = add_command(fixture, 0, "k", INT64_MAX - 1, INT64_MAX, NULL);
	struct answer answer;

	add_edge(fixture, k1, k2, TS_EDGE_STREAM, 0);
	answer = analyze_path(fixture, NULL, 0);
	TS_CHECK(answer.path.count > 0);
	TS_CHECK_INT(answer.path.segments[0].start, answer.window.from);
	TS_CHECK_INT(answer.path.segments[answer.path.count - 1].end, answer.window.to);
	TS_CHECK(end_if(&answer, "k", 0) <= end_if(&answer, "k", 0.5));
	release(&answer);
}

TS_TEST(many_changes_at_once_are_the_same_as_one_by_one)
{
	struct answer answer = analyze_path(make_sync(), NULL, 0);
	uint8_t marks[7][MOST] = { 0 };
	struct ts_path_change changes[7];
	int64_t ends[7];
	struct ts_error err;

	for (uint32_t i = 0; i < 7; i++) {
		changes[i] = (struct ts_path_change){ .factor = i % 2 ? 0.5 : 0 };
		changes[i].device_names = changes[i].host_names = marks[i];
		marks[i][1 + i % (ts_strmap_count(&answer.fixture->work.names) - 1)] = 1;
	}
	TS_CHECK_INT(ts_path_what_if(&answer.model, &answer.window, changes, 7, ends, &err), 0);
	for (uint32_t i = 0; i < 7; i++) {
		int64_t alone;

		TS_CHECK_INT(ts_path_what_if(&answer.model, &answer.window, &changes[i], 1, &alone,
					     &err),
			     0);
		TS_CHECK_INT(ends[i], alone);
	}
	release(&answer);
}
