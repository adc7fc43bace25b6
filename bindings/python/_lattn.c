/* The C side of the Python package: devices, streams, prefill and decode, on addresses and strides.
 * The Python side (lattn/torch.py, lattn/numpy.py) knows arrays, and checks them. */
#include "_lattn.h"

static PyObject *error_type; /* lattn.Error */

PyObject *lattn_python_raise(lattn_status status)
{
    PyObject *pair = Py_BuildValue("(ss)", lattn_error_message(), lattn_status_name(status));
    if (pair) {
        PyErr_SetObject(error_type, pair);
        Py_DECREF(pair);
    }
    return NULL;
}

/* ---- the device and its context -------------------------------------------------------------- */

static PyTypeObject *device_type, *stream_type;

static void device_dealloc(PyObject *self)
{
    device_object *object = (device_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    lattn_device_close(object->device);
    lattn_context_destroy(object->context);
    type->tp_free(self);
    Py_DECREF(type);
}

static void stream_dealloc(PyObject *self)
{
    stream_object *object = (stream_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    lattn_stream_destroy(object->stream);
    Py_XDECREF((PyObject *)object->device);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *new_object(PyTypeObject *type)
{
    return type->tp_alloc(type, 0);
}

/* open(backend, ordinal) -> Device */
static PyObject *open_device(PyObject *module, PyObject *args)
{
    (void)module;
    const char *backend;
    int ordinal;
    int32_t index;
    if (!PyArg_ParseTuple(args, "si", &backend, &ordinal))
        return NULL;
    device_object *object = (device_object *)new_object(device_type);
    if (!object)
        return NULL;
    lattn_status status = lattn_context_create(NULL, &object->context);
    if (!status)
        status = lattn_device_find(object->context, backend, ordinal, &index);
    if (!status)
        status = lattn_device_open(object->context, index, &object->device);
    if (status) {
        Py_DECREF((PyObject *)object);
        return lattn_python_raise(status);
    }
    return (PyObject *)object;
}

/* devices() -> [(backend, ordinal, kind, name, arch, driver, memory, usable, reason)] */
static PyObject *list_devices(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    static const char *const kinds[] = {"other", "cpu", "gpu"};
    lattn_context *context;
    lattn_status status = lattn_context_create(NULL, &context);
    if (status)
        return lattn_python_raise(status);
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; list && i < lattn_device_count(context); i++) {
        lattn_device_info info = LATTN_DEVICE_INFO_INIT;
        PyObject *item = NULL;
        status = lattn_device_info_get(context, i, &info);
        if (status)
            lattn_python_raise(status);
        else
            item = Py_BuildValue("(sissssKOs)", info.backend, info.ordinal, kinds[info.kind],
                                 info.name, info.arch, info.driver, (unsigned long long)info.memory,
                                 info.status ? Py_False : Py_True, info.reason);
        if (!item || PyList_Append(list, item))
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    lattn_context_destroy(context);
    return list;
}

/* Device.stream(native) -> Stream; native None: a new stream, else the address of the caller's. */
static PyObject *device_stream(PyObject *self, PyObject *native)
{
    device_object *device = (device_object *)self;
    void *address = NULL;
    if (native != Py_None) {
        address = PyLong_AsVoidPtr(native);
        if (PyErr_Occurred())
            return NULL;
    }
    stream_object *object = (stream_object *)new_object(stream_type);
    if (!object)
        return NULL;
    Py_INCREF(self);
    object->device = device;
    lattn_status status = native == Py_None
                              ? lattn_stream_create(device->device, &object->stream)
                              : lattn_stream_adopt(device->device, address, &object->stream);
    if (status) {
        Py_DECREF((PyObject *)object);
        return lattn_python_raise(status);
    }
    return (PyObject *)object;
}

/* Device.alloc(bytes) -> base, Device.free(base) */
static PyObject *device_alloc(PyObject *self, PyObject *bytes)
{
    unsigned long long size = PyLong_AsUnsignedLongLong(bytes);
    void *base;
    if (PyErr_Occurred())
        return NULL;
    lattn_status status = lattn_memory_alloc(((device_object *)self)->device, size, &base);
    return status ? lattn_python_raise(status) : PyLong_FromVoidPtr(base);
}

static PyObject *device_free(PyObject *self, PyObject *base)
{
    void *address = PyLong_AsVoidPtr(base);
    if (PyErr_Occurred())
        return NULL;
    lattn_memory_free(((device_object *)self)->device, address);
    Py_RETURN_NONE;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Stream.upload(base, host address, bytes), Stream.download(host address, base, bytes) */
static PyObject *copy(PyObject *self, PyObject *args, int up)
{
    unsigned long long to, from, bytes;
    if (!PyArg_ParseTuple(args, "KKK", &to, &from, &bytes))
        return NULL;
    lattn_stream *stream = ((stream_object *)self)->stream;
    void *target = (void *)(uintptr_t)to, *source = (void *)(uintptr_t)from;
    lattn_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = up ? lattn_memory_upload(stream, target, 0, source, bytes)
                : lattn_memory_download(stream, target, source, 0, bytes);
    Py_END_ALLOW_THREADS;
    if (status)
        return lattn_python_raise(status);
    Py_RETURN_NONE;
}

static PyObject *stream_upload(PyObject *self, PyObject *args)
{
    return copy(self, args, 1);
}

static PyObject *stream_download(PyObject *self, PyObject *args)
{
    return copy(self, args, 0);
}

/* ---- arguments of calls ---------------------------------------------------------------------- */

/* Reads arguments one after another; the first that does not fit ends it. */
struct reader {
    PyObject *const *args;
    Py_ssize_t count, at;
    int failed;
};

static PyObject *next(struct reader *reader)
{
    if (!reader->failed && reader->at < reader->count)
        return reader->args[reader->at++];
    if (!reader->failed)
        PyErr_SetString(PyExc_TypeError, "too few arguments");
    reader->failed = 1;
    return NULL;
}

static long long next_number(struct reader *reader)
{
    PyObject *item = next(reader);
    long long number = item ? PyLong_AsLongLong(item) : 0;
    if (item && number == -1 && PyErr_Occurred())
        reader->failed = 1;
    return number;
}

static void *next_address(struct reader *reader)
{
    PyObject *item = next(reader);
    void *address = item ? PyLong_AsVoidPtr(item) : NULL;
    if (item && !address && PyErr_Occurred())
        reader->failed = 1;
    return address;
}

static float next_float(struct reader *reader)
{
    PyObject *item = next(reader);
    double number = item ? PyFloat_AsDouble(item) : 0;
    if (item && number == -1 && PyErr_Occurred())
        reader->failed = 1;
    return (float)number;
}

/* A tuple of numbers; its last may be left out by the caller of this function. */
static void numbers_of(struct reader *reader, PyObject *tuple, int64_t *to, Py_ssize_t count)
{
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) < count) {
        PyErr_SetString(PyExc_TypeError, "strides must be a tuple of the array's dimensions");
        reader->failed = 1;
        return;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        to[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    if (PyErr_Occurred())
        reader->failed = 1;
}

/* Two arguments: address, and strides [batch, head, token, dim], or [token, head, dim] if packed.
 */
static lattn_tensor next_tensor(struct reader *reader, int packed)
{
    lattn_tensor tensor = {next_address(reader), 0, 0, 0, 0};
    PyObject *tuple = next(reader);
    int64_t strides[3] = {0};
    if (!tuple)
        return tensor;
    numbers_of(reader, tuple, strides, packed ? 2 : 3);
    tensor.stride_batch = packed ? 0 : strides[0];
    tensor.stride_head = strides[1];
    tensor.stride_token = packed ? strides[0] : strides[2];
    return tensor;
}

/* One argument: None, or (address, dtype, strides [slot, head, d, e], slots, slot_idx address,
 * slot type). */
static lattn_state next_state(struct reader *reader)
{
    lattn_state state = {0};
    PyObject *tuple = next(reader);
    if (!tuple || tuple == Py_None)
        return state;
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 6) {
        PyErr_SetString(PyExc_TypeError, "a state must be None or a tuple of six");
        reader->failed = 1;
        return state;
    }
    int64_t strides[4] = {0};
    state.base = PyLong_AsVoidPtr(PyTuple_GetItem(tuple, 0));
    state.dtype = (lattn_dtype)PyLong_AsLong(PyTuple_GetItem(tuple, 1));
    numbers_of(reader, PyTuple_GetItem(tuple, 2), strides, 4);
    state.stride_slot = strides[0];
    state.stride_head = strides[1];
    state.stride_d = strides[2];
    state.stride_e = strides[3];
    state.slots = PyLong_AsLongLong(PyTuple_GetItem(tuple, 3));
    state.slot_idx.base = PyLong_AsVoidPtr(PyTuple_GetItem(tuple, 4));
    state.slot_type = (lattn_index_type)PyLong_AsLong(PyTuple_GetItem(tuple, 5));
    if (PyErr_Occurred())
        reader->failed = 1;
    return state;
}

/* ---- prefill and decode ---------------------------------------------------------------------- */

/* batch, tokens, max_tokens, heads, qk_heads, d, e, dtype, precision, decay, scale, q, k, v, o (two
 * each), slopes, cu_seqlens, has_initial, state_in, state_out, block_states, workspace, its size */
static int read_prefill(struct reader *reader, lattn_prefill_params *params)
{
    params->batch = next_number(reader);
    params->tokens = next_number(reader);
    params->max_tokens = next_number(reader);
    params->heads = (int32_t)next_number(reader);
    params->qk_heads = (int32_t)next_number(reader);
    params->d = (int32_t)next_number(reader);
    params->e = (int32_t)next_number(reader);
    params->dtype = (lattn_dtype)next_number(reader);
    params->precision = (lattn_precision)next_number(reader);
    params->decay = (lattn_decay)next_number(reader);
    params->scale = next_float(reader);
    /* cu_seqlens says how to read the strides before it. */
    Py_ssize_t tensors = reader->at;
    reader->at += 9;
    params->cu_seqlens.base = next_address(reader);
    reader->at = tensors;
    const int packed = params->cu_seqlens.base != NULL;
    params->q = next_tensor(reader, packed);
    params->k = next_tensor(reader, packed);
    params->v = next_tensor(reader, packed);
    params->o = next_tensor(reader, packed);
    params->slopes.base = next_address(reader);
    reader->at++;
    params->has_initial.base = next_address(reader);
    params->state_in = next_state(reader);
    params->state_out = next_state(reader);
    params->block_states.base = next_address(reader);
    params->workspace.base = next_address(reader);
    params->workspace.size = (uint64_t)next_number(reader);
    return !reader->failed;
}

/* Stream.prefill(...) -> 0, or the bytes of workspace that the call needs: then nothing ran. Also
 * loads what the call needs. */
static PyObject *stream_prefill(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    struct reader reader = {args, count, 0, 0};
    uint64_t bytes = 0;
    if (!read_prefill(&reader, &params))
        return NULL;
    lattn_stream *stream = ((stream_object *)self)->stream;
    lattn_status status = LATTN_OK;
    if (!params.workspace.base) {
        status = lattn_prefill_prepare(stream, &params);
        if (!status)
            status = lattn_prefill_workspace(stream, &params, &bytes);
    }
    if (!status && bytes == 0) {
        Py_BEGIN_ALLOW_THREADS;
        status = lattn_prefill(stream, &params);
        Py_END_ALLOW_THREADS;
    }
    return status ? lattn_python_raise(status) : PyLong_FromUnsignedLongLong(bytes);
}

/* batch, tokens, heads, qk_heads, d, e, dtype, precision, scale, q, k, v, o (two each), slopes,
 * has_initial, state_in, state_out, token_states. Also loads what the call needs. */
static PyObject *stream_decode(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    lattn_decode_params params = LATTN_DECODE_PARAMS_INIT;
    struct reader reader = {args, count, 0, 0};
    params.batch = next_number(&reader);
    params.tokens = (int32_t)next_number(&reader);
    params.heads = (int32_t)next_number(&reader);
    params.qk_heads = (int32_t)next_number(&reader);
    params.d = (int32_t)next_number(&reader);
    params.e = (int32_t)next_number(&reader);
    params.dtype = (lattn_dtype)next_number(&reader);
    params.precision = (lattn_precision)next_number(&reader);
    params.scale = next_float(&reader);
    params.q = next_tensor(&reader, 0);
    params.k = next_tensor(&reader, 0);
    params.v = next_tensor(&reader, 0);
    params.o = next_tensor(&reader, 0);
    params.slopes.base = next_address(&reader);
    params.has_initial.base = next_address(&reader);
    params.state_in = next_state(&reader);
    params.state_out = next_state(&reader);
    params.token_states = next_state(&reader);
    if (reader.failed)
        return NULL;
    lattn_stream *stream = ((stream_object *)self)->stream;
    lattn_status status = lattn_decode_prepare(stream, &params);
    if (status)
        return lattn_python_raise(status);
    Py_BEGIN_ALLOW_THREADS;
    status = lattn_decode(stream, &params);
    Py_END_ALLOW_THREADS;
    if (status)
        return lattn_python_raise(status);
    Py_RETURN_NONE;
}

/* ---- the module ------------------------------------------------------------------------------ */

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef device_methods[] = {
    {"stream", device_stream, METH_O, NULL},
    {"alloc", device_alloc, METH_O, NULL},
    {"free", device_free, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef stream_methods[] = {
    {"upload", stream_upload, METH_VARARGS, NULL},
    {"download", stream_download, METH_VARARGS, NULL},
    {"prefill", FAST(stream_prefill), METH_FASTCALL, NULL},
    {"decode", FAST(stream_decode), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef module_methods[] = {
    {"open", open_device, METH_VARARGS, NULL},
    {"devices", list_devices, METH_NOARGS, NULL},
    {"use_tensors", lattn_python_use_tensors, METH_VARARGS, NULL},
    {"prefill", FAST(lattn_python_prefill), METH_FASTCALL, NULL},
    {"prefill_packed", FAST(lattn_python_prefill_packed), METH_FASTCALL, NULL},
    {"decode", FAST(lattn_python_decode), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject *make_type(const char *name, int size, destructor dealloc, PyMethodDef *methods)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)dealloc},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    PyType_Spec spec = {name, size, 0, Py_TPFLAGS_DEFAULT, slots};
    return (PyTypeObject *)PyType_FromSpec(&spec);
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_lattn", NULL, -1, module_methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__lattn(void);

PyMODINIT_FUNC PyInit__lattn(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    device_type =
        make_type("lattn._lattn.Device", sizeof(device_object), device_dealloc, device_methods);
    stream_type =
        make_type("lattn._lattn.Stream", sizeof(stream_object), stream_dealloc, stream_methods);
    error_type = PyErr_NewException("lattn.Error", PyExc_RuntimeError, NULL);
    if (!device_type || !stream_type || !error_type ||
        PyModule_AddObject(module, "Error", error_type) ||
        PyModule_AddStringConstant(module, "version", lattn_version_string())) {
        Py_DECREF(module);
        return NULL;
    }
    Py_INCREF(error_type);
    return module;
}
