/* One call of prefill or decode, as the subcommands see it: its shape, the arrays it takes and
 * gives, contiguous all of them, and the library's functions for either operation under one name.
 */
#ifndef LATTN_TOOLS_CALL_H
#define LATTN_TOOLS_CALL_H

#include <lattn/lattn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum call_operation {
    CALL_PREFILL,
    CALL_DECODE,
};

enum call_part {
    CALL_Q,
    CALL_K,
    CALL_V,
    CALL_SLOPES,
    CALL_CU_SEQLENS, /* int32 [batch + 1] */
    CALL_SLOT_IDX,   /* [batch] */
    CALL_STATE_IN,   /* prefill: [batch, h, d, e]. decode: the pool, updated in place */
    CALL_O,
    CALL_STATE_OUT, /* prefill: float32 [batch, h, d, e] */
    CALL_KEPT,      /* prefill: the block states */
    CALL_WORKSPACE,
    CALL_PARTS
};

struct call {
    enum call_operation operation;
    lattn_dtype dtype;       /* of q, k, v, o */
    lattn_dtype state_dtype; /* of CALL_STATE_IN */
    lattn_precision precision;
    lattn_decay decay;
    int64_t batch, tokens; /* as in the library's params */
    int32_t heads, qk_heads, d, e;
    bool has_initial; /* prefill: CALL_STATE_IN is given */
    bool packed;      /* prefill: CALL_CU_SEQLENS is given */
    bool keep_blocks; /* prefill: CALL_KEPT is wanted; not for packed calls */
    int64_t slots;    /* decode: of the pool */
    lattn_index_type slot_type;
};

/* Device memories of a call; base NULL where it has none. */
struct call_memory {
    void *base[CALL_PARTS];
    uint64_t offset[CALL_PARTS];
    uint64_t workspace_bytes;
};

const char *call_operation_name(enum call_operation operation);

int64_t call_blocks(const struct call *call);

/* Bytes of a part but the workspace: 0 where the call has none, UINT64_MAX where 64 bits do not
 * count them. */
uint64_t call_bytes(const struct call *call, enum call_part part);

/* Whether a row of a decode call has a slot, and which. */
bool call_slot(const struct call *call, const void *slot_idx, int64_t row, int64_t *slot);

/* Loads the kernels, and fails for a call that breaks a rule, before there is any memory for it. */
lattn_status call_prepare(lattn_stream *stream, const struct call *call);
lattn_status call_workspace(lattn_stream *stream, const struct call *call,
                            const struct call_memory *memory, uint64_t *bytes);
lattn_status call_describe(lattn_stream *stream, const struct call *call,
                           const struct call_memory *memory, char *text, size_t size);
lattn_status call_launch(lattn_stream *stream, const struct call *call,
                         const struct call_memory *memory);

#endif
