/* The short way for tensors whose type has DLPack's C exchange interface: no dispatcher, and no
 * Python between the function and the C call. It takes what is plainly right, and answers None to
 * everything else: the Python side then goes its own way, which also has the messages. */
#include "_lattn.h"
#include "dlpack.h"

#include <stdbool.h>

static struct {
    const DLPackExchangeAPI *api;
    PyTypeObject *type;               /* exactly: a subclass may be a stand-in without data */
    PyObject *depth, *tracing, *grad; /* how many dispatch modes, whether traced, whether grad */
    PyObject *streams;                /* (ordinal, address), or () for the CPU -> Stream */
    PyObject *empty_like, *float32;
    PyObject *new_empty, *dtype, *requires_grad; /* names */
} torch;

/* use_tensors(interface, type, depth, tracing, grad, streams, empty_like, float32) */
PyObject *lattn_python_use_tensors(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *interface, *type;
    if (!PyArg_ParseTuple(args, "OOOOOOOO", &interface, &type, &torch.depth, &torch.tracing,
                          &torch.grad, &torch.streams, &torch.empty_like, &torch.float32))
        return NULL;
    const DLPackExchangeAPI *api = PyCapsule_GetPointer(interface, "dlpack_exchange_api");
    torch.new_empty = PyUnicode_InternFromString("new_empty");
    torch.requires_grad = PyUnicode_InternFromString("requires_grad");
    torch.dtype = Py_BuildValue("(s)", "dtype");
    if (!api || !torch.new_empty || !torch.requires_grad || !torch.dtype)
        return NULL;
    if (api->version.major != 1 || !api->managed_tensor_allocator ||
        !api->dltensor_from_py_object_no_sync || !api->current_work_stream)
        Py_RETURN_FALSE;
    torch.api = api;
    torch.type = (PyTypeObject *)type;
    Py_INCREF(type);
    Py_INCREF(torch.depth);
    Py_INCREF(torch.tracing);
    Py_INCREF(torch.grad);
    Py_INCREF(torch.streams);
    Py_INCREF(torch.empty_like);
    Py_INCREF(torch.float32);
    Py_RETURN_TRUE;
}

/* ---- is it plainly right? -------------------------------------------------------------------- */

