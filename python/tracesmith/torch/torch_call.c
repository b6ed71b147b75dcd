/* SPDX-License-Identifier: Apache-2.0 */
/* A module's call: what torch.nn.Module.__call__ hands over while calls are recorded. */
#include "torch_profile.h"

#include <string.h>

/* A call in progress, on the stack of C. */
struct call {
	struct call *outer;
	PyObject *object;
	PyObject *inner; /* for comparison: the module that shares its row */
	/* Of this call, or of the nearest one around it that has a row. */
	struct ts_invocation *invocation;
	uint32_t path;
	int32_t device;
	bool recorded, recomputed;
	int64_t start_ns, step, seq;
	struct ts_span span;
};

static __thread struct call *innermost;
static __thread uint64_t random_state;

/* True with this probability (xorshift*). */
static bool chance(double probability)
{
	if (probability >= 1)
		return true;
	if (!random_state)
		random_state = (uint64_t)ts_profile_now() ^ (uint64_t)(uintptr_t)&random_state;
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (double)((random_state * 0x2545f4914f6cdd1dull) >> 11) / 9007199254740992.0 <
	       probability;
}

/* The row of the call around it stands for this one, too: torch.compile's module and its model. */
static bool shares_row(const struct call *call)
{
	return call->outer && call->outer->inner == call->object;
}

/* A compiler tries out the module: its first argument only stands for a tensor. */
static bool is_tried_out(PyObject *args)
{
	PyObject *first = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL;
	PyTypeObject *type = first ? Py_TYPE(first) : (PyTypeObject *)ts_profile.tensor_type;
	PyObject *name;
	bool is_fake;

	if (type == (PyTypeObject *)ts_profile.tensor_type ||
	    !PyType_IsSubtype(type, (PyTypeObject *)ts_profile.tensor_type))
		return false;
	name = ts_profile_quiet(PyObject_GetAttrString((PyObject *)type, "__name__"));
	is_fake = name && (PyUnicode_CompareWithASCIIString(name, "FakeTensor") == 0 ||
			   PyUnicode_CompareWithASCIIString(name, "FunctionalTensor") == 0);
	Py_XDECREF(name);
	return is_fake;
}

/* Valid until Python code runs, which may forget names. */
static struct ts_module *find_module(const struct call *call)
{
	struct ts_module *module = ts_table_find(call->object);
	PyObject *outer;

	if (module)
		return module;
	outer = call->outer ? call->outer->object : Py_None;
	Py_XDECREF(ts_profile_python(ts_profile.name_module, call->object, outer));
	return ts_table_find(call->object);
}

/* The device of a module's first call is not known yet: most likely that of its arguments. */
static int32_t expected_device(const struct call *call, PyObject *args, PyObject *kwargs)
{
	PyObject *const values[] = { args, kwargs };
	int32_t device = call->device;

	if (device != TS_DEVICE_UNKNOWN)
		return device;
	for (int i = 0; i < 2 && values[i] && device < 0; i++) {
		PyObject *number = ts_profile_python(ts_profile.device_of, values[i], NULL);

		device = number ? (int32_t)PyLong_AsLong(number) : TS_DEVICE_UNKNOWN;
		PyErr_Clear();
		Py_XDECREF(number);
	}
	return device;
}

static void begin(struct call *call, PyObject *args, PyObject *kwargs)
{
	const struct ts_module *module;

	if (is_tried_out(args))
		return;
	module = find_module(call);
	if (!module)
		return;
	call->inner = module->inner;
	if (!module->selected || shares_row(call) ||
	    (!ts_profile.ordered && !chance(ts_profile.rate)))
		return;
	call->recorded = true;
	call->path = module->path;
	call->device = module->device;
	call->step = ts_profile.step;
	call->seq = ts_profile.seq++;
	if (ts_profile.backward && !ts_profile.graph_is_compiled &&
	    ts_profile_integer(ts_profile.is_grad_enabled, 0)) {
		struct ts_invocation *invocation =
			ts_invocation_new(call->path, call->device, call->invocation);

		if (invocation) {
			call->invocation = invocation;
			ts_backward_inputs(invocation, args, kwargs);
		}
	}
	ts_span_start(&call->span, expected_device(call, args, kwargs), !call->outer);
	call->start_ns = ts_profile_now();
}

