/* SPDX-License-Identifier: Apache-2.0 */
/* tracesmith._emit: emits events from Python into the live area of the process. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <tracesmith/emit.h>

static PyObject *is_enabled(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyBool_FromLong(ts_enabled());
}

static PyMethodDef methods[] = {
	{ "is_enabled", is_enabled, METH_NOARGS, "True while events are stored." },
	{ NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
	{ 0, NULL },
};

static struct PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "tracesmith._emit",
	.m_methods = methods,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__emit(void);
PyMODINIT_FUNC PyInit__emit(void)
{
	return PyModuleDef_Init(&definition);
}
