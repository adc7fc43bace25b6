/* One call of prefill or decode with every option the library has: built from a case, run, and
 * judged against the oracle, with every byte that it may not write watched. */
#ifndef LATTN_TESTS_ATTENTION_H
#define LATTN_TESTS_ATTENTION_H

#include "buffer.h"
#include "random.h"

/* How q, k, v and o lie in memory. */
enum layout {
    LAYOUT_DEFAULT,        /* zero strides: contiguous */
    LAYOUT_OTHER,          /* heads and tokens the other way round than the default */
    LAYOUT_FUSED,          /* q, k and v slices of one buffer [tokens, all heads]; o as OTHER */
    LAYOUT_PADDED,         /* odd gaps everywhere, odd offsets */
    LAYOUT_PADDED_ALIGNED, /* gaps that keep 16-byte alignment */
    LAYOUT_REVERSED,       /* inputs with a negative token stride; o as PADDED */
    LAYOUT_SHARED,         /* inputs with a zero head stride; o as default */
    LAYOUT_COUNT
};

enum state_layout {
    STATE_DEFAULT,    /* zero strides: contiguous */
    STATE_TRANSPOSED, /* [e, d] */
    STATE_PADDED,     /* odd gaps everywhere */
    STATE_SPREAD,     /* no stride is one, heads outside slots */
    STATE_GAPS,       /* contiguous slots far apart, at 16-byte boundaries */
    STATE_GAPS_TRANSPOSED,
    STATE_LAYOUT_COUNT
};

enum start { START_ZERO, START_ROWS, START_POOL };

enum final {
    FINAL_NONE,     /* no state_out: not wanted in prefill, in place in decode */
    FINAL_ROWS,     /* elsewhere, row = sequence */
    FINAL_POOL,     /* elsewhere, slots of another pool */
    FINAL_IN_PLACE, /* where the initial states are */
    FINAL_MOVED,    /* other slots of the same pool */
};

enum slopes {
    SLOPES_MIXED, /* 0, 1e-6, 0.1, 1, 90, 1e4 and others, head after head */
    SLOPES_ZERO,
    SLOPES_TINY,
    SLOPES_TENTH,
    SLOPES_ONE,
    SLOPES_NINETY,
    SLOPES_HUGE,
    SLOPES_COUNT
};

enum poison { POISON_NONE, POISON_Q, POISON_K, POISON_V };

/* Most sequences of a packed case. */
#define MAX_LENGTHS 12
/* Tokens between two block states. */
#define ATTENTION_BLOCK 256

struct attention_case {
    const char *name;
    enum test_effort effort;
    bool decode;
    bool vllm;
    bool tf32;
    int64_t batch;
    int64_t tokens; /* packed: from the lengths */
    bool packed;
    int32_t lengths[MAX_LENGTHS]; /* packed: of the sequences */
    int32_t heads, qk_heads, d, e;
    lattn_dtype dtype;
    float scale;
    enum slopes slopes;
    enum layout layout;
    enum start start;
    bool flags; /* has_initial is given */
    enum final final;
    bool padding;    /* some slots are out of range; needs a pool */
    bool wide_slots; /* 64-bit slot indices */
    lattn_dtype in_dtype, out_dtype;
    enum state_layout in_layout, out_layout;
    bool kept; /* block states, or token states with the dtype and layout of the final states */
    enum poison poison; /* a NaN or infinity somewhere in this input */
    bool infinite;      /* an infinity */
};

struct token_array {
    struct buffer *buffer;
    lattn_tensor tensor;                     /* as passed */
    int64_t origin, batch, head, token, dim; /* in elements; dim is a size */
};

struct state_array {
    struct buffer *buffer;
    lattn_state state;                /* as passed */
    int64_t origin, slot, head, d, e; /* in elements */
    int64_t *slots;                   /* of each sequence */
};

struct attention {
    struct fixture *fixture;
    const struct attention_case *c;
    struct random random;
    int64_t batch, tokens; /* tokens: of one sequence, or of all packed ones */
    int32_t qk_heads, e;
    int64_t *first, *length; /* of each sequence; `first` counts along the packed axis */
    bool *initial;           /* it has an initial state */
    bool *live;              /* it is no padding */
    struct buffer qkv, k_buffer, v_buffer, o_buffer, in_buffer, out_buffer, kept_buffer;
    struct buffer slopes, cu_seqlens, flags, in_slots, out_slots, work;
    struct token_array q, k, v, o;
    struct state_array in, out, kept;
    lattn_prefill_params prefill; /* one of the two is the call */
    lattn_decode_params decode;
};

/* Builds, runs, judges: the whole of a test. `data` is a struct attention_case. */
void attention_test(struct fixture *fixture, const void *data);

/* Its parts. */
void attention_build(struct attention *attention, struct fixture *fixture,
                     const struct attention_case *c);
void attention_run(struct attention *attention);
void attention_judge(struct attention *attention);
void attention_free(struct attention *attention);

/* Where an element lies, in bytes. Sequence `i`, its token `t`; slot `row`. */
uint64_t token_offset(const struct attention *attention, const struct token_array *array, int64_t i,
                      int64_t head, int64_t t);
uint64_t state_offset(const struct state_array *array, int64_t row, int64_t head, int64_t d,
                      int64_t e);
/* The row that keeps state `step` of a sequence and head. */
uint64_t kept_offset(const struct attention *attention, int64_t i, int64_t head, int64_t step,
                     int64_t d, int64_t e);
int64_t kept_count(const struct attention *attention, int64_t i);

/* Give an array its strides. Return the elements it spans from its origin on. */
int64_t lay_out_tokens(struct token_array *array, enum layout layout, bool packed, int64_t batch,
                       int64_t heads, int64_t tokens, int64_t dim);
int64_t lay_out_states(struct state_array *array, enum state_layout layout, int64_t slots,
                       int64_t heads, int64_t d, int64_t e);

/* Largest relative errors allowed, from dtypes and length alone. */
double output_tolerance(const struct attention_case *c, int64_t tokens);
double state_tolerance(const struct attention_case *c, int64_t tokens, lattn_dtype stored);

#endif
