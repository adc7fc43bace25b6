#include "rules.h"

#include <math.h>

#include "catalog.h"
#include "error.h"
#include "extent.h"
#include "params.h"
#include "tiling.h"

/* Most tokens, and most sequences: what cu_seqlens and 32-bit numbers of segments can hold. */
#define MOST_TOKENS (LATTN_WHOLE_SEQUENCE - 1)
#define MOST_SEQUENCES (INT32_MAX - LATTN_WHOLE_SEQUENCE / LATTN_BLOCK)

#define LL(number) ((long long)(number))

static size_t size_of(lattn_dtype dtype)
{
    return dtype == LATTN_F32 ? 4 : 2;
}

static lattn_status check_range(const char *name, int64_t value, int64_t least, int64_t most)
{
    if (value < least || value > most)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "%s = %lld: must be %lld to %lld", name,
                          LL(value), LL(least), LL(most));
    return LATTN_OK;
}

/* The same for a member of `owner`. */
static lattn_status check_member(const char *owner, const char *member, int64_t value,
                                 int64_t least, int64_t most)
{
    if (value < least || value > most)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "%s.%s = %lld: must be %lld to %lld", owner,
                          member, LL(value), LL(least), LL(most));
    return LATTN_OK;
}

static lattn_status check_dtype(const char *name, lattn_dtype dtype)
{
    return check_range(name, (int64_t)dtype, LATTN_F32, LATTN_BF16);
}

static lattn_status check_offset(const char *name, uint64_t offset, size_t element)
{
    if (offset % element)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "%s.offset = %llu: must be a multiple of the %zu bytes of an element",
                          name, (unsigned long long)offset, element);
    if (offset > INT64_MAX)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "%s.offset = %llu: must be below 2^63",
                          name, (unsigned long long)offset);
    return LATTN_OK;
}

/* ---- what decides the kernels ---------------------------------------------------------------- */

static lattn_status check_kind(struct lattn_kind *kind, lattn_dtype dtype,
                               lattn_precision precision, int32_t d, int32_t e)
{
    lattn_status status = check_dtype("dtype", dtype);
    if (!status)
        status = check_range("precision", (int64_t)precision, LATTN_PRECISION_FULL,
                             LATTN_PRECISION_TF32);
    if (!status)
        status = check_range("d", d, 1, LATTN_MAX_DIM);
    if (!status)
        status = check_range("e", e, 0, LATTN_MAX_DIM);
    kind->dtype = dtype;
    kind->precision = precision;
    kind->d = d;
    kind->e = e ? e : d;
    return status;
}

static lattn_status check_heads(struct lattn_request *request, int32_t heads, int32_t qk_heads,
                                float scale)
{
    lattn_status status = check_range("heads", heads, 1, INT32_MAX);
    if (!status)
        status = check_range("qk_heads", qk_heads, 0, heads);
    if (status)
        return status;
    if (qk_heads && heads % qk_heads)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "qk_heads = %d: must divide heads = %d",
                          qk_heads, heads);
    if (!isfinite(scale))
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "scale = %f: must be finite",
                          (double)scale);
    request->args.heads = heads;
    request->args.group = qk_heads ? heads / qk_heads : 1;
    request->args.scale = scale == 0 ? 1 : scale;
    request->args.d = request->kind.d;
    request->args.e = request->kind.e;
    return LATTN_OK;
}

/* ---- tensors and arrays ---------------------------------------------------------------------- */

/* What is common to q, k, v and o of a call. */
struct token_axes {
    int64_t batch, tokens;
    bool packed;
    lattn_dtype dtype;
};

/* A base may be a device pointer, which callers take from the middle of their memory. */
static bool begins_aligned(const void *base, uint64_t offset)
{
    return (uintptr_t)base % 16 == 0 && offset % 16 == 0;
}