/* The answer "not plainly right". */
static PyObject *pass(void)
{
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* What torch's function without arguments returns, as a number; -1: it failed. */
static long ask(PyObject *function)
{
    PyObject *answer = PyObject_CallNoArgs(function);
    const long number = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    return number;
}

static bool known_device(DLDevice device)
{
    return device.device_type == kDLCPU || device.device_type == kDLCUDA ||
           device.device_type == kDLROCM;
}

/* Fills a DLTensor for each object, all of one device; None makes one with data NULL. */
static bool take(PyObject *const *objects, DLTensor *tensors, int count)
{
    if (ask(torch.depth) || ask(torch.tracing))
        return false;
    const long grad = ask(torch.grad);
    for (int i = 0; i < count; i++) {
        tensors[i] = (DLTensor){0};
        if (objects[i] == Py_None)
            continue;
        if (Py_TYPE(objects[i]) != torch.type)
            return false;
        if (grad) {
            PyObject *wanted = PyObject_GetAttr(objects[i], torch.requires_grad);
            const bool none = wanted == Py_False;
            Py_XDECREF(wanted);
            if (!none)
                return false;
        }
        if (torch.api->dltensor_from_py_object_no_sync(objects[i], &tensors[i]))
            return false;
        if (tensors[i].device.device_type != tensors[0].device.device_type ||
            tensors[i].device.device_id != tensors[0].device.device_id ||
            !known_device(tensors[i].device) || !tensors[i].data || tensors[i].byte_offset)
            return false;
    }
    return true;
}

static bool is(const DLTensor *tensor, int code, int bits)
{
    return tensor->dtype.code == code && tensor->dtype.bits == bits && tensor->dtype.lanes == 1;
}

static bool real_type(const DLTensor *tensor, lattn_dtype *type)
{
    *type = is(tensor, kDLFloat, 32)   ? LATTN_F32
            : is(tensor, kDLFloat, 16) ? LATTN_F16
                                       : LATTN_BF16;
    return *type != LATTN_BF16 || is(tensor, kDLBfloat, 16);
}

static bool same_shape(const DLTensor *a, const DLTensor *b, int from, int to)
{
    for (int i = from; i < to; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* `size` elements, adjacent. */
static bool array_of(const DLTensor *tensor, int64_t size)
{
    int64_t elements = 1;
    for (int i = tensor->ndim; i-- > 0;) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != elements)
            return false;
        elements *= tensor->shape[i];
    }
    return elements == size;
}

static bool row_of(const DLTensor *tensor, int64_t size)
{
    return tensor->ndim == 1 && array_of(tensor, size);
}

/* Some stride is not zero: to the library, all zero would mean contiguous. */
static bool has_strides(const DLTensor *tensor, int count)
{
    for (int i = 0; i < count; i++)
        if (tensor->strides[i])
            return true;
    return false;
}

/* A q, k or v that can be taken as it lies. */
static bool lies_well(const DLTensor *tensor, int dims)
{
    return tensor->ndim == dims &&
           (tensor->strides[dims - 1] == 1 || tensor->shape[dims - 1] == 1) &&
           has_strides(tensor, dims - 1);
}

/* What a call has in common: head counts and sizes from q, k, v of `dims` dimensions, and slopes.
 */
struct heads {
    int32_t heads, qk_heads, d, e;
    lattn_dtype dtype;
};

static bool take_heads(const DLTensor *q, const DLTensor *k, const DLTensor *v,
                       const DLTensor *slopes, int dims, struct heads *to)
{
    lattn_dtype k_type, v_type;
    if (!lies_well(q, dims) || !lies_well(k, dims) || !lies_well(v, dims) ||
        !same_shape(q, k, 0, dims) || q->shape[0] != v->shape[0] ||
        (dims == 4 && q->shape[2] != v->shape[2]))
        return false;
    for (int i = 0; i < dims; i++)
        if (q->shape[i] < 1 || q->shape[i] > INT32_MAX || v->shape[i] < 1 ||
            v->shape[i] > INT32_MAX)
            return false;
    *to = (struct heads){
        .heads = (int32_t)v->shape[1],
        .qk_heads = (int32_t)q->shape[1],
        .d = (int32_t)q->shape[dims - 1],
        .e = (int32_t)v->shape[dims - 1],
    };
    return real_type(q, &to->dtype) && real_type(k, &k_type) && real_type(v, &v_type) &&
           k_type == to->dtype && v_type == to->dtype && to->heads % to->qk_heads == 0 &&
           is(slopes, kDLFloat, 32) && array_of(slopes, to->heads);
}

static bool take_state(const DLTensor *tensor, const struct heads *heads, lattn_state *state)
{
    if (tensor->ndim != 4 || tensor->shape[1] != heads->heads || tensor->shape[2] != heads->d ||
        tensor->shape[3] != heads->e || tensor->shape[0] < 1 || !has_strides(tensor, 4) ||
        !real_type(tensor, &state->dtype))
        return false;
    state->base = tensor->data;
    state->stride_slot = tensor->strides[0];
    state->stride_head = tensor->strides[1];
    state->stride_d = tensor->strides[2];
    state->stride_e = tensor->strides[3];
    state->slots = tensor->shape[0];
    return true;
}

static bool take_slots(const DLTensor *tensor, int64_t batch, lattn_state *state)
{
    if (!row_of(tensor, batch) || (!is(tensor, kDLInt, 32) && !is(tensor, kDLInt, 64)))
        return false;
    state->slot_idx.base = tensor->data;
    state->slot_type = is(tensor, kDLInt, 64) ? LATTN_I64 : LATTN_I32;
    return true;
}

static bool take_scale(PyObject *object, float *scale)
{
    if (!PyFloat_Check(object))
        return false;
    *scale = (float)PyFloat_AS_DOUBLE(object);
    return *scale != 0; /* to the library, 0 would mean 1 */
}

/* ---- tensors, streams ------------------------------------------------------------------------ */

static lattn_tensor dense(const DLTensor *tensor)
{
    return (lattn_tensor){tensor->data, 0, tensor->strides[0], tensor->strides[1],
                          tensor->strides[2]};
}

static lattn_tensor packed(const DLTensor *tensor)
{
    return (lattn_tensor){tensor->data, 0, 0, tensor->strides[1], tensor->strides[0]};
}

/* The new tensor itself, with its fields in `tensor`. NULL: an exception is set. */
static PyObject *readable(PyObject *made, DLTensor *tensor)
{
    if (made && torch.api->dltensor_from_py_object_no_sync(made, tensor))
        Py_CLEAR(made);
    return made;
}

/* like.new_empty(shape), or with dtype=float32. NULL: an exception is set. */
static PyObject *new_tensor(PyObject *like, const int64_t *shape, int dims, bool float32,
                            DLTensor *tensor)
{
    PyObject *tuple = PyTuple_New(dims), *made = NULL;
    for (int i = 0; tuple && i < dims; i++) {
        PyObject *size = PyLong_FromLongLong(shape[i]);
        if (!size)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, size);
    }
    if (tuple) {
        PyObject *const args[] = {like, tuple, torch.float32};
        made = PyObject_VectorcallMethod(torch.new_empty, args, 2, float32 ? torch.dtype : NULL);
        Py_DECREF(tuple);
    }
    return readable(made, tensor);
}

