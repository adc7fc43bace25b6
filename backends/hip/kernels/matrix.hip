/* The matrix-core kernels, by type and by the sizes they are padded to. Architectures without
 * matrix cores have none of them. */
#include "matrix_walk.h"

#ifdef LATTN_MATRIX_FAMILY

/* Waves of a group: as many as there are 16 columns, and no more than make 256 threads. */
#define LATTN_WAVES(E) ((E) / 16 * LATTN_WAVE > 256 ? 256 / LATTN_WAVE : (E) / 16)

/* Waves that share a SIMD: what the compiler leaves registers for. */
#ifdef __AMDGCN__
#define LATTN_AT_ONCE __attribute__((amdgpu_waves_per_eu(2)))
#else
#define LATTN_AT_ONCE
#endif

#define LATTN_WALK__(family, pass, type, D, E)                                                     \
    LATTN_KERNEL(LATTN_WAVES(E) * LATTN_WAVE)                                                      \
    LATTN_AT_ONCE lattn_##family##_##pass##_##type##_d##D##_e##E(LATTN_KERNEL_PARAMS)              \
    {                                                                                              \
        typedef lattn_walk<lattn_##type, D, E, LATTN_WAVES(E), LATTN_IS_##pass> walk;              \
        LATTN_LOCAL_VARIABLE lattn_u32x4 shared[walk::shared_bytes / 16];                          \
        walk::run((LATTN_LOCAL char *)shared, q, k, v, o, slopes, cu_seqlens, has_initial,         \
                  state_in, slot_in, state_out, slot_out, kept, work, a);                          \
    }
#define LATTN_WALK_(family, pass, type, D, E) LATTN_WALK__(family, pass, type, D, E)
#define LATTN_WALK(pass, type, D, E) LATTN_WALK_(LATTN_MATRIX_FAMILY, pass, type, D, E)
#define LATTN_IS_output true
#define LATTN_IS_state false

#define LATTN_WALKS(type)                                                                          \
    LATTN_WALK(output, type, 64, 64)                                                               \
    LATTN_WALK(output, type, 128, 128)                                                             \
    LATTN_WALK(state, type, 64, 64)                                                                \
    LATTN_WALK(state, type, 128, 128)

LATTN_WALKS(f16)
LATTN_WALKS(bf16)

/* Waves of 32 have no room for a state of 256 rows beside what else they need. */
#if LATTN_WAVE == 64
LATTN_WALK(output, f16, 256, 64)
LATTN_WALK(output, bf16, 256, 64)
LATTN_WALK(state, f16, 256, 64)
LATTN_WALK(state, bf16, 256, 64)
#endif

#endif