/* Which device a module works on is seen in what it returns. */
static void learn_device(struct call *call, PyObject *result)
{
	PyObject *number = ts_profile_python(ts_profile.device_of, result, NULL);
	struct ts_module *module;

	call->device = number ? (int32_t)PyLong_AsLong(number) : -1;
	PyErr_Clear();
	Py_XDECREF(number);
	module = ts_table_find(call->object);
	if (module)
		module->device = call->device;
}

/* The model was moved since the module's first call. */
static bool has_moved(const struct call *call, PyObject *result)
{
	static PyObject *name;
	PyObject *is_cuda;
	bool moved;

	/* The attributes of other values may run code of the program. */
	if (Py_TYPE(result) != (PyTypeObject *)ts_profile.tensor_type ||
	    ts_profile_integer(ts_profile.function_mode_enabled, 0))
		return false;
	if (!name)
		name = ts_profile_quiet(PyUnicode_InternFromString("is_cuda"));
	is_cuda = name ? ts_profile_quiet(PyObject_GetAttr(result, name)) : NULL;
	moved = is_cuda && (is_cuda == Py_True) != (call->device >= 0);
	Py_XDECREF(is_cuda);
	return moved;
}

static void end(struct call *call, PyObject *result)
{
	struct ts_execution execution = {
		.path = call->path,
		.stage = call->recomputed ? TS_TORCH_RECOMPUTE : TS_TORCH_FORWARD,
		.start_ns = call->start_ns,
		.end_ns = ts_profile_now(),
		.step = call->step,
		.seq = call->seq,
		.outermost = !call->outer,
		.failed = !result,
	};
	struct ts_invocation *outer = call->outer ? call->outer->invocation : NULL;

	if (result && (call->device == TS_DEVICE_UNKNOWN || has_moved(call, result)))
		learn_device(call, result);
	execution.device = call->device;
	if (result && call->device == call->span.device)
		ts_span_stop(&call->span);
	else
		ts_span_drop(&call->span);
	ts_execution_store(&execution, &call->span);
	if (call->invocation == outer)
		return;
	call->invocation->device = execution.device;
	if (result)
		ts_backward_output(call->invocation, result);
	ts_invocation_unref(call->invocation);
}

static void begin_outermost(struct call *call)
{
	bool grad_enabled = ts_profile_integer(ts_profile.is_grad_enabled, 0);

	/* Gradient checkpointing runs a forward again inside the backward pass. */
	call->recomputed = ts_profile_integer(ts_profile.current_graph_task_id, -1) >= 0;
	if (!call->recomputed)
		ts_step_outermost(call->object, grad_enabled);
}

static void end_outermost(bool failed)
{
	PyObject *type, *value, *traceback;

	if (failed)
		PyErr_Fetch(&type, &value, &traceback);
	ts_backward_forget_nodes();
	if (!failed && ts_device_is_ready())
		ts_device_poll();
	if (failed)
		PyErr_Restore(type, value, traceback);
}

/* _tracesmith_call(module, callable, args, kwargs) */
PyObject *ts_call_run(PyObject *self, PyObject *const *argv, Py_ssize_t argc)
{
	struct call call;
	PyObject *result, *kwargs;

	(void)self;
	if (argc != 4) {
		PyErr_SetString(PyExc_TypeError, "expected module, callable, args and kwargs");
		return NULL;
	}
	kwargs = PyDict_Size(argv[3]) ? argv[3] : NULL;
	memset(&call, 0, sizeof(call));
	call.outer = innermost;
	call.object = argv[0];
	if (call.outer) {
		call.invocation = call.outer->invocation;
		call.recomputed = call.outer->recomputed;
	} else {
		begin_outermost(&call);
	}
	if (ts_profile_is_on())
		begin(&call, argv[2], kwargs);
	innermost = &call;
	result = PyObject_Call(argv[1], argv[2], kwargs);
	innermost = call.outer;
	if (call.recorded)
		end(&call, result);
	if (!call.outer)
		end_outermost(!result);
	return result;
}
