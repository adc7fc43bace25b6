/* What the C files of the Python package share. */
#ifndef LATTN_PYTHON_H
#define LATTN_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <lattn/lattn.h>

typedef struct {
    PyObject_HEAD lattn_context *context;
    lattn_device *device;
} device_object;

typedef struct {
    PyObject_HEAD device_object *device;
    lattn_stream *stream;
} stream_object;

/* Raises lattn.Error with the message of the call that failed; returns NULL. */
PyObject *lattn_python_raise(lattn_status status);

/* tensors.c */
PyObject *lattn_python_use_tensors(PyObject *module, PyObject *args);
PyObject *lattn_python_prefill(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *lattn_python_prefill_packed(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *lattn_python_decode(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