/* A contiguous tensor like v: quicker to make where v is one. */
static PyObject *new_like(PyObject *object, const DLTensor *v, DLTensor *tensor)
{
    int64_t elements = 1;
    for (int i = 0; i < v->ndim; i++)
        elements *= v->shape[i];
    if (!array_of(v, elements))
        return new_tensor(object, v->shape, v->ndim, false, tensor);
    return readable(PyObject_CallOneArg(torch.empty_like, object), tensor);
}

/* The lattn stream of this thread for torch's current stream of the device; the last one asked for
 * is at hand. A new reference: the only other may be the one here, where this thread has the number
 * of one that has ended, and the next thread that asks lets it go. NULL: an exception is set. */
static stream_object *stream_of(DLDevice device)
{
    static struct {
        unsigned long thread;
        DLDevice device;
        void *native;
        PyObject *stream;
    } last;
    const bool gpu = device.device_type != kDLCPU;
    const unsigned long thread = PyThread_get_thread_ident();
    void *native = NULL;
    if (gpu && torch.api->current_work_stream(device.device_type, device.device_id, &native))
        return NULL;
    if (last.stream && last.thread == thread && last.native == native &&
        last.device.device_type == device.device_type &&
        last.device.device_id == device.device_id) {
        Py_INCREF(last.stream);
        return (stream_object *)last.stream;
    }
    PyObject *stream = gpu ? PyObject_CallFunction(torch.streams, "iN", device.device_id,
                                                   PyLong_FromVoidPtr(native))
                           : PyObject_CallNoArgs(torch.streams);
    if (!stream)
        return NULL;
    Py_INCREF(stream);
    Py_XSETREF(last.stream, stream);
    last.thread = thread;
    last.device = device;
    last.native = native;
    return (stream_object *)stream;
}

static void ignore(void *context, const char *kind, const char *message)
{
    (void)context;
    (void)kind;
    (void)message;
}

/* Prepares and runs, with a workspace from torch where one is needed. Returns `result`; None where
 * there is no such workspace, which the Python side then says; or NULL with an exception. Takes the
 * reference. */
static PyObject *run_prefill(DLDevice device, lattn_prefill_params *params, PyObject *result)
{
    stream_object *stream = stream_of(device);
    DLManagedTensorVersioned *workspace = NULL;
    uint64_t bytes = 0;
    if (!stream) {
        Py_DECREF(result);
        return NULL;
    }
    lattn_status status = lattn_prefill_prepare(stream->stream, params);
    if (!status)
        status = lattn_prefill_workspace(stream->stream, params, &bytes);
    if (!status && bytes) {
        int64_t shape = (int64_t)bytes, stride = 1;
        DLTensor wanted = {NULL, device, 1, {kDLUInt, 8, 1}, &shape, &stride, 0};
        if (torch.api->managed_tensor_allocator(&wanted, &workspace, NULL, ignore)) {
            Py_DECREF((PyObject *)stream);
            Py_DECREF(result);
            return pass();
        }
        params->workspace = (lattn_workspace){workspace->dl_tensor.data, 0, bytes};
    }
    if (!status) {
        Py_BEGIN_ALLOW_THREADS;
        status = lattn_prefill(stream->stream, params);
        Py_END_ALLOW_THREADS;
    }
    Py_DECREF((PyObject *)stream);
    if (workspace && workspace->deleter)
        workspace->deleter(workspace);
    if (!status)
        return result;
    Py_DECREF(result);
    return lattn_python_raise(status);
}

/* ---- the functions --------------------------------------------------------------------------- */

static void set_heads(lattn_prefill_params *params, const struct heads *heads)
{
    params->heads = heads->heads;
    params->qk_heads = heads->qk_heads;
    params->d = heads->d;
    params->e = heads->e;
    params->dtype = heads->dtype;
}

/* prefill(q, k, v, slopes, kv_history, decay, precision, scale) -> (o, states) or None */
PyObject *lattn_python_prefill(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    enum { BLOCK = 256 };
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    DLTensor q[5], o, kv; /* q, k, v, slopes, kv_history */
    struct heads heads;
    if (!torch.api || count != 8 || !take(args, q, 5) ||
        !take_heads(&q[0], &q[1], &q[2], &q[3], 4, &heads) || !take_scale(args[7], &params.scale) ||
        (q[4].data &&
         (!take_state(&q[4], &heads, &params.state_in) || q[4].shape[0] != q[0].shape[0])))
        return pass();
    params.batch = q[0].shape[0];
    params.tokens = q[0].shape[2];
    set_heads(&params, &heads);
    params.decay = (lattn_decay)PyLong_AsLong(args[5]);
    params.precision = (lattn_precision)PyLong_AsLong(args[6]);
    params.q = dense(&q[0]);
    params.k = dense(&q[1]);
    params.v = dense(&q[2]);
    params.slopes.base = q[3].data;
    const int64_t shape[] = {params.batch, params.heads, (params.tokens + BLOCK - 1) / BLOCK + 1,
                             params.d, params.e};
    PyObject *out = new_like(args[2], &q[2], &o);
    PyObject *states = out ? new_tensor(args[0], shape, 5, true, &kv) : NULL;
    PyObject *pair = states ? PyTuple_Pack(2, out, states) : NULL;
    Py_XDECREF(out);
    Py_XDECREF(states);
    if (!pair)
        return NULL;
    params.o = dense(&o);
    params.block_states.base = kv.data;
    return run_prefill(q[0].device, &params, pair);
}