static lattn_status check_tensor(struct lattn_request *request, enum lattn_purpose purpose,
                                 const char *name, enum lattn_memory_slot slot,
                                 const lattn_tensor *tensor, const struct token_axes *axes,
                                 int64_t heads, int64_t dim, struct lattn_token_layout *layout)
{
    size_t element = size_of(axes->dtype);
    lattn_status status = check_offset(name, tensor->offset, element);
    if (status)
        return status;
    *layout = (struct lattn_token_layout){
        .offset = (int64_t)(tensor->offset / element),
        .batch = axes->packed ? 0 : tensor->stride_batch,
        .head = tensor->stride_head,
        .token = tensor->stride_token,
    };
    int64_t batch = axes->packed ? 1 : axes->batch;
    if (!tensor->stride_batch && !tensor->stride_head && !tensor->stride_token) {
        layout->token = axes->packed ? heads * dim : dim;
        layout->head = axes->packed ? dim : axes->tokens * dim;
        if (!axes->packed && __builtin_mul_overflow(heads, layout->head, &layout->batch))
            return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                              "%s: [%lld, %lld, %lld, %lld] elements pass 2^63", name, LL(batch),
                              LL(heads), LL(axes->tokens), LL(dim));
    }
    const struct lattn_axis all[] = {
        {"batch", batch, layout->batch},
        {"head", heads, layout->head},
        {"token", axes->tokens, layout->token},
        {"dim", dim, 1},
    };
    status = lattn_check_extent(name, all, 4, layout->offset, element, slot == LATTN_MEM_O);
    if (status)
        return status;
    bool empty = !batch || !axes->tokens;
    if (!tensor->base && !empty && purpose == LATTN_TO_RUN)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "%s.base = NULL: must be device memory",
                          name);
    if (!begins_aligned(tensor->base, tensor->offset) || !lattn_aligned(all, 3, element, 16))
        request->offers &= ~(uint32_t)LATTN_NEEDS_ALIGN16;
    request->memories[slot] = tensor->base;
    return LATTN_OK;
}

static lattn_status check_tensors(struct lattn_request *request, enum lattn_purpose purpose,
                                  const struct token_axes *axes, const lattn_tensor *q,
                                  const lattn_tensor *k, const lattn_tensor *v,
                                  const lattn_tensor *o)
{
    struct lattn_args *args = &request->args;
    int64_t heads = args->heads, qk_heads = heads / args->group;
    lattn_status status =
        check_tensor(request, purpose, "q", LATTN_MEM_Q, q, axes, qk_heads, args->d, &args->q);
    if (!status)
        status =
            check_tensor(request, purpose, "k", LATTN_MEM_K, k, axes, qk_heads, args->d, &args->k);
    if (!status)
        status =
            check_tensor(request, purpose, "v", LATTN_MEM_V, v, axes, heads, args->e, &args->v);
    if (!status)
        status =
            check_tensor(request, purpose, "o", LATTN_MEM_O, o, axes, heads, args->e, &args->o);
    return status;
}

/* `count` elements of `element` bytes. */
static lattn_status check_array(struct lattn_request *request, const char *name,
                                enum lattn_memory_slot slot, const lattn_array *array,
                                int64_t count, size_t element, lattn_i64 *offset)
{
    lattn_status status = check_offset(name, array->offset, element);
    if (!status && count > (INT64_MAX - (int64_t)array->offset) / (int64_t)element)
        status = lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                            "%s.offset = %llu: its %lld elements reach beyond 2^63 bytes", name,
                            (unsigned long long)array->offset, LL(count));
    request->memories[slot] = array->base;
    *offset = (int64_t)(array->offset / element);
    return status;
}

static lattn_status check_slopes(struct lattn_request *request, enum lattn_purpose purpose,
                                 const lattn_array *slopes)
{
    if (!slopes->base && purpose == LATTN_TO_RUN && request->total)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "slopes.base = NULL: must be float32 [heads] on the device");
    return check_array(request, "slopes", LATTN_MEM_SLOPES, slopes, request->args.heads,
                       sizeof(float), &request->args.slopes);
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Where a state of the call goes in the request. */
struct state_place {
    const char *name, *index_name;
    enum lattn_memory_slot states, slots;
    struct lattn_state_layout *layout;
    lattn_i64 *slot_offset;       /* NULL: takes no slot_idx */
    int32_t given, indexed, wide; /* LATTN_FLAG_ */
    bool written;
};

