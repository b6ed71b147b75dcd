/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of modules' backward, from pre-hooks of autograd nodes, which see a node run and change
 * nothing. The node that made a module's output starts its backward; the nodes that made its
 * inputs, which run once their gradients are complete, end it. Nodes of one thread run one after
 * another, later forward calls first, so a module whose inputs also feed others (q, k and v of an
 * attention) or need no gradient has finished when the next module starts that is not inside it.
 * Modules still open at the end of the pass end there.
 */
#include "torch_profile.h"

#include <stdlib.h>
#include <string.h>

enum {
	RECENT_NODES = 8,
	INPUTS_MAX = 8,
	OUTPUTS_MAX = 16,
	NESTING_MAX = 3, /* of containers around tensors */
	VALUES_MAX = 64, /* looked at to find them */
	PASSES = 8,
};

/* ---- hooks of nodes ---- */

struct action {
	struct ts_invocation *invocation;
	bool starts;
};

/* What happens when a node runs, in reverse order: the last call that used its result ends first,
   the call that made it starts last. */
struct node_hook {
	PyObject_HEAD unsigned int count, capacity;
	struct action *actions;
	struct action few[4];
};

static PyTypeObject *hook_type;
static PyObject *name_grad_fn, *name_backward_hooks, *name_register_hook_dict;
static PyObject *name_register_prehook, *zero;

/* Nodes that got a hook lately in this thread: what one module returns, the next one takes. */
static __thread struct {
	PyObject *node, *hook;
} recent[RECENT_NODES];
static __thread unsigned int recent_at;
static __thread char thread_mark; /* its address names the thread */

static struct ts_invocation open_list = { .next = &open_list, .previous = &open_list };
static int64_t passes[PASSES]; /* whose ends are awaited */
static unsigned int pass_at;

