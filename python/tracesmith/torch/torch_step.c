/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps. tracesmith.step() decides if the program calls it. Otherwise an optimizer's step ends one:
 * with several optimizers, the last of an iteration. Without an optimizer, a change of the first
 * parameter does (a compiled or hand-written update), or an outermost forward without gradients.
 */
#include "torch_profile.h"

enum { OPTIMIZERS = 4096, STARTS = 8, PASS_STEPS = 64 };

/*
 * Optimizers that have made a step, by address: what a new one at an old address does is harmless.
 * Programs that update in the backward pass have one for each parameter.
 */
static PyObject *known[OPTIMIZERS];
static unsigned int known_count;
static PyObject *last_of_iteration; /* borrowed, for comparison */
static PyObject *other_since;       /* another optimizer that has stepped since that one */
static bool forward_in_step;
static bool is_announced; /* some step was, since they are counted */

/* Steps of optimizers in progress in this thread: one may call another's. */
static __thread struct start {
	PyObject *optimizer;
	int64_t start_ns, seq;
	struct ts_span span;
} starts[STARTS];
static __thread unsigned int start_count;
static __thread unsigned int starts_since; /* value of `resets` */
static unsigned int resets;

static uint64_t random_state = 0x9e3779b97f4a7c15ull;

/* Decides whether this step is recorded. */
void ts_step_choose(void)
{
	bool chosen = ts_profile.step % ts_profile.every == 0;

	if (chosen && ts_profile.ordered && ts_profile.rate < 1) {
		random_state ^= random_state >> 12;
		random_state ^= random_state << 25;
		random_state ^= random_state >> 27;
		chosen = (double)((random_state * 0x2545f4914f6cdd1dull) >> 11) /
				 9007199254740992.0 <
			 ts_profile.rate;
	}
	ts_profile.step_chosen = chosen;
}

static void begin_step(int64_t number)
{
	ts_profile.step = number;
	ts_profile.seq = 0;
	forward_in_step = false;
	/* Other threads may be in a pass that began some steps before. */
	if (++ts_profile.generation > PASS_STEPS)
		ts_backward_abandon(ts_profile.generation - PASS_STEPS);
	ts_step_choose();
}

/* What the agent has counted, so that steps of others are noticed. */
static uint64_t counted;

/* tracesmith.step(), or ts_step() in any other language: its numbers count from now on. */
static void follow_explicit(void)
{
	int64_t number = 0;
	uint64_t steps = ts_torch_steps(&number);

	/* It starts again at 0 with another recording. */
	if (steps > counted) {
		ts_profile.explicit_steps = true;
		begin_step(number);
	}
	counted = steps;
}

static void announce(void)
{
	is_announced = true;
	ts_step(ts_profile.step);
	counted = ts_torch_steps(NULL);
}

static void advance(void)
{
	if (ts_profile.explicit_steps)
		return;
	begin_step(ts_profile.step + 1);
	announce();
}

void ts_step_reset(void)
{
	known_count = 0;
	last_of_iteration = other_since = NULL;
	resets++;
	ts_profile.explicit_steps = is_announced = false;
	counted = ts_torch_steps(NULL);
	begin_step(0);
}

/* Forgets what was in progress when rows were switched off; the spans are empty. */
static void forget_old_starts(void)
{
	if (starts_since != resets)
		start_count = 0;
	starts_since = resets;
}

/* An outermost module is called, not from a backward pass. */
void ts_step_outermost(PyObject *object, bool grad_enabled)
{
	PyObject *answer;
	bool changed = false;

	follow_explicit();
	forget_old_starts();
	/* A closure may run the model inside an optimizer's step. */
	if (!ts_profile.explicit_steps && !known_count && !start_count) {
		answer = grad_enabled ? ts_profile_python(ts_profile.outermost_call, object, NULL)
				      : NULL;
		changed = grad_enabled ? answer == Py_True : forward_in_step;
		Py_XDECREF(answer);
	}
	if (changed)
		advance();
	/* The first step begins with its first call. */
	if (!is_announced && !ts_profile.explicit_steps && ts_enabled())
		announce();
	forward_in_step = true;
}

static bool is_known(PyObject *optimizer)
{
	for (unsigned int i = 0; i < known_count; i++)
		if (known[i] == optimizer)
			return true;
	if (known_count == OPTIMIZERS)
		return true;
	known[known_count++] = optimizer;
	return false;
}

/* True if this optimizer's step ends the training step. */
static bool ends_step(PyObject *optimizer)
{
	if (!is_known(optimizer)) {
		bool first = !last_of_iteration;

		/* It follows others in its iteration: from now on, it is the last. */
		last_of_iteration = optimizer;
		other_since = NULL;
		return first;
	}
	if (optimizer == last_of_iteration) {
		other_since = NULL;
		return true;
	}
	if (other_since == optimizer) {
		/* Twice without the last one: that one is no longer used. */
		last_of_iteration = optimizer;
		other_since = NULL;
		return true;
	}
	if (!other_since)
		other_since = optimizer;
	return false;
}

static void drop_starts(unsigned int keep)
{
	while (start_count > keep)
		ts_span_drop(&starts[--start_count].span);
}

/* optimizer_begin(optimizer) */
PyObject *ts_step_optimizer_begin(PyObject *self, PyObject *optimizer)
{
	struct start *start;

	(void)self;
	follow_explicit();
	forget_old_starts();
	/* Steps that ended with an exception are left over. */
	for (unsigned int i = 0; i < start_count; i++)
		if (starts[i].optimizer == optimizer || i == STARTS - 1) {
			drop_starts(i);
			break;
		}
	start = &starts[start_count++];
	*start = (struct start){ .optimizer = optimizer, .seq = ts_profile.seq++ };
	ts_span_start(&start->span, ts_profile.default_device, true);
	start->start_ns = ts_profile_now();
	Py_RETURN_NONE;
}

static void store_step(struct start *start, const char *path)
{
	struct ts_execution execution = {
		.stage = TS_TORCH_STEP,
		.start_ns = start->start_ns,
		.end_ns = ts_profile_now(),
		.step = ts_profile.step,
		.seq = start->seq,
		.device = ts_profile.default_device,
		.outermost = true,
	};

	if (!ts_enabled() || !ts_profile.step_chosen) {
		ts_span_drop(&start->span);
		return;
	}
	execution.path = ts_torch_module(path);
	ts_span_stop(&start->span);
	ts_execution_store(&execution, &start->span);
}

/*
 * optimizer_end(optimizer, path) -> bool: whether calls of modules may be recorded next, although a
 * window may open only then. The number that the program gives the next step is not known yet.
 */
PyObject *ts_step_optimizer_end(PyObject *self, PyObject *args)
{
	PyObject *optimizer;
	const char *path;

	(void)self;
	if (!PyArg_ParseTuple(args, "Os:optimizer_end", &optimizer, &path))
		return NULL;
	forget_old_starts();
	for (unsigned int i = start_count; i-- > 0;)
		if (starts[i].optimizer == optimizer) {
			drop_starts(i + 1);
			break;
		}
	if (start_count && starts[start_count - 1].optimizer == optimizer) {
		struct start ended = starts[--start_count];

		store_step(&ended, path);
		/* A step inside another optimizer's is part of that. */
		if (!start_count && ends_step(optimizer))
			advance();
	}
	if (ts_device_is_ready())
		ts_device_poll();
	return PyBool_FromLong(ts_profile.step_chosen || ts_profile.explicit_steps);
}
