/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module tracesmith._torch: settings, and what the rest of it shares. */
#include "torch_profile.h"

#include <errno.h>
#include <string.h>
#include <time.h>

struct ts_profile ts_profile = {
	.step_chosen = true,
	.backward = true,
	.ordered = true,
	.rate = 1,
	.every = 1,
	.share = 0.01,
	.rank = TS_TORCH_NO_RANK,
	.default_device = -1,
};

int64_t ts_profile_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

bool ts_profile_is_on(void)
{
	return ts_profile.modules && ts_profile.step_chosen && ts_enabled();
}

PyObject *ts_profile_quiet(PyObject *result)
{
	if (!result) {
		PyErr_Clear();
		ts_profile.failures++;
	}
	return result;
}

PyObject *ts_profile_python(PyObject *function, PyObject *first, PyObject *second)
{
	PyObject *callback = NULL, *result;

	if (!function)
		return NULL;
	if (ts_profile.set_eval_frame)
		callback = ts_profile_quiet(
			PyObject_CallFunctionObjArgs(ts_profile.set_eval_frame, Py_None, NULL));
	result = ts_profile_quiet(PyObject_CallFunctionObjArgs(function, first, second, NULL));
	if (callback && callback != Py_None)
		Py_XDECREF(ts_profile_quiet(
			PyObject_CallFunctionObjArgs(ts_profile.set_eval_frame, callback, NULL)));
	Py_XDECREF(callback);
	return result;
}

int64_t ts_profile_integer(PyObject *function, int64_t otherwise)
{
	PyObject *result;
	long long value;

	if (!function)
		return otherwise;
	/* Without the frame of a call, whose cost is several times theirs. */
	if (PyCFunction_Check(function) && PyCFunction_GetFlags(function) == METH_NOARGS)
		result = PyCFunction_GetFunction(function)(PyCFunction_GetSelf(function), NULL);
	else
		result = PyObject_CallFunctionObjArgs(function, NULL);
	ts_profile_quiet(result);
	if (!result)
		return otherwise;
	if (result == Py_True || result == Py_False || result == Py_None)
		value = result == Py_True;
	else if (PyLong_Check(result))
		value = PyLong_AsLongLong(result);
	else
		value = 1; /* something is there */
	Py_DECREF(result);
	if (value == -1 && PyErr_Occurred()) {
		PyErr_Clear();
		return otherwise;
	}
	return value;
}

/* ---- budgets ---- */

bool ts_budget_allows(struct ts_budget *budget, int64_t now_ns)
{
	int64_t limit_ns;

	if (budget->reading != TS_READING_AUTO)
		return budget->reading == TS_READING_ALWAYS;
	if (!budget->since_ns)
		budget->since_ns = now_ns;
	/* Short bursts are allowed, so that a single long step gets values, too. */
	limit_ns = 50 * budget->cost_ns;
	budget->credit_ns += (int64_t)((double)(now_ns - budget->since_ns) * ts_profile.share);
	budget->since_ns = now_ns;
	if (budget->credit_ns > limit_ns)
		budget->credit_ns = limit_ns;
	return budget->credit_ns >= 0;
}

void ts_budget_spent(struct ts_budget *budget, int64_t cost_ns)
{
	budget->credit_ns -= cost_ns;
	budget->cost_ns = budget->cost_ns ? (budget->cost_ns * 7 + cost_ns) / 8 : cost_ns;
}

/* ---- settings ---- */

static const struct {
	const char *name;
	PyObject **object;
} objects[] = {
	{ "tensor_type", &ts_profile.tensor_type },
	{ "parameter_type", &ts_profile.parameter_type },
	{ "is_grad_enabled", &ts_profile.is_grad_enabled },
	{ "current_graph_task_id", &ts_profile.current_graph_task_id },
	{ "queue_callback", &ts_profile.queue_callback },
	{ "function_mode_enabled", &ts_profile.function_mode_enabled },
	{ "hook_carrier", &ts_profile.hook_carrier },
	{ "set_eval_frame", &ts_profile.set_eval_frame },
	{ "memory_stats", &ts_profile.memory_stats },
	{ "raw_stream", &ts_profile.raw_stream },
	{ "name_module", &ts_profile.name_module },
	{ "outermost_call", &ts_profile.outermost_call },
	{ "gradient_node", &ts_profile.gradient_node },
	{ "device_of", &ts_profile.device_of },
};