static void hook_dealloc(PyObject *object)
{
	struct node_hook *hook = (struct node_hook *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	for (unsigned int i = 0; i < hook->count; i++)
		ts_invocation_unref(hook->actions[i].invocation);
	if (hook->actions != hook->few)
		free(hook->actions);
	release(object);
	Py_DECREF(type);
}

static struct node_hook *hook_new(void)
{
	allocfunc allocate = (allocfunc)PyType_GetSlot(hook_type, Py_tp_alloc);
	struct node_hook *hook = (struct node_hook *)allocate(hook_type, 0);

	if (hook) {
		hook->actions = hook->few;
		hook->capacity = sizeof(hook->few) / sizeof(hook->few[0]);
	}
	return hook;
}

static bool add_action(struct node_hook *hook, struct ts_invocation *invocation, bool starts)
{
	struct action *larger;

	for (unsigned int i = 0; i < hook->count; i++)
		if (hook->actions[i].invocation == invocation && hook->actions[i].starts == starts)
			return false;
	if (hook->count == hook->capacity) {
		larger = malloc(2 * hook->capacity * sizeof(*larger));
		if (!larger)
			return false;
		memcpy(larger, hook->actions, hook->count * sizeof(*larger));
		if (hook->actions != hook->few)
			free(hook->actions);
		hook->actions = larger;
		hook->capacity *= 2;
	}
	hook->actions[hook->count++] = (struct action){ invocation, starts };
	invocation->refs++;
	return true;
}

static PyObject *call_method(PyObject *object, PyObject *name, PyObject *argument)
{
	PyObject *method = PyObject_GetAttr(object, name);
	PyObject *result = method ? PyObject_CallFunctionObjArgs(method, argument, NULL) : NULL;

	Py_XDECREF(method);
	return result;
}

/*
 * As Tensor.register_hook() does, with a dictionary of our own on a tensor that nobody else has:
 * no Python code runs, which makes up most of the cost of Node.register_prehook().
 */
static bool attach_by_carrier(PyObject *node, PyObject *hook)
{
	PyObject *hooks = PyDict_New();
	PyObject *result = NULL;

	if (hooks && PyDict_SetItem(hooks, zero, hook) == 0 &&
	    PyObject_SetAttr(ts_profile.hook_carrier, name_backward_hooks, hooks) == 0)
		result = call_method(node, name_register_hook_dict, ts_profile.hook_carrier);
	Py_XDECREF(hooks);
	Py_XDECREF(result);
	PyErr_Clear();
	return result != NULL;
}

static bool attach(PyObject *node, PyObject *hook)
{
	PyObject *handle;

	/* A mode would see the carrier being written to. */
	if (ts_profile.hook_carrier && !ts_profile_integer(ts_profile.function_mode_enabled, 0) &&
	    attach_by_carrier(node, hook))
		return true;
	handle = ts_profile_quiet(call_method(node, name_register_prehook, hook));
	Py_XDECREF(handle);
	return handle != NULL;
}

static void remember(PyObject *node, PyObject *hook)
{
	PyObject *old_node = recent[recent_at].node, *old_hook = recent[recent_at].hook;

	Py_INCREF(node);
	recent[recent_at].node = node;
	recent[recent_at].hook = hook;
	recent_at = (recent_at + 1) % RECENT_NODES;
	Py_XDECREF(old_node);
	Py_XDECREF(old_hook);
}

/* Borrowed; NULL if the node takes no hook. */
static struct node_hook *hook_of(PyObject *node)
{
	struct node_hook *hook;

	for (unsigned int i = 0; i < RECENT_NODES; i++)
		if (recent[i].node == node)
			return (struct node_hook *)recent[i].hook;
	hook = hook_new();
	if (hook && !attach(node, (PyObject *)hook)) {
		Py_DECREF((PyObject *)hook);
		return NULL;
	}
	if (hook)
		remember(node, (PyObject *)hook);
	else
		PyErr_Clear();
	return hook;
}

void ts_backward_forget_nodes(void)
{
	for (unsigned int i = 0; i < RECENT_NODES; i++) {
		PyObject *node = recent[i].node, *hook = recent[i].hook;

		recent[i].node = recent[i].hook = NULL;
		Py_XDECREF(node);
		Py_XDECREF(hook);
	}
}

/* ---- invocations ---- */

struct ts_invocation *ts_invocation_new(uint32_t path, int32_t device, struct ts_invocation *outer)
{
	struct ts_invocation *invocation = calloc(1, sizeof(*invocation));

	if (!invocation)
		return NULL;
	*invocation = (struct ts_invocation){ .refs = 1,
					      .depth = outer ? outer->depth + 1 : 0,
					      .outer = outer,
					      .path = path,
					      .device = device };
	if (outer)
		outer->refs++;
	return invocation;
}

static void close_list(struct ts_invocation *invocation)
{
	invocation->state = TS_BACKWARD_IDLE;
	invocation->previous->next = invocation->next;
	invocation->next->previous = invocation->previous;
	invocation->next = invocation->previous = NULL;
}

void ts_invocation_unref(struct ts_invocation *invocation)
{
	while (invocation && --invocation->refs == 0) {
		struct ts_invocation *outer = invocation->outer;

		if (invocation->state != TS_BACKWARD_IDLE)
			close_list(invocation);
		ts_span_drop(&invocation->span);
		free(invocation);
		invocation = outer;
	}
}

static bool is_inside(const struct ts_invocation *inner, const struct ts_invocation *outer)
{
	while (inner && inner->depth > outer->depth)
		inner = inner->outer;
	return inner == outer;
}

static void finish(struct ts_invocation *invocation)
{
	struct ts_execution execution = {
		.path = invocation->path,
		.stage = TS_TORCH_BACKWARD,
		.start_ns = invocation->start_ns,
		.end_ns = invocation->end_ns,
		.step = invocation->step,
		.seq = invocation->seq,
		.device = invocation->device,
		.outermost = !invocation->outer,
	};

	/* A module that returns its argument starts and ends at once. */
	if (execution.end_ns < execution.start_ns)
		execution.end_ns = execution.start_ns;
	close_list(invocation);
	/* Reading memory may run anything, and so free the graph that holds it. */
	invocation->refs++;
	ts_execution_store(&execution, &invocation->span);
	ts_invocation_unref(invocation);
}

/*
 * A call has returned, since another one starts that is not inside it. A pass inside a node of
 * another pass (gradient checkpointing) says nothing of calls of that one.
 */
static void close_others(const struct ts_invocation *starting, uint64_t thread, int64_t pass,
			 int64_t now_ns)
{
	for (struct ts_invocation *at = open_list.next; at != &open_list; at = at->next) {
		if (at->thread != thread || at->pass != pass || at->state == TS_BACKWARD_CLOSED ||
		    is_inside(starting, at) || is_inside(at, starting))
			continue;
		if (at->state == TS_BACKWARD_OPEN) {
			at->end_ns = now_ns;
			ts_span_stop(&at->span);
		}
		at->state = TS_BACKWARD_CLOSED;
	}
}

/* ---- the end of a pass ---- */

static PyObject *end_of_pass(PyObject *number, PyObject *unused)
{
	int64_t pass = PyLong_AsLongLong(number);
	int64_t now_ns = ts_profile_now();
	struct ts_invocation *at = open_list.next;

	(void)unused;
	while (at != &open_list) {
		if (at->pass != pass) {
			at = at->next;
			continue;
		}
		if (at->state == TS_BACKWARD_OPEN)
			at->end_ns = now_ns;
		finish(at);
		/* Another thread may have run meanwhile, and have freed the next one. */
		at = open_list.next;
	}
	for (unsigned int i = 0; i < PASSES; i++)
		if (passes[i] == pass + 1)
			passes[i] = 0;
	Py_RETURN_NONE;
}

static PyMethodDef end_of_pass_method = { "end_of_pass", end_of_pass, METH_NOARGS, NULL };

/* The pass that runs in this thread, whose end is awaited from now on. */
static int64_t enter_pass(void)
{
	int64_t pass = ts_profile_integer(ts_profile.current_graph_task_id, -1);
	PyObject *number, *callback;

	for (unsigned int i = 0; i < PASSES; i++)
		if (passes[i] == pass + 1) /* 0: unused */
			return pass;
	number = PyLong_FromLongLong(pass);
	callback = number ? PyCFunction_NewEx(&end_of_pass_method, number, NULL) : NULL;
	Py_XDECREF(number);
	if (callback && ts_profile.queue_callback) {
		passes[pass_at] = pass + 1;
		pass_at = (pass_at + 1) % PASSES;
		Py_XDECREF(ts_profile_quiet(
			PyObject_CallFunctionObjArgs(ts_profile.queue_callback, callback, NULL)));
	}
	Py_XDECREF(callback);
	PyErr_Clear();
	return pass;
}

void ts_backward_abandon(uint64_t generation)
{
	struct ts_invocation *at = open_list.next;

	while (at != &open_list) {
		struct ts_invocation *next = at->next;

		if (at->generation < generation) {
			ts_span_drop(&at->span);
			close_list(at);
		}
		at = next;
	}
}

/* ---- a node runs ---- */

static void start_backward(struct ts_invocation *invocation, int64_t now_ns)
{
	uint64_t thread = (uint64_t)(uintptr_t)&thread_mark;
	int64_t pass;

	if (invocation->state != TS_BACKWARD_IDLE || !ts_profile_is_on())
		return;
	pass = enter_pass();
	if (invocation->state != TS_BACKWARD_IDLE)
		return;
	close_others(invocation, thread, pass, now_ns);
	for (struct ts_invocation *outer = invocation->outer; outer; outer = outer->outer)
		if (outer->state == TS_BACKWARD_PARTLY || outer->state == TS_BACKWARD_CLOSED) {
			outer->state = TS_BACKWARD_OPEN;
			ts_span_resume(&outer->span);
		}
	invocation->state = TS_BACKWARD_OPEN;
	invocation->inputs_left = invocation->inputs;
	invocation->thread = thread;
	invocation->pass = pass;
	invocation->generation = ts_profile.generation;
	invocation->step = ts_profile.step;
	invocation->seq = ts_profile.seq++;
	invocation->next = &open_list;
	invocation->previous = open_list.previous;
	open_list.previous->next = invocation;
	open_list.previous = invocation;
	ts_span_start(&invocation->span, invocation->device, !invocation->outer);
	invocation->start_ns = invocation->end_ns = ts_profile_now();
}

static void end_backward(struct ts_invocation *invocation, int64_t now_ns)
{
	if (invocation->state == TS_BACKWARD_IDLE || !invocation->inputs_left)
		return;
	invocation->inputs_left--;
	if (invocation->state != TS_BACKWARD_CLOSED) {
		if (invocation->state == TS_BACKWARD_PARTLY)
			ts_span_resume(&invocation->span);
		invocation->state = TS_BACKWARD_PARTLY;
		invocation->end_ns = now_ns;
		ts_span_stop(&invocation->span);
	}
	if (!invocation->inputs_left)
		finish(invocation);
}

static PyObject *hook_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
	struct node_hook *hook = (struct node_hook *)object;
	int64_t now_ns = ts_profile_now();

	(void)args;
	(void)kwargs;
	for (unsigned int i = hook->count; i-- > 0;)
		if (hook->actions[i].starts)
			start_backward(hook->actions[i].invocation, now_ns);
		else
			end_backward(hook->actions[i].invocation, now_ns);
	Py_RETURN_NONE;
}

