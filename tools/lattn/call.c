#include "call.h"

#include "dtype.h"

#define BLOCK 256

const char *call_operation_name(enum call_operation operation)
{
    return operation == CALL_PREFILL ? "prefill" : "decode";
}

int64_t call_blocks(const struct call *call)
{
    return call->tokens / BLOCK + (call->tokens % BLOCK != 0);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint64_t product(const uint64_t *factors, int count)
{
    uint64_t result = 1;
    for (int i = 0; i < count; i++) {
        if (factors[i] == 0)
            return 0;
        result = result > UINT64_MAX / factors[i] ? UINT64_MAX : result * factors[i];
    }
    return result;
}

/* Packed sequences share one token axis. */
static uint64_t token_bytes(const struct call *call, int32_t heads, int32_t width)
{
    uint64_t factors[] = {dtype_size(call->dtype), call->packed ? 1 : (uint64_t)call->batch,
                          (uint64_t)call->tokens, (uint64_t)heads, (uint64_t)width};
    return product(factors, 5);
}

static uint64_t state_bytes(const struct call *call, lattn_dtype dtype, int64_t rows, int64_t each)
{
    uint64_t factors[] = {dtype_size(dtype),     (uint64_t)rows,    (uint64_t)each,
                          (uint64_t)call->heads, (uint64_t)call->d, (uint64_t)call->e};
    return product(factors, 6);
}

uint64_t call_bytes(const struct call *call, enum call_part part)
{
    bool decode = call->operation == CALL_DECODE;
    switch (part) {
    case CALL_Q:
    case CALL_K:
        return token_bytes(call, call->qk_heads, call->d);
    case CALL_V:
    case CALL_O:
        return token_bytes(call, call->heads, call->e);
    case CALL_SLOPES:
        return sizeof(float) * (uint64_t)call->heads;
    case CALL_CU_SEQLENS:
        return call->packed ? sizeof(int32_t) * ((uint64_t)call->batch + 1) : 0;
    case CALL_SLOT_IDX:
        if (!decode)
            return 0;
        return (call->slot_type == LATTN_I64 ? sizeof(int64_t) : sizeof(int32_t)) *
               (uint64_t)call->batch;
    case CALL_STATE_IN:
        if (decode)
            return state_bytes(call, call->state_dtype, call->slots, 1);
        return call->has_initial ? state_bytes(call, call->state_dtype, call->batch, 1) : 0;
    case CALL_STATE_OUT:
        return decode ? 0 : state_bytes(call, LATTN_F32, call->batch, 1);
    case CALL_KEPT:
        return call->keep_blocks ? state_bytes(call, LATTN_F32, call->batch, call_blocks(call) + 1)
                                 : 0;
    default:
        return 0;
    }
}

bool call_slot(const struct call *call, const void *slot_idx, int64_t row, int64_t *slot)
{
    *slot = call->slot_type == LATTN_I64 ? ((const int64_t *)slot_idx)[row]
                                         : ((const int32_t *)slot_idx)[row];
    return *slot >= 0 && *slot < call->slots;
}

/* ---- the library's params -------------------------------------------------------------------- */

static lattn_tensor tensor(const struct call_memory *memory, enum call_part part)
{
    return (lattn_tensor){.base = memory->base[part], .offset = memory->offset[part]};
}

static lattn_array array(const struct call_memory *memory, enum call_part part)
{
    return (lattn_array){.base = memory->base[part], .offset = memory->offset[part]};
}

static lattn_workspace workspace(const struct call_memory *memory)
{
    return (lattn_workspace){.base = memory->base[CALL_WORKSPACE],
                             .offset = memory->offset[CALL_WORKSPACE],
                             .size = memory->workspace_bytes};
}

static lattn_prefill_params prefill_params(const struct call *call,
                                           const struct call_memory *memory)
{
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.batch = call->batch;
    params.tokens = call->tokens;
    params.heads = call->heads;
    params.qk_heads = call->qk_heads;
    params.d = call->d;
    params.e = call->e;
    params.dtype = call->dtype;
    params.precision = call->precision;
    params.decay = call->decay;
    params.q = tensor(memory, CALL_Q);
    params.k = tensor(memory, CALL_K);
    params.v = tensor(memory, CALL_V);
    params.o = tensor(memory, CALL_O);
    params.slopes = array(memory, CALL_SLOPES);
    params.cu_seqlens = array(memory, CALL_CU_SEQLENS);
    params.state_in.base = memory->base[CALL_STATE_IN];
    params.state_in.offset = memory->offset[CALL_STATE_IN];
    params.state_in.dtype = call->state_dtype;
    params.state_out.base = memory->base[CALL_STATE_OUT];
    params.state_out.offset = memory->offset[CALL_STATE_OUT];
    params.block_states = array(memory, CALL_KEPT);
    params.workspace = workspace(memory);
    return params;
}

static lattn_decode_params decode_params(const struct call *call, const struct call_memory *memory)
{
    lattn_decode_params params = LATTN_DECODE_PARAMS_INIT;
    params.batch = call->batch;
    params.tokens = (int32_t)call->tokens;
    params.heads = call->heads;
    params.qk_heads = call->qk_heads;
    params.d = call->d;
    params.e = call->e;
    params.dtype = call->dtype;
    params.precision = call->precision;
    params.q = tensor(memory, CALL_Q);
    params.k = tensor(memory, CALL_K);
    params.v = tensor(memory, CALL_V);
    params.o = tensor(memory, CALL_O);
    params.slopes = array(memory, CALL_SLOPES);
    params.state_in.base = memory->base[CALL_STATE_IN];
    params.state_in.offset = memory->offset[CALL_STATE_IN];
    params.state_in.dtype = call->state_dtype;
    params.state_in.slots = call->slots;
    params.state_in.slot_idx = array(memory, CALL_SLOT_IDX);
    params.state_in.slot_type = call->slot_type;
    params.workspace = workspace(memory);
    return params;
}

/* ---- the library's functions ----------------------------------------------------------------- */

lattn_status call_prepare(lattn_stream *stream, const struct call *call)
{
    struct call_memory none = {0};
    uint64_t bytes;
    lattn_status status;
    if (call->operation == CALL_DECODE) {
        /* A query wants to see that there are states, and does not look at them. */
        none.base[CALL_STATE_IN] = &none;
        lattn_decode_params params = decode_params(call, &none);
        status = lattn_decode_prepare(stream, &params);
        return status != LATTN_OK ? status : lattn_decode_workspace(stream, &params, &bytes);
    }
    lattn_prefill_params params = prefill_params(call, &none);
    status = lattn_prefill_prepare(stream, &params);
    return status != LATTN_OK ? status : lattn_prefill_workspace(stream, &params, &bytes);
}

lattn_status call_workspace(lattn_stream *stream, const struct call *call,
                            const struct call_memory *memory, uint64_t *bytes)
{
    if (call->operation == CALL_DECODE) {
        lattn_decode_params params = decode_params(call, memory);
        return lattn_decode_workspace(stream, &params, bytes);
    }
    lattn_prefill_params params = prefill_params(call, memory);
    return lattn_prefill_workspace(stream, &params, bytes);
}

lattn_status call_describe(lattn_stream *stream, const struct call *call,
                           const struct call_memory *memory, char *text, size_t size)
{
    if (call->operation == CALL_DECODE) {
        lattn_decode_params params = decode_params(call, memory);
        return lattn_decode_describe(stream, &params, text, size);
    }
    lattn_prefill_params params = prefill_params(call, memory);
    return lattn_prefill_describe(stream, &params, text, size);
}

lattn_status call_launch(lattn_stream *stream, const struct call *call,
                         const struct call_memory *memory)
{
    if (call->operation == CALL_DECODE) {
        lattn_decode_params params = decode_params(call, memory);
        return lattn_decode(stream, &params);
    }
    lattn_prefill_params params = prefill_params(call, memory);
    return lattn_prefill(stream, &params);
}