/* bind(name=object, ...): what this module calls; None: this version of torch has none */
static PyObject *bind(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)self;
	(void)args;
	for (size_t i = 0; kwargs && i < sizeof(objects) / sizeof(objects[0]); i++) {
		PyObject *value = PyDict_GetItemString(kwargs, objects[i].name);
		PyObject *old = *objects[i].object;

		if (!value)
			continue;
		if (value == Py_None)
			value = NULL;
		Py_XINCREF(value);
		*objects[i].object = value;
		Py_XDECREF(old);
	}
	Py_RETURN_NONE;
}

/* set_options(modules, backward, ordered, rate, every, memory, device_time, share) */
static PyObject *set_options(PyObject *self, PyObject *args)
{
	int modules, backward, ordered, memory, device_time;
	double rate, share;
	long long every;

	(void)self;
	if (!PyArg_ParseTuple(args, "pppdLiid:set_options", &modules, &backward, &ordered, &rate,
			      &every, &memory, &device_time, &share))
		return NULL;
	ts_profile.modules = modules;
	ts_profile.backward = backward;
	ts_profile.ordered = ordered;
	ts_profile.rate = rate;
	ts_profile.every = every > 0 ? every : 1;
	ts_profile.share = share;
	ts_profile.memory = (struct ts_budget){ .reading = (enum ts_reading)memory };
	ts_profile.device_time = (struct ts_budget){ .reading = (enum ts_reading)device_time };
	ts_step_choose();
	Py_RETURN_NONE;
}

/* start(): from step 0 on */
static PyObject *start(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	ts_step_reset();
	Py_RETURN_NONE;
}

/* stop(): stores no more rows; forgets names */
static PyObject *stop(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	ts_profile.modules = false;
	ts_backward_abandon(UINT64_MAX);
	ts_table_clear();
	Py_RETURN_NONE;
}

/* set_device(number): CUDA is in use, with this device by default */
static PyObject *set_device(PyObject *self, PyObject *args)
{
	(void)self;
	if (!PyArg_ParseTuple(args, "i:set_device", &ts_profile.default_device))
		return NULL;
	ts_device_init();
	return PyBool_FromLong(ts_device_is_ready());
}

