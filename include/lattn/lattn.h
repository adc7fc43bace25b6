/* lattn: portable kernels for lightning attention (linear attention with exponential decay).
 *
 *     S_t = exp(-s) S_{t-1} + k_t v_t^T        S in R^{d x e}, float32
 *     o_t = scale * q_t S_t
 *
 * One story to read: create a context, open one of its devices, create a stream on it, prepare a
 * kind of call once, then prefill and decode as often as you like.
 *
 * Rules that hold for every function:
 *  - A failure is a status, and lattn_error_message() says which argument, its value and the rule.
 *    Everything is checked before any work starts; a call that fails has launched nothing, unless
 *    the driver refused one of several launches (LATTN_ERROR_DEVICE, LATTN_ERROR_DEVICE_MEMORY).
 *  - The library never prints, exits, aborts or installs handlers.
 *  - In a params struct set `struct_size` to its sizeof (the _INIT macros do); every other member
 *    may stay zero, which means its default. Structs grow at their end only.
 *  - "Memory" is a base handle and an offset in bytes. What a base is depends on the backend: a
 *    device pointer, or a buffer object (lattn/interop.h). Offsets must be multiples of the element
 *    size, and device pointers too. The fastest kernels take bases, offsets and strides that are
 *    multiples of 16 bytes.
 *  - Thread-safety: a context and a device may be used by any number of threads at once; a stream
 *    by one thread at a time. Destroying an object while another thread uses it is an error of
 *    the caller.
 */
#ifndef LATTN_LATTN_H
#define LATTN_LATTN_H

#include <stddef.h>
#include <stdint.h>

#include "prefix.h"

/* A struct that is zero but for its struct_size. */
#ifdef __cplusplus
template <typename T> inline T lattn_sized()
{
    T sized = T();
    sized.struct_size = sizeof(T);
    return sized;
}
#define LATTN_SIZED(type) lattn_sized<type>()
#else
#define LATTN_SIZED(type)                                                                          \
    {                                                                                              \
        .struct_size = sizeof(type)                                                                \
    }
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) || defined(__CYGWIN__)
#define LATTN_API
#else
#define LATTN_API __attribute__((visibility("default")))
#endif

/* ---- version and errors ------------------------------------------------------------------- */

#define LATTN_VERSION_MAJOR 0 /* the ABI: also the number in the soname */
#define LATTN_VERSION_MINOR 1
#define LATTN_VERSION_PATCH 0

/* "major.minor.patch" of the library that is linked. Static storage. */
LATTN_API const char *lattn_version_string(void);

typedef enum lattn_status {
    LATTN_OK = 0,
    LATTN_ERROR_INVALID_ARGUMENT = 1, /* an argument breaks a rule of its function */
    LATTN_ERROR_UNSUPPORTED = 2,      /* a legal request that this device has no kernel for */
    LATTN_ERROR_OUT_OF_MEMORY = 3,    /* the host allocator returned NULL */
    LATTN_ERROR_DEVICE_MEMORY = 4,    /* the device has too little memory */
    LATTN_ERROR_NO_DEVICE = 5,        /* no such device, or no driver for it */
    LATTN_ERROR_DEVICE_TOO_OLD = 6,   /* the device is below what its backend requires */
    LATTN_ERROR_DRIVER_TOO_OLD = 7,   /* the driver is too old for the built-in device code */
    LATTN_ERROR_NO_DEVICE_CODE = 8,   /* this build has no code for the device's architecture */
    LATTN_ERROR_NOT_PREPARED = 9, /* the matching lattn_*_prepare was not called on the stream */
    LATTN_ERROR_WORKSPACE = 10,   /* the workspace given is smaller than the call needs */
    LATTN_ERROR_BUILD = 11,       /* the device's compiler refused a kernel */
    LATTN_ERROR_DEVICE = 12,      /* a call of the driver failed; the message carries its code */
} lattn_status;

/* The status's name, such as "LATTN_ERROR_UNSUPPORTED". Static storage; never NULL. */
LATTN_API const char *lattn_status_name(lattn_status status);