static lattn_status check_slots(struct lattn_request *request, const struct state_place *place,
                                const lattn_state *state, int64_t rows)
{
    lattn_status status =
        check_member(place->name, "slot_type", (int64_t)state->slot_type, LATTN_I32, LATTN_I64);
    if (status)
        return status;
    if (state->slots < 0)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "%s.slots = %lld: must not be negative",
                          place->name, LL(state->slots));
    place->layout->slots = state->slots ? state->slots : rows;
    if (!state->slot_idx.base) {
        if (place->layout->slots < rows)
            return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                              "%s.slots = %lld: without slot_idx there must be %lld", place->name,
                              LL(state->slots), LL(rows));
        return LATTN_OK;
    }
    if (!place->slot_offset)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "%s.slot_idx.base is not NULL: takes no slots", place->name);
    if (!state->slots)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "%s.slots = 0: with slot_idx it must be the rows of the pool",
                          place->name);
    request->args.flags |= place->indexed;
    if (state->slot_type == LATTN_I64)
        request->args.flags |= place->wide;
    return check_array(request, place->index_name, place->slots, &state->slot_idx,
                       request->args.sequences, state->slot_type == LATTN_I64 ? 8 : 4,
                       place->slot_offset);
}

/* Withdraws what these states do not offer to kernels. */
static void note_state(struct lattn_request *request, const struct lattn_axis axes[4],
                       const lattn_state *state, size_t element)
{
    bool aligned = begins_aligned(state->base, state->offset);
    const struct lattn_axis but_d[] = {axes[0], axes[1], axes[3]};
    if (!aligned || axes[3].stride != 1 || !lattn_aligned(axes, 3, element, 16))
        request->offers &= ~(uint32_t)LATTN_NEEDS_STATE_E_UNIT;
    if (!aligned || axes[2].stride != 1 || !lattn_aligned(but_d, 3, element, 16))
        request->offers &= ~(uint32_t)LATTN_NEEDS_STATE_D_UNIT;
    if (state->dtype != LATTN_F32)
        request->offers &= ~(uint32_t)LATTN_NEEDS_STATE_F32;
    if (state->dtype == LATTN_F32 || ((request->args.flags & LATTN_FLAG_STATE_IN) &&
                                      (lattn_i32)state->dtype != request->args.in.type))
        request->offers &= ~(uint32_t)LATTN_NEEDS_STATE_HALF;
}

static lattn_status check_state(struct lattn_request *request, const struct state_place *place,
                                const lattn_state *state, int64_t rows)
{
    struct lattn_args *args = &request->args;
    struct lattn_state_layout *layout = place->layout;
    if (!state->base)
        return LATTN_OK;
    lattn_status status =
        check_member(place->name, "dtype", (int64_t)state->dtype, LATTN_F32, LATTN_BF16);
    if (status)
        return status;
    size_t element = size_of(state->dtype);
    status = check_offset(place->name, state->offset, element);
    if (!status)
        status = check_slots(request, place, state, rows);
    if (status)
        return status;
    layout->offset = (int64_t)(state->offset / element);
    layout->type = (lattn_i32)state->dtype;
    layout->slot = state->stride_slot;
    layout->head = state->stride_head;
    layout->d = state->stride_d;
    layout->e = state->stride_e;
    if (!layout->slot && !layout->head && !layout->d && !layout->e) {
        layout->e = 1;
        layout->d = args->e;
        layout->head = (int64_t)args->d * args->e;
        layout->slot = layout->head * args->heads;
    }
    const struct lattn_axis axes[] = {
        {"slot", layout->slots, layout->slot},
        {"head", args->heads, layout->head},
        {"d", args->d, layout->d},
        {"e", args->e, layout->e},
    };
    status = lattn_check_extent(place->name, axes, 4, layout->offset, element, place->written);
    if (status)
        return status;
    note_state(request, axes, state, element);
    args->flags |= place->given;
    request->memories[place->states] = state->base;
    return LATTN_OK;
}