/* prefill_packed(q, k, v, slopes, kv_caches, cu_seqlens, slot_idx, has_initial, max_tokens, decay,
 * precision, scale) -> o or None */
PyObject *lattn_python_prefill_packed(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    DLTensor q[8], o; /* q, k, v, slopes, kv_caches, cu_seqlens, slot_idx, has_initial */
    struct heads heads;
    if (!torch.api || count != 12 || !take(args, q, 8) || !q[4].data || !q[5].data || !q[6].data ||
        q[6].ndim != 1 || !take_heads(&q[0], &q[1], &q[2], &q[3], 3, &heads) ||
        !take_state(&q[4], &heads, &params.state_in) ||
        !take_slots(&q[6], q[6].shape[0], &params.state_in) || !is(&q[5], kDLInt, 32) ||
        !row_of(&q[5], q[6].shape[0] + 1) || !take_scale(args[11], &params.scale) ||
        !PyLong_Check(args[8]))
        return pass();
    if (q[7].data &&
        (!row_of(&q[7], q[6].shape[0]) || (!is(&q[7], kDLBool, 8) && !is(&q[7], kDLUInt, 8))))
        return pass();
    params.batch = q[6].shape[0];
    params.tokens = q[0].shape[0];
    params.max_tokens = PyLong_AsLongLong(args[8]);
    set_heads(&params, &heads);
    params.decay = (lattn_decay)PyLong_AsLong(args[9]);
    params.precision = (lattn_precision)PyLong_AsLong(args[10]);
    params.q = packed(&q[0]);
    params.k = packed(&q[1]);
    params.v = packed(&q[2]);
    params.slopes.base = q[3].data;
    params.cu_seqlens.base = q[5].data;
    params.has_initial.base = q[7].data;
    params.state_out = params.state_in;
    if (PyErr_Occurred())
        return pass();
    PyObject *out = new_like(args[2], &q[2], &o);
    if (!out)
        return NULL;
    params.o = packed(&o);
    return run_prefill(q[0].device, &params, out);
}

/* decode(q, k, v, kv_caches, slopes, slot_idx, scale) -> o or None */
PyObject *lattn_python_decode(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    lattn_decode_params params = LATTN_DECODE_PARAMS_INIT;
    DLTensor q[6], o; /* q, k, v, kv_caches, slopes, slot_idx */
    struct heads heads;
    if (!torch.api || count != 7 || !take(args, q, 6) || !q[3].data || !q[5].data ||
        !take_heads(&q[0], &q[1], &q[2], &q[4], 4, &heads) || q[0].shape[2] > 8 ||
        !take_state(&q[3], &heads, &params.state_in) ||
        !take_slots(&q[5], q[0].shape[0], &params.state_in) || !take_scale(args[6], &params.scale))
        return pass();
    params.batch = q[0].shape[0];
    params.tokens = (int32_t)q[0].shape[2];
    params.heads = heads.heads;
    params.qk_heads = heads.qk_heads;
    params.d = heads.d;
    params.e = heads.e;
    params.dtype = heads.dtype;
    params.q = dense(&q[0]);
    params.k = dense(&q[1]);
    params.v = dense(&q[2]);
    params.slopes.base = q[4].data;
    const int64_t width = (int64_t)heads.heads * heads.e;
    const int64_t shape[] = {params.batch, params.tokens == 1 ? width : params.tokens, width};
    stream_object *stream = stream_of(q[0].device);
    PyObject *out =
        stream ? new_tensor(args[0], shape, params.tokens == 1 ? 2 : 3, false, &o) : NULL;
    if (!out) {
        Py_XDECREF((PyObject *)stream);
        return NULL;
    }
    params.o = (lattn_tensor){o.data, 0, params.tokens * width, heads.e, width};
    lattn_status status = lattn_decode_prepare(stream->stream, &params);
    if (!status) {
        Py_BEGIN_ALLOW_THREADS;
        status = lattn_decode(stream->stream, &params);
        Py_END_ALLOW_THREADS;
    }
    Py_DECREF((PyObject *)stream);
    if (status) {
        Py_DECREF(out);
        return lattn_python_raise(status);
    }
    return out;
}