/* The message of the last call that failed on this thread: one line, no newline. Valid until the
 * next lattn call on this thread; "" if none has failed. Never NULL. */
LATTN_API const char *lattn_error_message(void);

/* ---- context: the devices of this machine -------------------------------------------------- */

typedef struct lattn_context lattn_context;

typedef enum lattn_log_level {
    LATTN_LOG_ERROR = 1,
    LATTN_LOG_WARNING = 2,
    LATTN_LOG_INFO = 3,
    LATTN_LOG_DEBUG = 4,
} lattn_log_level;

/* May be called from any thread that is inside a lattn call on this context or its devices. */
typedef void (*lattn_log_fn)(void *user, lattn_log_level level, const char *message);

/* The host memory of the library comes from here. `alloc` returns memory aligned for any type, or
 * NULL; `free` accepts what `alloc` returned and NULL. Both must be thread-safe. */
typedef struct lattn_allocator {
    void *(*alloc)(void *user, size_t size);
    void (*free)(void *user, void *pointer);
    void *user;
} lattn_allocator;

typedef struct lattn_context_params {
    size_t struct_size;
    lattn_log_fn log; /* NULL: no log */
    void *log_user;
    lattn_log_level log_level; /* the most detailed level passed to `log`; 0: warnings */
    lattn_allocator allocator; /* alloc NULL: malloc and free */
    const char *cache_dir;     /* where device programs are cached; NULL: the user's cache folder
                                  ($XDG_CACHE_HOME, else $HOME/.cache, then lattn/); "": no cache.
                                  Drivers that keep such a cache themselves are left to it.
                                  Copied. */
    const char *backends; /* only these, comma-separated, e.g. "reference"; NULL: all. Copied. */
} lattn_context_params;
#define LATTN_CONTEXT_PARAMS_INIT LATTN_SIZED(lattn_context_params)

/* Opens the drivers it finds (once in a process, never closed) and lists their devices. No driver
 * and no device is no error: the reference device is always there, unless `params->backends` leaves
 * it out. Initialises no device. `params` may be NULL. */
LATTN_API lattn_status lattn_context_create(const lattn_context_params *params,
                                            lattn_context **context);

/* Devices opened from the context keep what they need of it: the order of closing is free. NULL is
 * ignored. */
LATTN_API void lattn_context_destroy(lattn_context *context);

typedef enum lattn_device_kind {
    LATTN_DEVICE_OTHER = 0,
    LATTN_DEVICE_CPU = 1,
    LATTN_DEVICE_GPU = 2,
} lattn_device_kind;

typedef struct lattn_device_info {
    size_t struct_size;
    char backend[16]; /* "reference", or the name of a device backend in this build */
    int32_t ordinal;  /* its number within the backend */
    lattn_device_kind kind;
    char name[128];
    char arch[64];    /* the backend's name of the architecture, "" if it has none */
    char driver[128]; /* driver and version, as the driver gives them */
    uint64_t memory;  /* bytes; 0 if unknown */
    int32_t compute_units;
    lattn_status status; /* what opening it would return for a reason known now, else LATTN_OK */
    char reason[256];    /* the message that goes with `status` */
} lattn_device_info;
#define LATTN_DEVICE_INFO_INIT LATTN_SIZED(lattn_device_info)

/* How many devices of all backends there are; they are numbered from 0, best first, and the
 * numbers do not change while the context lives. The reference, if listed, is the last. */
LATTN_API int32_t lattn_device_count(const lattn_context *context);

/* Fills `info` (set its struct_size first) for device `index`. */
LATTN_API lattn_status lattn_device_info_get(const lattn_context *context, int32_t index,
                                             lattn_device_info *info);

/* The index of device `ordinal` of `backend`; backend NULL or "auto" means the best device that
 * can be opened, over all backends (ordinal is then ignored). LATTN_ERROR_NO_DEVICE if there is
 * none, with a message that says what there is. */
LATTN_API lattn_status lattn_device_find(const lattn_context *context, const char *backend,
                                         int32_t ordinal, int32_t *index);

/* ---- devices -------------------------------------------------------------------------------- */

typedef struct lattn_device lattn_device;

