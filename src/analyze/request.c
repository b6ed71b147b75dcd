/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What analyses share: graph, states, matched collectives and clocks of the work, each made when it is first
 * asked for. Must not know any analysis.
 */
#include "analyze/analyze.h"

void ts_analyze_request_init(struct ts_analyze_request *request, struct ts_work *work)
{
	*request = (struct ts_analyze_request){
		.work = work,
		.options = TS_ANALYZE_OPTIONS_DEFAULT,
	};
	request->options.rounding = work->options.rounding;
}

void ts_analyze_request_release(struct ts_analyze_request *request)
{
	ts_states_free(request->states);
	ts_graph_free(request->graph);
	ts_graph_free(request->host_graph);
	ts_clocks_free(request->clocks);
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

const struct ts_collectives *ts_analyze_collectives(struct ts_analyze_request *request,
						    struct ts_error *err)
{
	if (!request->collectives && ts_collectives_new(&request->collectives, request->work, err))
		return NULL;
	return request->collectives;
}

const struct ts_clocks *ts_analyze_clocks(struct ts_analyze_request *request, struct ts_error *err)
{
	const struct ts_collectives *collectives;

	if (request->clocks)
		return request->clocks;
	collectives = ts_analyze_collectives(request, err);
	if (!collectives || ts_clocks_new(&request->clocks, request->work, collectives, err))
		return NULL;
	return request->clocks;
}

const struct ts_clocks *ts_analyze_align(struct ts_analyze_request *request, struct ts_error *err)
{
	const struct ts_clocks *clocks = ts_analyze_clocks(request, err);

	if (!clocks || request->aligned)
		return clocks;
	request->aligned = true;
	ts_clocks_apply(clocks, request->work);
	ts_states_free(request->states);
	ts_graph_free(request->graph);
	ts_graph_free(request->host_graph);
	request->states = NULL;
	request->graph = request->host_graph = NULL;
	return clocks;
}