static lattn_status check_states(struct lattn_request *request, const lattn_state *in,
                                 const lattn_state *out, const lattn_array *has_initial,
                                 int64_t rows)
{
    struct lattn_args *args = &request->args;
    const struct state_place from = {
        "state_in",     "state_in.slot_idx", LATTN_MEM_STATE_IN, LATTN_MEM_SLOT_IN,     &args->in,
        &args->slot_in, LATTN_FLAG_STATE_IN, LATTN_FLAG_SLOT_IN, LATTN_FLAG_SLOT_IN_64, false,
    };
    const struct state_place to = {
        "state_out",
        "state_out.slot_idx",
        LATTN_MEM_STATE_OUT,
        LATTN_MEM_SLOT_OUT,
        &args->out,
        &args->slot_out,
        LATTN_FLAG_STATE_OUT,
        LATTN_FLAG_SLOT_OUT,
        LATTN_FLAG_SLOT_OUT_64,
        true,
    };
    lattn_status status = check_state(request, &from, in, rows);
    if (!status)
        status = check_state(request, &to, out, rows);
    if (status || !has_initial->base || !in->base)
        return status;
    args->flags |= LATTN_FLAG_HAS_INITIAL;
    return check_array(request, "has_initial", LATTN_MEM_HAS_INITIAL, has_initial, args->sequences,
                       1, &args->has_initial);
}

static lattn_status check_block_states(struct lattn_request *request, const lattn_array *states)
{
    struct lattn_args *args = &request->args;
    int64_t blocks = lattn_ceil_div(args->tokens, LATTN_BLOCK);
    int64_t rows = args->flags & LATTN_FLAG_PACKED
                       ? args->tokens / LATTN_BLOCK + 2 * (int64_t)args->sequences
                       : (blocks + 1) * args->sequences;
    int64_t each = (int64_t)args->heads * args->d * args->e, count;
    if (__builtin_mul_overflow(rows, each, &count))
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "block_states: %lld rows of %lld elements pass 2^63", LL(rows), LL(each));
    args->flags |= LATTN_FLAG_KEPT;
    return check_array(request, "block_states", LATTN_MEM_KEPT, states, count, sizeof(float),
                       &args->kept.offset);
}

/* ---- workspace ------------------------------------------------------------------------------- */

static lattn_status check_workspace(struct lattn_request *request, const lattn_workspace *workspace)
{
    if (workspace->offset % 16)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "workspace.offset = %llu: must be a multiple of 16",
                          (unsigned long long)workspace->offset);
    if (workspace->offset > INT64_MAX)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "workspace.offset = %llu: must be below 2^63",
                          (unsigned long long)workspace->offset);
    if (workspace->size && !workspace->base)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "workspace.base = NULL: must be %llu bytes of device memory",
                          (unsigned long long)workspace->size);
    request->workspace = workspace->size;
    request->memories[LATTN_MEM_WORK] = workspace->base;
    request->args.work = (int64_t)(workspace->offset / sizeof(float));
    return LATTN_OK;
}

/* ---- the two operations ---------------------------------------------------------------------- */

/* What a call offers until a tensor or state of it says otherwise. */
static uint32_t all_offers(const struct lattn_kind *kind)
{
    uint32_t offers = LATTN_NEEDS_ALIGN16 | LATTN_NEEDS_STATE_E_UNIT | LATTN_NEEDS_STATE_D_UNIT |
                      LATTN_NEEDS_STATE_F32 | LATTN_NEEDS_RECURRENCE | LATTN_NEEDS_TF32_ALLOWED |
                      LATTN_NEEDS_ONE_TOKEN | LATTN_NEEDS_STATE_HALF | LATTN_NEEDS_MANY_GROUPS;
    if (kind->dtype == LATTN_F32 && kind->precision != LATTN_PRECISION_TF32)
        offers &= ~(uint32_t)LATTN_NEEDS_TF32_ALLOWED;
    return offers;
}

static lattn_status check_lengths(struct lattn_request *request, const lattn_prefill_params *params,
                                  bool packed)
{
    lattn_status status = check_range("batch", params->batch, 0, MOST_SEQUENCES);
    if (!status)
        status = check_range("tokens", params->tokens, 0, MOST_TOKENS);
    if (!status && packed)
        status = check_range("max_tokens", params->max_tokens, 0, params->tokens);
    if (status)
        return status;
    request->args.sequences = (lattn_i32)params->batch;
    request->args.tokens = params->tokens;
    request->longest = packed && params->max_tokens ? params->max_tokens : params->tokens;
    request->total = packed ? (params->batch ? params->tokens : 0) : params->batch * params->tokens;
    if (packed)
        request->args.flags |= LATTN_FLAG_PACKED;
    return LATTN_OK;
}

