/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracesmith._torch: the hot path of the module table of tracesmith.torch. Python finds names and
 * decides what is recorded; this code stores rows.
 *
 * Everything here runs with the GIL, which an interpreter without one turns on for this module.
 * Errors of Python in our own code are cleared: a program under observation never sees them.
 */
#ifndef TRACESMITH_TORCH_PROFILE_H
#define TRACESMITH_TORCH_PROFILE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/torch.h>

/* The same value since 3.7, but part of the limited API since 3.10 only. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif

/* ---- what is recorded, and what is needed of torch (torch_module.c) ---- */

/* How often a reading that costs time is taken. */
enum ts_reading {
	TS_READING_NEVER = 0,
	TS_READING_ALWAYS = 1,
	TS_READING_AUTO = 2, /* as long as it costs at most `share` of the time */
};

struct ts_budget {
	enum ts_reading reading;
	int64_t credit_ns, since_ns;
	int64_t cost_ns; /* of one reading, a moving average */
};

struct ts_profile {
	bool modules;     /* rows of modules are wanted at all */
	bool step_chosen; /* ... and in this step */
	bool backward;
	bool graph_is_compiled; /* with compiled autograd, which would trace our hooks */
	bool ordered;           /* `rate` chooses steps, not calls */
	double rate;
	int64_t every;
	double share; /* of the time, for each budget */
	struct ts_budget memory, device_time;
	int32_t rank;
	int32_t default_device; /* of optimizers; -1: host */
	int64_t step, seq;
	uint64_t generation; /* counts steps, whatever their numbers are */
	bool explicit_steps;
	uint64_t rows, failures;
	/* Of torch; NULL if this version has none. */
	PyObject *tensor_type, *parameter_type;
	PyObject *is_grad_enabled, *current_graph_task_id, *queue_callback;
	PyObject *function_mode_enabled, *set_eval_frame;
	PyObject *hook_carrier; /* a tensor that nobody else has */
	PyObject *memory_stats, *raw_stream;
	/* Of tracesmith.torch. */
	PyObject *name_module, *outermost_call, *gradient_node, *device_of;
};

extern struct ts_profile ts_profile;

int64_t ts_profile_now(void); /* CLOCK_MONOTONIC */
/* A new reference, or NULL without an error set. */
PyObject *ts_profile_quiet(PyObject *result);
/*
 * Calls a Python function of ours out of dynamo's sight: it would compile what it meets below a
 * compiled function. A new reference, or NULL without an error set.
 */
PyObject *ts_profile_python(PyObject *function, PyObject *first, PyObject *second);
/* An integer from a C function without arguments; `otherwise` if it fails or is missing. */
int64_t ts_profile_integer(PyObject *function, int64_t otherwise);
/* True if rows are stored now. */
bool ts_profile_is_on(void);
/* True if a reading may be taken now; ts_budget_spent() follows. */
bool ts_budget_allows(struct ts_budget *budget, int64_t now_ns);
void ts_budget_spent(struct ts_budget *budget, int64_t cost_ns);

/* ---- device times (torch_device.c) ---- */

/* CUDA events around a piece of work; {0} has none. */
struct ts_span {
	void *start, *end;
	int32_t device;
};

/* Finds the driver; until then, and if it is missing, spans stay empty. */
void ts_device_init(void);
bool ts_device_is_ready(void);
void ts_span_start(struct ts_span *span, int32_t device, bool outermost);
void ts_span_stop(struct ts_span *span);
/* Undoes ts_span_stop(): the work goes on. */
void ts_span_resume(struct ts_span *span);
/* Takes the events; the row `serial` receives its device time when the device has finished. */
void ts_span_finish(struct ts_span *span, uint64_t serial);
void ts_span_drop(struct ts_span *span);
/* Hands over what the device has finished; returns how many are still under way. */
unsigned int ts_device_poll(void);

/* ---- rows (torch_row.c) ---- */

struct ts_execution {
	uint32_t path, stage;
	int64_t start_ns, end_ns, step, seq;
	int32_t device;
	bool outermost; /* its memory is read first */
	bool failed;    /* an exception is set: nothing is asked of Python */
};

/* Stores a row, and takes the span. */
void ts_execution_store(const struct ts_execution *execution, struct ts_span *span);

/* ---- modules by address (torch_table.c) ---- */

#define TS_DEVICE_UNKNOWN (-2)

struct ts_module {
	PyObject *object; /* borrowed: dies after its weak reference's callback removed this */
	PyObject *weak;
	PyObject *inner; /* borrowed, for comparison: a module that shares this one's row */
	char *name;
	uint32_t path; /* the name, in rows */
	int32_t device;
	bool selected;
};

/* NULL if the module has no name yet. */
struct ts_module *ts_table_find(PyObject *object);
/* -1 with an error set. */
int ts_table_put(PyObject *object, const char *path, bool selected, PyObject *inner);
void ts_table_clear(void);
Py_ssize_t ts_table_count(void);

/* ---- backward (torch_backward.c) ---- */

enum ts_backward_state {
	TS_BACKWARD_IDLE,
	TS_BACKWARD_OPEN,
	TS_BACKWARD_PARTLY, /* the gradient of one input of several is complete */
	TS_BACKWARD_CLOSED, /* another module's backward has started */
};

/* A forward call whose backward is awaited; owned by hooks of nodes and by inner calls. */
struct ts_invocation {
	unsigned int refs;
	unsigned int depth;
	unsigned int inputs, inputs_left;
	struct ts_invocation *outer;
	uint32_t path;
	int32_t device;
	enum ts_backward_state state;
	int64_t start_ns, end_ns, step, seq, pass;
	uint64_t generation;
	struct ts_span span;
	uint64_t thread;
	struct ts_invocation *next, *previous; /* of those that are not idle */
};

int ts_backward_init(PyObject *module);
struct ts_invocation *ts_invocation_new(uint32_t path, int32_t device, struct ts_invocation *outer);
void ts_invocation_unref(struct ts_invocation *invocation);
/* The gradient of this value of a call starts its backward. */
void ts_backward_output(struct ts_invocation *invocation, PyObject *value);
/* The gradient of these arguments ends it. */
void ts_backward_inputs(struct ts_invocation *invocation, PyObject *args, PyObject *kwargs);
/* At the end of a thread's outermost call: forgets which nodes have hooks. */
void ts_backward_forget_nodes(void);
/* Drops what an exception in a backward pass has left open before this generation. */
void ts_backward_abandon(uint64_t generation);

/* ---- calls and steps (torch_call.c, torch_step.c) ---- */

PyObject *ts_call_run(PyObject *self, PyObject *const *argv, Py_ssize_t argc);
void ts_step_choose(void);
void ts_step_outermost(PyObject *object, bool grad_enabled);
PyObject *ts_step_optimizer_begin(PyObject *self, PyObject *optimizer);
PyObject *ts_step_optimizer_end(PyObject *self, PyObject *args);
void ts_step_reset(void);

#endif
