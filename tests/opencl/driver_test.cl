/* Kernels that show what reaches a kernel: its memories, its arguments, its group memory. */
#include "args.h"

#define MEMORIES                                                                                   \
    __global const float *q, __global const float *k, __global const float *v, __global float *o,  \
        __global const float *slopes, __global const int *cu_seqlens,                              \
        __global const uchar *has_initial, __global const void *state_in,                          \
        __global const void *slot_in, __global void *state_out, __global const void *slot_out,     \
        __global void *kept, __global float *work, const struct lattn_args args

/* o = scale * q; the last group adds what it knows of the rest. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void test_scale(MEMORIES)
{
    long i = get_global_id(0);
    if (i < args.tokens)
        o[args.o.offset + i] = args.scale * q[args.q.offset + i];
    if (i == 0) {
        o[args.tokens] = sizeof(struct lattn_args);
        o[args.tokens + 1] = args.flags;
        o[args.tokens + 2] = k == 0 && v == 0 && slopes == 0 && kept == 0 && work != 0;
        o[args.tokens + 3] = get_num_groups(0);
    }
}

/* Each group reverses its own. */
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void test_reverse(MEMORIES,
                                                                            __local float *shared)
{
    int i = get_local_id(0);
    shared[i] = q[get_group_id(0) * 256 + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_group_id(0) * 256 + i] = shared[255 - i];
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void test_nan(MEMORIES)
{
    if (get_global_id(0) == 0) {
        o[0] = q[0];
        o[1] = q[0] != q[0];
        o[2] = isnan(q[0]) && isinf(q[1]);
        o[3] = q[0] + 1.0f;
    }
}