/* Native objects of the caller, for lattn_device_adopt; lattn/interop.h fills one per backend. */
typedef struct lattn_native {
    size_t struct_size;
    const char *backend;
    void *context;  /* the backend's context object */
    void *device;   /* the backend's device object */
    int64_t number; /* the backend's device number, where it goes by numbers */
} lattn_native;

/* Opens a device of the context's list. Work on it needs streams, below. */
LATTN_API lattn_status lattn_device_open(lattn_context *context, int32_t index,
                                         lattn_device **device);

/* Uses the caller's native objects instead of creating any. They stay the caller's and must
 * outlive the device. */
LATTN_API lattn_status lattn_device_adopt(lattn_context *context, const lattn_native *native,
                                          lattn_device **device);

/* Close a device's streams first. NULL is ignored. */
LATTN_API void lattn_device_close(lattn_device *device);

/* As lattn_device_info_get, for an open device. */
LATTN_API lattn_status lattn_device_info_of(const lattn_device *device, lattn_device_info *info);

/* Device memory, for callers that have no allocator of their own. `base` is what tensors take; of
 * 0 bytes it is NULL. */
LATTN_API lattn_status lattn_memory_alloc(lattn_device *device, uint64_t bytes, void **base);
LATTN_API void lattn_memory_free(lattn_device *device, void *base);

/* ---- streams -------------------------------------------------------------------------------- */

typedef struct lattn_stream lattn_stream;

/* Work on one stream runs in order. A stream is for one thread at a time. */
LATTN_API lattn_status lattn_stream_create(lattn_device *device, lattn_stream **stream);

/* Puts work on the caller's own stream or queue (lattn/interop.h), which stays the caller's; it
 * must belong to the device and execute in order. */
LATTN_API lattn_status lattn_stream_adopt(lattn_device *device, void *native,
                                          lattn_stream **stream);

/* Waits for the work of a stream that the library created; never for an adopted one. NULL is
 * ignored. */
LATTN_API void lattn_stream_destroy(lattn_stream *stream);

/* Waits until all work put on the stream has finished. */
LATTN_API lattn_status lattn_stream_synchronize(lattn_stream *stream);

/* Copies between host and device memory, in the stream's order. Upload and download return when
 * the host buffer may be reused or read; copy and fill do not wait. */
LATTN_API lattn_status lattn_memory_upload(lattn_stream *stream, void *base, uint64_t offset,
                                           const void *host, uint64_t bytes);
LATTN_API lattn_status lattn_memory_download(lattn_stream *stream, void *host, const void *base,
                                             uint64_t offset, uint64_t bytes);
LATTN_API lattn_status lattn_memory_copy(lattn_stream *stream, void *to, uint64_t to_offset,
                                         const void *from, uint64_t from_offset, uint64_t bytes);
LATTN_API lattn_status lattn_memory_fill(lattn_stream *stream, void *base, uint64_t offset,
                                         uint8_t value, uint64_t bytes);

/* Device time of the work put on the stream between the two calls, in milliseconds; `end` waits
 * for that work. One measurement at a time on a stream. */
LATTN_API lattn_status lattn_stream_time_begin(lattn_stream *stream);
LATTN_API lattn_status lattn_stream_time_end(lattn_stream *stream, double *milliseconds);

/* ---- what calls are made of ----------------------------------------------------------------- */

typedef enum lattn_dtype {
    LATTN_F32 = 0,
    LATTN_F16 = 1,
    LATTN_BF16 = 2,
} lattn_dtype;

/* Which rule weighs the state that enters a block of 256 tokens.
 * RECURRENCE is the mathematics at the head of this file. VLLM reproduces vLLM's Triton prefill
 * (lightning_attn.py, _fwd_none_diag_kernel): what crosses a block boundary, or comes from the
 * initial state, is larger by exp(s) in the outputs; the states are the same. */
typedef enum lattn_decay {
    LATTN_DECAY_RECURRENCE = 0,
    LATTN_DECAY_VLLM = 1,
} lattn_decay;

/* How float32 inputs are multiplied. FULL is float32 (errors near 1e-6). TF32 allows, and does not
 * force, products of 10-bit mantissas (errors near 1e-3) where a device has them. */