lattn_status lattn_rules_prefill(const void *given, enum lattn_purpose purpose,
                                 struct lattn_request *request)
{
    lattn_prefill_params params;
    lattn_status status = lattn_params_read(&params, sizeof(params), given, "params");
    if (status)
        return status;
    *request = (struct lattn_request){.kind = {.decode = false}};
    struct lattn_args *args = &request->args;
    status = check_kind(&request->kind, params.dtype, params.precision, params.d, params.e);
    if (status || purpose == LATTN_TO_PREPARE)
        return status;
    request->offers = all_offers(&request->kind) & ~(uint32_t)LATTN_NEEDS_ONE_TOKEN;
    bool packed = params.cu_seqlens.base != NULL;
    status = check_heads(request, params.heads, params.qk_heads, params.scale);
    if (!status)
        status = check_lengths(request, &params, packed);
    if (!status)
        status =
            check_range("decay", (int64_t)params.decay, LATTN_DECAY_RECURRENCE, LATTN_DECAY_VLLM);
    if (status)
        return status;
    if (params.decay == LATTN_DECAY_VLLM) {
        args->flags |= LATTN_FLAG_VLLM;
        request->offers &= ~(uint32_t)LATTN_NEEDS_RECURRENCE;
    }
    const struct token_axes axes = {params.batch, params.tokens, packed, params.dtype};
    status = check_tensors(request, purpose, &axes, &params.q, &params.k, &params.v, &params.o);
    if (!status)
        status = check_slopes(request, purpose, &params.slopes);
    if (!status && packed)
        status = check_array(request, "cu_seqlens", LATTN_MEM_CU_SEQLENS, &params.cu_seqlens,
                             params.batch + 1, 4, &args->cu_seqlens);
    if (!status)
        status = check_states(request, &params.state_in, &params.state_out, &params.has_initial,
                              params.batch);
    if (!status && params.block_states.base)
        status = check_block_states(request, &params.block_states);
    return status ? status : check_workspace(request, &params.workspace);
}

lattn_status lattn_rules_decode(const void *given, enum lattn_purpose purpose,
                                struct lattn_request *request)
{
    lattn_decode_params params;
    lattn_status status = lattn_params_read(&params, sizeof(params), given, "params");
    if (status)
        return status;
    *request = (struct lattn_request){.kind = {.decode = true}};
    struct lattn_args *args = &request->args;
    status = check_kind(&request->kind, params.dtype, params.precision, params.d, params.e);
    if (status || purpose == LATTN_TO_PREPARE)
        return status;
    request->offers = all_offers(&request->kind);
    status = check_heads(request, params.heads, params.qk_heads, params.scale);
    if (!status)
        status = check_range("batch", params.batch, 0, MOST_SEQUENCES);
    if (!status)
        status = check_range("tokens", params.tokens, 0, LATTN_DECODE_TOKENS);
    if (status)
        return status;
    args->sequences = (lattn_i32)params.batch;
    args->tokens = params.tokens ? params.tokens : 1;
    request->longest = args->tokens;
    request->total = params.batch * args->tokens;
    if (args->tokens > 1 || params.token_states.base)
        request->offers &= ~(uint32_t)LATTN_NEEDS_ONE_TOKEN;
    const struct token_axes axes = {params.batch, args->tokens, false, params.dtype};
    status = check_tensors(request, purpose, &axes, &params.q, &params.k, &params.v, &params.o);
    if (!status)
        status = check_slopes(request, purpose, &params.slopes);
    if (!status && !params.state_in.base && params.batch)
        status = lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                            "state_in.base = NULL: decode needs the states");
    if (status)
        return status;
    const lattn_state *out = params.state_out.base ? &params.state_out : &params.state_in;
    status = check_states(request, &params.state_in, out, &params.has_initial, params.batch);
    if (status)
        return status;
    const struct state_place kept = {
        "token_states",
        NULL,
        LATTN_MEM_KEPT,
        LATTN_MEM_COUNT,
        &args->kept,
        NULL,
        LATTN_FLAG_KEPT,
        0,
        0,
        true,
    };
    status = check_state(request, &kept, &params.token_states, request->total);
    return status ? status : check_workspace(request, &params.workspace);
}
