/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path and what-if on random and on long graphs: segments partition the window,
 * unchanged durations reproduce the recorded times, faster work never takes longer.
 */
#include "unit/analyze/critical_path/critical_path_support.h"

static uint64_t state;

static uint32_t random_below(uint32_t limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % limit;
}

static int64_t time_of(const struct fixture *fixture, struct ref ref, bool end)
{
	switch (ref.what) {
	case COMMAND:
		return end ? fixture->commands[ref.index].end : fixture->commands[ref.index].start;
	case CALL:
		return end ? fixture->calls[ref.index].end : fixture->calls[ref.index].start;
	default:
		return end ? fixture->stretches[ref.index].end
			   : fixture->stretches[ref.index].start;
	}
}

static struct ref any_node(const struct fixture *fixture)
{
	uint32_t all = fixture->work.command_count + fixture->work.call_count +
		       fixture->graph.stretch_count;
	uint32_t pick = random_below(all);

	if (pick < fixture->work.command_count)
		return (struct ref){ COMMAND, pick };
	pick -= fixture->work.command_count;
	if (pick < fixture->work.call_count)
		return (struct ref){ CALL, pick };
	return (struct ref){ STRETCH, pick - fixture->work.call_count };
}

/*
 * Arbitrary edges that go forward in time, or slightly backward between two ranks; there are few
 * distinct times, so many are equal.
 */
static struct fixture *make_random(void)
{
	static const char *const KERNELS[] = { "k0", "k1", "nccl_k2", "k3" };
	static const char *const CALLS[] = { "cudaLaunchKernel", "cudaStreamSynchronize",
					     "cudaMemcpy", "cudaEventQuery" };
	struct fixture *fixture = make();
	uint32_t nodes = 4 + random_below(40), span = 20 + random_below(2000);

	for (uint32_t i = 0; i < nodes; i++) {
		int64_t start = random_below(span), end = start + random_below(span / 4);
		struct ref call =
			add_call(fixture, random_below(4), CALLS[random_below(4)], start, end);

		start += random_below(60);
		add_command(fixture, fixture->calls[call.index].rank * 2 + random_below(2),
			    KERNELS[random_below(4)], start, start + random_below(span / 4), &call);
		start = random_below(span);
		add_stretch(fixture, random_below(4), "host", start, start + random_below(50));
	}
	for (uint32_t i = 0; i < nodes * 4; i++) {
		struct ref from = any_node(fixture), to = any_node(fixture);
		unsigned int flags = random_below(4);
		int64_t lag = time_of(fixture, to, flags & TS_EDGE_TO_END) -
			      time_of(fixture, from, !(flags & TS_EDGE_FROM_START));

		if (lag >= (random_below(20) ? 0 : -3) &&
		    (from.what != to.what || from.index != to.index))
			add_edge(fixture, from, to,
				 (enum ts_edge_kind)random_below(TS_EDGE_KIND_COUNT), flags);
	}
	return fixture;
}

static void check_partition(const struct answer *answer)
{
	int64_t at = answer->window.from;

	for (size_t i = 0; i < answer->path.count; i++) {
		TS_CHECK_INT(answer->path.segments[i].start, at);
		TS_CHECK(answer->path.segments[i].end > at);
		at = answer->path.segments[i].end;
	}
	if (answer->window.last != TS_WORK_NONE && answer->window.from < answer->window.to)
		TS_CHECK_INT(at, answer->window.to);
}

/* With unchanged lags every point keeps its recorded time, and the latest predecessor decides. */
static void check_recorded(const struct ts_path_model *model)
{
	for (uint32_t at = 0; at < model->count; at++) {
		int64_t time = INT64_MIN, last = INT64_MIN;

		for (uint32_t a = model->first_arc[at]; a < model->first_arc[at + 1]; a++) {
			const struct ts_path_arc *arc = &model->arcs[a];

			TS_CHECK(arc->from < at);
			time = TS_MAX(time, model->time[arc->from] + arc->lag);
			last = TS_MAX(last, model->time[arc->from]);
		}
		if (model->decisive[at] == TS_WORK_NONE) {
			TS_CHECK_INT(time, INT64_MIN);
			continue;
		}
		TS_CHECK_INT(time, model->time[at]);
		TS_CHECK_INT(model->time[model->arcs[model->decisive[at]].from], last);
	}
}

static void check_changes(const struct answer *answer)
{
	static const double FACTORS[] = { 1, 0.9, 0.5, 0.25, 0.1, 0 };
	static const char *const PATTERNS[] = { "k*", "nccl*", "host", "cuda*", "*" };

	for (size_t p = 0; p < TS_ARRAY_SIZE(PATTERNS); p++) {
		double before = (double)answer->window.to / 1000;

		for (size_t f = 0; f < TS_ARRAY_SIZE(FACTORS); f++) {
			double end = end_if(answer, PATTERNS[p], FACTORS[f]);

			TS_CHECK(f > 0 || end == before);
			TS_CHECK(end <= before);
			before = end;
		}
	}
}

TS_TEST(random_graphs_keep_the_promises)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct answer answer;

		state = seed * 7919;
		answer = analyze_path(make_random(), NULL, 0);
		check_partition(&answer);
		check_recorded(&answer.model);
		check_changes(&answer);
		release(&answer);
	}
}

/* A chain as long as a hostile trace could have: nothing may recurse. */
TS_TEST(a_long_chain_needs_no_deep_stack)
{
	enum { COUNT = 200000 };
	struct ts_work_command *commands = calloc(COUNT, sizeof(*commands));
	struct ts_edge *edges = calloc(COUNT, sizeof(*edges));
	uint32_t *first = calloc(COUNT * 2 + 4, sizeof(*first)), *out = calloc(COUNT, 4);
	struct fixture *fixture = make();
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_path path;
	struct ts_error err;

	TS_CHECK(commands && edges && first && out);
	need_rank(fixture, 0);
	fixture->work.commands = commands;
	fixture->work.command_count = fixture->graph.node_count = COUNT;
	fixture->graph.edges = edges;
	fixture->graph.edge_count = COUNT - 1;
	fixture->graph.first_in = first;
	fixture->graph.first_out = first + COUNT + 2;
	fixture->graph.out = out;
	for (uint32_t i = 0; i < COUNT; i++) {
		commands[i] = (struct ts_work_command){ .start = (int64_t)i * 10,
							.end = (int64_t)i * 10 + 9,
							.call = TS_WORK_NONE,
							.issued = TS_ABSENT };
		first[i + 1] = i;
		first[COUNT + 2 + i] = i;
		if (i + 1 < COUNT) {
			edges[i] =
				(struct ts_edge){ .from = i, .to = i + 1, .kind = TS_EDGE_STREAM };
			out[i] = i;
		}
	}
	first[COUNT + 2 + COUNT] = COUNT - 1;
	TS_CHECK_INT(ts_path_model_init(&model, &fixture->graph, TS_WORK_NONE, &err), 0);
	TS_CHECK_INT(ts_path_window_init(&window, &model, NULL, 0, &err), 0);
	TS_CHECK_INT(ts_path_walk(&path, &model, &window, &err), 0);
	TS_CHECK_INT(path.count, COUNT * 2 - 1);
	ts_path_release(&path);
	ts_path_window_release(&window);
	ts_path_model_release(&model);
	free(commands);
	free(edges);
	free(first);
	free(out);
	unmake(fixture);
}