/* ---- values of a call ---- */

/* The node that made this value; a new reference, or NULL. */
static PyObject *node_of(PyObject *tensor)
{
	PyObject *node;

	/* With a mode, or a type that overrides functions, even this would be dispatched. */
	if ((Py_TYPE(tensor) != (PyTypeObject *)ts_profile.tensor_type &&
	     Py_TYPE(tensor) != (PyTypeObject *)ts_profile.parameter_type) ||
	    ts_profile_integer(ts_profile.function_mode_enabled, 0))
		node = ts_profile_python(ts_profile.gradient_node, tensor, NULL);
	else
		node = ts_profile_quiet(PyObject_GetAttr(tensor, name_grad_fn));
	if (!node)
		return NULL;
	if (node == Py_None) {
		Py_DECREF(node);
		return NULL;
	}
	return node;
}

struct visit {
	struct ts_invocation *invocation;
	unsigned int found, limit, seen;
	bool starts;
};

static void visit_value(struct visit *visit, PyObject *value, unsigned int nesting);

static bool has_room(const struct visit *visit)
{
	return visit->found < visit->limit && visit->seen < VALUES_MAX;
}

static bool is_tensor(PyObject *value)
{
	PyTypeObject *type = Py_TYPE(value);

	return type == (PyTypeObject *)ts_profile.tensor_type ||
	       type == (PyTypeObject *)ts_profile.parameter_type ||
	       PyType_IsSubtype(type, (PyTypeObject *)ts_profile.tensor_type);
}

