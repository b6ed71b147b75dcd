/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the emulator: from a handmade trace to its simulation. */
#ifndef TS_TESTS_UNIT_REPLAY_EMULATOR_EMULATOR_WORKS_H
#define TS_TESTS_UNIT_REPLAY_EMULATOR_EMULATOR_WORKS_H

#include <stdlib.h>
#include <string.h>

#include "replay/emulator/emulator.h"
#include "unit/runner.h"
#include "unit/state/state_fixture.h"

struct emulated {
	struct fixture fixture;
	struct ts_graph *graph;
	struct ts_emulator_observed observed;
	struct ts_emulator_model *model;
	struct ts_emulator_times times;
};

/* As the loader leaves it; no call has more than one command. */
static inline void finish_work(struct fixture *fixture)
{
	struct ts_work *work = fixture->work;

	fixture_finish(fixture);
	work->next_of_call = malloc((work->command_count + 1) * sizeof(*work->next_of_call));
	TS_CHECK(work->next_of_call != NULL);
	memset(work->next_of_call, 0xff, (work->command_count + 1) * sizeof(*work->next_of_call));
}

static inline void emulate(struct emulated *emulated, const struct ts_emulator_shape *shape)
{
	const struct ts_work *work = emulated->fixture.work;
	struct ts_error err;

	TS_CHECK_INT(ts_graph_new(&emulated->graph, work, TS_GRAPH_HOST, &err), 0);
	TS_CHECK_INT(ts_emulator_observe(&emulated->observed, emulated->graph, &err), 0);
	TS_CHECK_INT(ts_emulator_model_new(&emulated->model, work, emulated->graph,
					   &emulated->observed, shape, &err),
		     0);
	memset(&emulated->times, 0, sizeof(emulated->times));
	TS_CHECK_INT(ts_emulator_run(emulated->model, &(struct ts_emulator_run_options){ 0 },
				     &emulated->times, &err),
		     0);
}

static inline void forget_work(struct emulated *emulated)
{
	ts_emulator_times_release(&emulated->times);
	ts_emulator_model_free(emulated->model);
	ts_emulator_observed_release(&emulated->observed);
	ts_graph_free(emulated->graph);
	ts_work_free(emulated->fixture.work);
}

static const struct ts_emulator_shape AS_RECORDED = { 0 };

#endif
