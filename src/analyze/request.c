/* SPDX-License-Identifier: Apache-2.0 */
/* Graph, states, matched collectives and clocks of the work, each computed on first use. */
#include "analyze/analyze.h"

void ts_analyze_request_init(struct ts_analyze_request *request, struct ts_work *work)
{
	*request = (struct ts_analyze_request){
		.work = work,
		.options = TS_ANALYSIS_OPTIONS_DEFAULT,
	};
	request->options.rounding = work->options.rounding;
}

/* Drops graphs and states; they are recomputed on next use. */
static void forget_states(struct ts_analyze_request *request)
{
	ts_states_free(request->states);
	ts_states_free(request->all_states);
	ts_graph_free(request->graph);
	ts_graph_free(request->host_graph);
	ts_graph_free(request->all_graph);
	ts_work_free(request->all_work);
	request->states = request->all_states = NULL;
	request->graph = request->host_graph = request->all_graph = NULL;
	request->all_work = NULL;
}

void ts_analyze_request_release(struct ts_analyze_request *request)
{
	forget_states(request);
	ts_clock_alignment_free(request->clocks);
	ts_collectives_free(request->collectives);
	*request = (struct ts_analyze_request){ 0 };
}

const struct ts_graph *ts_analyze_graph(struct ts_analyze_request *request, struct ts_error *err)
{
	if (!request->graph && ts_graph_new(&request->graph, request->work, 0, err))
		return NULL;
	return request->graph;
}

const struct ts_graph *ts_analyze_host_graph(struct ts_analyze_request *request,
					     struct ts_error *err)
{
	if (!request->host_graph &&
	    ts_graph_new(&request->host_graph, request->work, TS_GRAPH_HOST, err))
		return NULL;
	return request->host_graph;
}

const struct ts_states *ts_analyze_states(struct ts_analyze_request *request, struct ts_error *err)
{
	const struct ts_graph *graph;

	if (request->states)
		return request->states;
	graph = ts_analyze_graph(request, err);
	if (!graph || ts_states_new(&request->states, request->work, graph, err))
		return NULL;
	return request->states;
}

/* Loads all work of the same traces, on the same clocks, in the window of the selection. */
static int load_all(struct ts_analyze_request *request, struct ts_error *err)
{
	const struct ts_work *part = request->work;
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	TS_AUTO(ts_work) all_work = NULL;
	int rc;

	options.load_flags = part->options.load_flags & TS_WORK_DETAILS;
	options.all = true;
	options.step_span = part->options.step_span;
	options.short_names = part->options.short_names;
	options.ranks = part->options.ranks;
	options.rank_count = part->options.rank_count;
	rc = ts_work_new(&all_work, &options, err);
	for (uint32_t i = 0; !rc && i < part->trace_count; i++)
		rc = ts_work_add(all_work, part->readers[i], err);
	if (!rc)
		rc = ts_work_finish(all_work, err);
	if (rc)
		return rc;
	if (request->aligned)
		ts_clock_alignment_apply(request->clocks, all_work);
	for (uint32_t i = 0; i < all_work->rank_count; i++) {
		all_work->ranks[i].from = part->ranks[i].from;
		all_work->ranks[i].to = part->ranks[i].to;
	}
	request->all_work = TS_STEAL(all_work);
	return TS_OK;
}

const struct ts_states *ts_analyze_all_states(struct ts_analyze_request *request,
					      struct ts_error *err)
{
	if (!request->work->dropped_commands)
		return ts_analyze_states(request, err);
	if (request->all_states)
		return request->all_states;
	if ((!request->all_work && load_all(request, err)) ||
	    (!request->all_graph && ts_graph_new(&request->all_graph, request->all_work, 0, err)) ||
	    ts_states_new(&request->all_states, request->all_work, request->all_graph, err))
		return NULL;
	return request->all_states;
}

const struct ts_collectives *ts_analyze_collectives(struct ts_analyze_request *request,
						    struct ts_error *err)
{
	if (!request->collectives && ts_collectives_new(&request->collectives, request->work, err))
		return NULL;
	return request->collectives;
}

const struct ts_clock_alignment *ts_analyze_clocks(struct ts_analyze_request *request,
						   struct ts_error *err)
{
	const struct ts_collectives *collectives;

	if (request->clocks)
		return request->clocks;
	collectives = ts_analyze_collectives(request, err);
	if (!collectives ||
	    ts_clock_alignment_new(&request->clocks, request->work, collectives, err))
		return NULL;
	return request->clocks;
}

const struct ts_clock_alignment *ts_analyze_align(struct ts_analyze_request *request,
						  struct ts_error *err)
{
	const struct ts_clock_alignment *clocks = ts_analyze_clocks(request, err);

	if (!clocks || request->aligned)
		return clocks;
	request->aligned = true;
	ts_clock_alignment_apply(clocks, request->work);
	forget_states(request);
	return clocks;
}