typedef enum lattn_precision {
    LATTN_PRECISION_FULL = 0,
    LATTN_PRECISION_TF32 = 1,
} lattn_precision;

/* A q, k, v or o: [batch, head, token, dim] with the dims of one token adjacent. Strides count
 * elements; all three zero mean contiguous: [b, h, n, dim], or [n, h, dim] for packed sequences
 * (where stride_batch is not used). Inputs may have any strides, zero and negative ones too (which
 * reach back within `offset`); outputs must not overlap themselves or an input. */
typedef struct lattn_tensor {
    void *base;
    uint64_t offset; /* bytes */
    int64_t stride_batch;
    int64_t stride_head;
    int64_t stride_token;
} lattn_tensor;

/* A contiguous array. */
typedef struct lattn_array {
    void *base;
    uint64_t offset; /* bytes */
} lattn_array;

typedef enum lattn_index_type {
    LATTN_I32 = 0,
    LATTN_I64 = 1,
} lattn_index_type;

/* States: [slots, h, d, e]. Sequence i uses row slot_idx[i], or row i without slot_idx.
 * Strides count elements; all four zero mean contiguous. A [e, d] pool is stride_d = 1. */
typedef struct lattn_state {
    void *base;
    uint64_t offset; /* bytes */
    lattn_dtype dtype;
    int64_t stride_slot;
    int64_t stride_head;
    int64_t stride_d;
    int64_t stride_e;
    int64_t slots;        /* rows there are; may be 0 without slot_idx, meaning batch */
    lattn_array slot_idx; /* [batch] on the device; base NULL: row = sequence number */
    lattn_index_type slot_type;
} lattn_state;

typedef struct lattn_workspace {
    void *base;      /* a device pointer: a multiple of 16 too */
    uint64_t offset; /* bytes, a multiple of 16 */
    uint64_t size;   /* bytes from offset on */
} lattn_workspace;

/* ---- prefill -------------------------------------------------------------------------------- */

/* Dense: `batch` sequences of `tokens` tokens each. Packed (cu_seqlens given): `batch` sequences
 * lie one after another along the token axis of `tokens` tokens in all; sequence i is tokens
 * cu_seqlens[i] to cu_seqlens[i + 1], read on the device. Sequences may be empty; one of a single
 * token is a decode step, so one call serves a mixed batch. The caller vouches that cu_seqlens
 * rises from >= 0 to <= tokens.
 *
 * Padding: a sequence whose slot in state_out (or in state_in, if it has an initial state) is
 * negative or >= slots gets zero outputs, and no state is written for it. Two live sequences must
 * not write one slot, nor one write the slot that another reads. */
typedef struct lattn_prefill_params {
    size_t struct_size;
    int64_t batch;      /* b: 0 to 2139095040 */
    int64_t tokens;     /* n: 0 to 2147483391 */
    int64_t max_tokens; /* packed: no sequence is longer; 0: tokens. A hint for speed only */
    int32_t heads;      /* h >= 1: of v, o, slopes and states */
    int32_t qk_heads;   /* of q and k: a divisor of heads; 0: heads. v head i uses q and k head
                           i / (heads / qk_heads) */
    int32_t d;          /* 1 to 256: of q and k */
    int32_t e;          /* 1 to 256: of v and o; 0: d */
    lattn_dtype dtype;  /* of q, k, v and o */
    lattn_precision precision;
    lattn_decay decay;
    float scale; /* of o; 0: 1 */
    lattn_tensor q, k, v;
    lattn_tensor o;
    lattn_array slopes;       /* float32 [h], each s >= 0 */
    lattn_array cu_seqlens;   /* int32 [batch + 1]; base NULL: dense */
    lattn_state state_in;     /* base NULL: every initial state is zero */
    lattn_array has_initial;  /* uint8 [batch]; 0: that sequence starts from zero and its slot in
                                 state_in is not used. base NULL: all have one */
    lattn_state state_out;    /* final states; base NULL: not wanted. May be state_in itself */
    lattn_array block_states; /* float32, contiguous; base NULL: not wanted. Dense: [b, h, blocks +
                                1, d, e] with blocks = ceil(n / 256), the state before each block
                                and then the final one, as vLLM's prefill returns it. Packed: [rows,
                                h, d, e] with rows = floor(n / 256) + 2 batch, those of sequence i
                                from row floor(cu_seqlens[i] / 256) + 2 i on; other rows are left
                                as they are */
    lattn_workspace workspace;
} lattn_prefill_params;
#define LATTN_PREFILL_PARAMS_INIT LATTN_SIZED(lattn_prefill_params)