static PyObject *set_rank(PyObject *self, PyObject *args)
{
	(void)self;
	if (!PyArg_ParseTuple(args, "i:set_rank", &ts_profile.rank))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *set_compiled_autograd(PyObject *self, PyObject *on)
{
	(void)self;
	ts_profile.graph_is_compiled = on == Py_True;
	Py_RETURN_NONE;
}

/* add_module(module, path, selected, inner): inner's row is this one's; None: none */
static PyObject *add_module(PyObject *self, PyObject *args)
{
	PyObject *object, *inner;
	const char *path;
	int selected;

	(void)self;
	if (!PyArg_ParseTuple(args, "OspO:add_module", &object, &path, &selected, &inner) ||
	    ts_table_put(object, path, selected, inner == Py_None ? NULL : inner) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *has_module(PyObject *self, PyObject *object)
{
	(void)self;
	return PyBool_FromLong(ts_table_find(object) != NULL);
}

/* module_path(module) -> str or None */
static PyObject *module_path(PyObject *self, PyObject *object)
{
	struct ts_module *module = ts_table_find(object);

	(void)self;
	if (!module)
		Py_RETURN_NONE;
	return PyUnicode_FromString(module->name);
}

/* outside(function, argument): calls it out of dynamo's sight; errors are counted only */
static PyObject *outside(PyObject *self, PyObject *args)
{
	PyObject *function, *argument;

	(void)self;
	if (!PyArg_ParseTuple(args, "OO:outside", &function, &argument))
		return NULL;
	Py_XDECREF(ts_profile_python(function, argument, NULL));
	Py_RETURN_NONE;
}

/* start_flight() -> bool: False if this process is being recorded already */
static PyObject *start_flight(PyObject *self, PyObject *unused)
{
	struct ts_start_options options = { .size = sizeof(options) };
	int result;

	(void)self;
	(void)unused;
	/* Somebody else's flight mode is not ours to stop. */
	if (ts_enabled())
		Py_RETURN_FALSE;
	result = ts_start(&options);
	if (result && result != -EBUSY) {
		errno = -result;
		return PyErr_SetFromErrno(PyExc_OSError);
	}
	return PyBool_FromLong(!result);
}

static PyObject *stop_flight(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return PyLong_FromLong(ts_stop(NULL, 0));
}

static PyObject *forget_modules(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	ts_table_clear();
	Py_RETURN_NONE;
}

static PyObject *poll_devices(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return PyLong_FromLong(ts_device_is_ready() ? (long)ts_device_poll() : 0);
}

static PyObject *state(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return Py_BuildValue("{s:L,s:L,s:K,s:K,s:n,s:O,s:O}", "step", (long long)ts_profile.step,
			     "seq", (long long)ts_profile.seq, "rows",
			     (unsigned long long)ts_profile.rows, "failures",
			     (unsigned long long)ts_profile.failures, "modules", ts_table_count(),
			     "on", ts_profile_is_on() ? Py_True : Py_False, "explicit_steps",
			     ts_profile.explicit_steps ? Py_True : Py_False);
}

/* The casts only hide the other parameters that the flags announce. */
#define FUNCTION(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef methods[] = {
	{ "call", FUNCTION(ts_call_run), METH_FASTCALL, "Calls a module, and stores a row." },
	{ "optimizer_begin", ts_step_optimizer_begin, METH_O, "An optimizer's step begins." },
	{ "optimizer_end", ts_step_optimizer_end, METH_VARARGS, "An optimizer's step ends." },
	{ "bind", FUNCTION(bind), METH_VARARGS | METH_KEYWORDS, "What this module calls." },
	{ "set_options", set_options, METH_VARARGS, "What is recorded." },
	{ "start", start, METH_NOARGS, "Begins with step 0." },
	{ "stop", stop, METH_NOARGS, "Stores no more rows." },
	{ "set_device", set_device, METH_VARARGS, "CUDA is in use." },
	{ "set_rank", set_rank, METH_VARARGS, "Rank in the job." },
	{ "set_compiled_autograd", set_compiled_autograd, METH_O, "No hooks of nodes." },
	{ "add_module", add_module, METH_VARARGS, "Names a module." },
	{ "has_module", has_module, METH_O, "True if it has a name." },
	{ "module_path", module_path, METH_O, "Its name, or None." },
	{ "outside", outside, METH_VARARGS, "Calls a function out of dynamo's sight." },
	{ "start_flight", start_flight, METH_NOARGS, "Keeps rows in shared memory." },
	{ "stop_flight", stop_flight, METH_NOARGS, "Ends that." },
	{ "forget_modules", forget_modules, METH_NOARGS, "Forgets all names." },
	{ "poll_devices", poll_devices, METH_NOARGS, "Collects device times." },
	{ "state", state, METH_NOARGS, "Counters." },
	{ NULL, NULL, 0, NULL },
};

static int execute(PyObject *module)
{
	return ts_backward_init(module);
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, execute },
	{ 0, NULL },
};

static struct PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "tracesmith._torch",
	.m_methods = methods,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__torch(void);
PyMODINIT_FUNC PyInit__torch(void)
{
	return PyModuleDef_Init(&definition);
}
