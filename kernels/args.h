/* The arguments of every kernel of every backend: one list of memories, one struct by value.
 * Compiled by C11, CUDA, HIP and OpenCL C alike; the layout is the same in all of them. */
#ifndef LATTN_ARGS_H
#define LATTN_ARGS_H

#ifdef __OPENCL_VERSION__
typedef long lattn_i64;
typedef int lattn_i32;
#else
typedef long long lattn_i64;
typedef int lattn_i32;
#endif

/* Tokens in a block: the unit of block states, and what the vllm decay rule counts from. */
#define LATTN_BLOCK 256
/* Most tokens of a decode call. */
#define LATTN_DECODE_TOKENS 8
/* Largest d and e. */
#define LATTN_MAX_DIM 256

/* The memories, in the order in which kernels take them. An absent one is NULL. */
enum lattn_memory_slot {
    LATTN_MEM_Q,
    LATTN_MEM_K,
    LATTN_MEM_V,
    LATTN_MEM_O,
    LATTN_MEM_SLOPES,      /* float [h] */
    LATTN_MEM_CU_SEQLENS,  /* int [sequences + 1] */
    LATTN_MEM_HAS_INITIAL, /* unsigned char [sequences] */
    LATTN_MEM_STATE_IN,
    LATTN_MEM_SLOT_IN,
    LATTN_MEM_STATE_OUT,
    LATTN_MEM_SLOT_OUT,
    LATTN_MEM_KEPT, /* prefill: block states; decode: token states */
    LATTN_MEM_WORK, /* prefix states, float [segments][h][d][e]; of a chain, the row's own */
    LATTN_MEM_COUNT
};

/* lattn_args.flags: what the call has. */
#define LATTN_FLAG_PACKED 1      /* cu_seqlens is given */
#define LATTN_FLAG_STATE_IN 2    /* else every initial state is zero */
#define LATTN_FLAG_HAS_INITIAL 4 /* has_initial is given, else all have one */
#define LATTN_FLAG_STATE_OUT 8   /* final states are wanted */
#define LATTN_FLAG_SLOT_IN 16    /* else row = sequence */
#define LATTN_FLAG_SLOT_OUT 32
#define LATTN_FLAG_SLOT_IN_64 64 /* slot_in is 64-bit, else 32 */
#define LATTN_FLAG_SLOT_OUT_64 128
#define LATTN_FLAG_KEPT 256 /* block states or token states are wanted */
#define LATTN_FLAG_VLLM 512 /* the vllm decay rule, else the recurrence */
/* Outputs start from the prefix states in WORK; the scan has dealt with state_in and state_out. */
#define LATTN_FLAG_SEGMENTED 1024
/* Segments without a scan before: groups find the prefix states themselves, by way of WORK, read
 * state_in and write state_out. */
#define LATTN_FLAG_CHAINED 2048

/* Element types of q, k, v, o and of states, numbered as lattn_dtype. */
#define LATTN_TYPE_F32 0
#define LATTN_TYPE_F16 1
#define LATTN_TYPE_BF16 2

/* Offsets and strides count elements. */
struct lattn_token_layout {
    lattn_i64 offset, batch, head, token;
};

struct lattn_state_layout {
    lattn_i64 offset, slot, head, d, e;
    lattn_i64 slots; /* rows there are */
    lattn_i32 type;  /* LATTN_TYPE_ */
    lattn_i32 unused;
};

struct lattn_args {
    struct lattn_token_layout q, k, v, o;
    struct lattn_state_layout in, out;
    struct lattn_state_layout kept; /* decode: rows (sequence * tokens + t). prefill: contiguous
                                       float32, so only offset is set */
    lattn_i64 slopes, cu_seqlens, has_initial, slot_in, slot_out, work; /* offsets, in elements */
    lattn_i64 tokens;    /* n of one sequence; packed: of all together */
    lattn_i32 sequences; /* b */
    lattn_i32 heads;     /* h */
    lattn_i32 group;     /* v heads per q/k head */
    lattn_i32 d, e;
    lattn_i32 segment;  /* tokens in a segment, a multiple of LATTN_BLOCK unless unsegmented */
    lattn_i32 segments; /* dense: of each sequence; packed: the bound on their number in all */
    lattn_i32 flags;    /* LATTN_FLAG_ */
    float scale;
    lattn_i32 unused;
};

/* Segments. A sequence of n tokens has ceil(n / segment) of them. Dense: segment j of sequence i
 * has number i * segments + j. Packed: it has number floor(cu_seqlens[i] / segment) + i + j, which
 * is unique and below floor(tokens / segment) + sequences, so that neither the host nor the device
 * needs a table; some numbers name no segment. Prefix states lie in WORK by that number. A packed
 * sequence has one number more than it needs, or, if it is empty, one that stands for it. */

#endif