/* Loads every kernel that calls with these dtypes, head sizes (d, e) and precision can use on this
 * stream, whatever their lengths, strides and options. Slow the first time (it may compile), a look
 * at a table after that. Pointers in `params` are not needed. */
LATTN_API lattn_status lattn_prefill_prepare(lattn_stream *stream,
                                             const lattn_prefill_params *params);

/* The bytes of workspace that lattn_prefill needs for exactly these params (pointers count only as
 * NULL or not, and by alignment). */
LATTN_API lattn_status lattn_prefill_workspace(lattn_stream *stream,
                                               const lattn_prefill_params *params, uint64_t *bytes);

/* Enough workspace for every call with these head counts and sizes, at most `batch` sequences and
 * at most `tokens` tokens over all of them (dense: batch x tokens). */
LATTN_API lattn_status lattn_prefill_workspace_bound(lattn_stream *stream,
                                                     const lattn_prefill_params *params,
                                                     uint64_t *bytes);

/* Puts the prefill on the stream. Allocates nothing, waits for nothing, reads no device memory on
 * the host. (The reference device computes within the call.) */
LATTN_API lattn_status lattn_prefill(lattn_stream *stream, const lattn_prefill_params *params);

/* One line of text on how lattn_prefill would run: passes, kernels, segments, groups. Cut to
 * `size` bytes, always terminated. */
LATTN_API lattn_status lattn_prefill_describe(lattn_stream *stream,
                                              const lattn_prefill_params *params, char *text,
                                              size_t size);

/* ---- decode --------------------------------------------------------------------------------- */

/* `tokens` (1 to 8) new tokens for each of `batch` sequences, each on its state in a pool.
 * Padding rows as in prefill. More than one token per call is for speculative decoding: with
 * token_states the state after each token is kept, and a rejected tail is undone by passing the
 * accepted row of token_states as the next call's state_in. */
typedef struct lattn_decode_params {
    size_t struct_size;
    int64_t batch;  /* B: as in prefill */
    int32_t tokens; /* 1 to 8; 0: 1 */
    int32_t heads;  /* as in prefill, to `scale` */
    int32_t qk_heads;
    int32_t d;
    int32_t e;
    lattn_dtype dtype;
    lattn_precision precision;
    float scale;
    lattn_tensor q, k, v;     /* [B, h, tokens, dim] */
    lattn_tensor o;           /* default strides make [B, h * e] of one token */
    lattn_array slopes;       /* float32 [h] */
    lattn_state state_in;     /* required */
    lattn_array has_initial;  /* uint8 [B]; base NULL: all have one */
    lattn_state state_out;    /* base NULL: state_in, in place */
    lattn_state token_states; /* base NULL: not wanted. Row b * tokens + t is the state after token
                                 t of sequence b; takes no slot_idx; rows of padding sequences are
                                 left as they are */
    lattn_workspace workspace;
} lattn_decode_params;
#define LATTN_DECODE_PARAMS_INIT LATTN_SIZED(lattn_decode_params)

/* As their prefill namesakes. */
LATTN_API lattn_status lattn_decode_prepare(lattn_stream *stream,
                                            const lattn_decode_params *params);
LATTN_API lattn_status lattn_decode_workspace(lattn_stream *stream,
                                              const lattn_decode_params *params, uint64_t *bytes);
LATTN_API lattn_status lattn_decode(lattn_stream *stream, const lattn_decode_params *params);
LATTN_API lattn_status lattn_decode_describe(lattn_stream *stream,
                                             const lattn_decode_params *params, char *text,
                                             size_t size);

#ifdef __cplusplus
}
#endif

#endif