static void visit_container(struct visit *visit, PyObject *value, unsigned int nesting)
{
	PyObject *key, *item;
	Py_ssize_t at = 0;

	if (PyTuple_Check(value)) {
		for (; at < PyTuple_Size(value) && has_room(visit); at++)
			visit_value(visit, PyTuple_GetItem(value, at), nesting);
	} else if (PyList_Check(value)) {
		for (; at < PyList_Size(value) && has_room(visit); at++)
			visit_value(visit, PyList_GetItem(value, at), nesting);
	} else if (PyDict_Check(value)) {
		while (has_room(visit) && PyDict_Next(value, &at, &key, &item))
			visit_value(visit, item, nesting);
	}
}

static void visit_value(struct visit *visit, PyObject *value, unsigned int nesting)
{
	PyObject *node;
	struct node_hook *hook;

	if (!value || value == Py_None || visit->seen++ >= VALUES_MAX)
		return;
	if (!is_tensor(value)) {
		if (nesting < NESTING_MAX)
			visit_container(visit, value, nesting + 1);
		return;
	}
	visit->found++;
	node = node_of(value);
	if (!node)
		return;
	hook = hook_of(node);
	if (hook && add_action(hook, visit->invocation, visit->starts) && !visit->starts)
		visit->invocation->inputs++;
	Py_DECREF(node);
}

void ts_backward_output(struct ts_invocation *invocation, PyObject *value)
{
	struct visit visit = { .invocation = invocation, .limit = OUTPUTS_MAX, .starts = true };

	visit_value(&visit, value, 0);
	PyErr_Clear();
}

void ts_backward_inputs(struct ts_invocation *invocation, PyObject *args, PyObject *kwargs)
{
	struct visit visit = { .invocation = invocation, .limit = INPUTS_MAX };

	visit_container(&visit, args, 1);
	if (kwargs)
		visit_container(&visit, kwargs, 1);
	PyErr_Clear();
}

/* ---- the type ---- */

static PyType_Slot hook_slots[] = {
	{ Py_tp_dealloc, hook_dealloc },
	{ Py_tp_call, hook_call },
	{ 0, NULL },
};

static PyType_Spec hook_spec = {
	.name = "tracesmith._torch.NodeHook",
	.basicsize = sizeof(struct node_hook),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = hook_slots,
};

int ts_backward_init(PyObject *module)
{
	(void)module;
	if (!hook_type)
		hook_type = (PyTypeObject *)PyType_FromSpec(&hook_spec);
	name_grad_fn = PyUnicode_InternFromString("grad_fn");
	name_backward_hooks = PyUnicode_InternFromString("_backward_hooks");
	name_register_hook_dict = PyUnicode_InternFromString("_register_hook_dict");
	name_register_prehook = PyUnicode_InternFromString("register_prehook");
	zero = PyLong_FromLong(0);
	return hook_type && name_grad_fn && name_backward_hooks && name_register_hook_dict &&
			       name_register_prehook && zero
		       ? 0
		       : -1;
}
