/* What a backend can compute, as data: its catalogue, one row a kernel. The planner picks rows and
 * computes grids from them; nothing else decides what is supported. */
#ifndef LATTN_CORE_CATALOG_H
#define LATTN_CORE_CATALOG_H

#include <stdint.h>

/* The steps a call is made of. Prefill runs either OUTPUT alone, one segment a sequence (a walking
 * row) or over segments (a chaining one), or STATE, SCAN and OUTPUT over segments. Decode runs
 * DECODE. */
enum lattn_pass {
    LATTN_PASS_STATE,  /* WORK[segment] = the segment's own state (from zero), decayed to its end */
    LATTN_PASS_SCAN,   /* WORK[segment] = the state before the segment; writes final states and
                          block states; zeroes nothing of o */
    LATTN_PASS_OUTPUT, /* o of a segment from its prefix state; zero o for padding sequences */
    LATTN_PASS_DECODE, /* o and new states of a few tokens */
    LATTN_PASS_COUNT
};

/* lattn_kernel_row.can: what an OUTPUT row can do beyond one LATTN_BLOCK from a prefix state. A row
 * that walks takes any number of tokens, and without LATTN_FLAG_SEGMENTED it reads state_in and
 * writes state_out itself. */
#define LATTN_CAN_WALK 1
#define LATTN_CAN_WALK_KEPT 2 /* ... and writes block states on the way */
#define LATTN_CAN_WALK_VLLM 4 /* ... under the vllm decay rule too */
/* A launch may have fewer groups than there is work: each takes every so many-th piece. */
#define LATTN_CAN_TAKE_TURNS 8
/* With LATTN_FLAG_CHAINED it needs no STATE and SCAN: each group finds the state before its segment
 * from what the groups before it leave in WORK, and it reads state_in and writes state_out itself.
 * WORK holds, for each group, a flag and a state in float32, padded to d_max by e_tile. No block
 * states, and not under the vllm rule. */
#define LATTN_CAN_CHAIN 16

/* lattn_kernel_row.needs: what the row asks of a call. "Aligned" is a base, an offset and strides,
 * but for a unit one, that are multiples of 16 bytes. */
#define LATTN_NEEDS_ALIGN16 1       /* q, k, v, o are aligned */
#define LATTN_NEEDS_STATE_E_UNIT 2  /* states in, out and of tokens: stride_e = 1, and aligned */
#define LATTN_NEEDS_STATE_D_UNIT 4  /* the same with stride_d = 1 */
#define LATTN_NEEDS_STATE_F32 8     /* states in, out and kept are float32 */
#define LATTN_NEEDS_RECURRENCE 16   /* not the vllm decay rule */
#define LATTN_NEEDS_TF32_ALLOWED 32 /* float32 inputs only with LATTN_PRECISION_TF32 */
#define LATTN_NEEDS_ONE_TOKEN 64    /* decode of one token, no token states */
#define LATTN_NEEDS_STATE_HALF 128  /* states in, out and kept have one type, of 16 bits */
#define LATTN_NEEDS_MANY_GROUPS 256 /* decode that has four times as many as run at once */

/* Sets of lattn_dtype, of q, k, v and o. */
#define LATTN_TYPES_F32 1
#define LATTN_TYPES_F16 2
#define LATTN_TYPES_BF16 4
#define LATTN_TYPES_ALL 7

struct lattn_kernel_row {
    const char *entry;   /* the kernel's name; rows that share one differ in how it is launched */
    const void *program; /* the backend's own word on where to find it */
    enum lattn_pass pass;
    uint32_t types;                /* LATTN_TYPES_ of q, k, v, o that it takes */
    uint16_t d_min, d_max, d_step; /* d it takes: d_min to d_max, multiples of d_step (0: any) */
    uint16_t e_min, e_max, e_step;
    uint32_t can;          /* LATTN_CAN_ */
    uint32_t needs;        /* LATTN_NEEDS_ */
    uint32_t features;     /* the backend's own bits; all must be among the device's */
    uint32_t threads;      /* in a group */
    uint32_t shared;       /* bytes of group memory that a launch asks for */
    uint32_t shared_total; /* bytes of group memory in all, static ones too: what must fit */
    /* One group computes this much; 0 means all of that axis. Tiles of an axis are numbered from 0,
     * and the group's number is, fastest first: e tile, d tile, token tile, head, segment (or
     * sequence, in SCAN and DECODE). */
    uint16_t e_tile, d_tile, token_tile;
    uint16_t groups_per_unit; /* that run at once on one compute unit; 0: one */
    uint16_t pace; /* the cost model's only word on speed: time over that of moving the group's own
                      part of q, k, v and o, in percent, when the device is full; 0: not known, and
                      the row is never preferred to one before it */
};

#endif
