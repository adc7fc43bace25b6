#include "workload.h"

#include <math.h>
#include <stdlib.h>

#include "dtype.h"
#include "random.h"

#define ALIGNMENT 256
#define MAX_SETS 256
#define CHUNK 64
/* Random data made on the host; the device repeats them over the rest of a memory. */
#define PATTERN_BYTES (4u << 20)

uint64_t workload_bytes(const struct call *call)
{
    uint64_t total = 0;
    for (int part = 0; part < CALL_WORKSPACE; part++) {
        uint64_t bytes = call_bytes(call, (enum call_part)part);
        if (part == CALL_STATE_IN && call->operation == CALL_DECODE && bytes <= UINT64_MAX / 2)
            bytes *= 2; /* the pool is read and written */
        total = bytes > UINT64_MAX - total ? UINT64_MAX : total + bytes;
    }
    return total;
}

double workload_operations(const struct call *call)
{
    double d = call->d, e = call->e;
    double each = 4 * d * e + (call->operation == CALL_PREFILL ? 2 * CHUNK * (d + e) : 0);
    return each * (double)call->batch * (double)call->heads * (double)call->tokens;
}

/* ---- data ------------------------------------------------------------------------------------ */

static lattn_status fill_random(struct workload *workload, enum call_part part, lattn_dtype dtype,
                                double scale, uint64_t bytes)
{
    uint64_t done = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
    void *pattern = malloc((size_t)done);
    if (!pattern)
        return LATTN_ERROR_OUT_OF_MEMORY;
    struct random random = {(uint64_t)part};
    lattn_stream *stream = workload->session->stream;
    void *base = workload->memory.base[part];
    random_normal(&random, dtype, pattern, done / dtype_size(dtype), scale);
    lattn_status status = lattn_memory_upload(stream, base, 0, pattern, done);
    free(pattern);
    while (status == LATTN_OK && done < bytes) {
        uint64_t more = bytes - done < done ? bytes - done : done;
        status = lattn_memory_copy(stream, base, done, base, 0, more);
        done += more;
    }
    return status;
}

/* The same small array in each set. */
static lattn_status upload_sets(struct workload *workload, enum call_part part, const void *data)
{
    lattn_status status = LATTN_OK;
    uint64_t bytes = call_bytes(&workload->call, part);
    for (int64_t set = 0; set < workload->sets && status == LATTN_OK; set++)
        status = lattn_memory_upload(workload->session->stream, workload->memory.base[part],
                                     workload->stride[part] * (uint64_t)set, data, bytes);
    return status;
}

static lattn_status fill_slopes(struct workload *workload)
{
    int32_t heads = workload->call.heads;
    float *slopes = malloc((size_t)heads * sizeof(*slopes));
    if (!slopes)
        return LATTN_ERROR_OUT_OF_MEMORY;
    for (int32_t h = 0; h < heads; h++)
        slopes[h] = exp2f(-8.0f * (float)(h + 1) / (float)heads);
    lattn_status status = upload_sets(workload, CALL_SLOPES, slopes);
    free(slopes);
    return status;
}

/* The slots of a server that has run for a while: any order. */
static lattn_status fill_slots(struct workload *workload)
{
    int64_t rows = workload->call.batch;
    int32_t *slots = malloc((size_t)rows * sizeof(*slots));
    if (!slots)
        return LATTN_ERROR_OUT_OF_MEMORY;
    struct random random = {1};
    for (int64_t i = 0; i < rows; i++) {
        int64_t other = (int64_t)(random_bits(&random) % (uint64_t)(i + 1));
        slots[i] = slots[other];
        slots[other] = (int32_t)i;
    }
    lattn_status status = upload_sets(workload, CALL_SLOT_IDX, slots);
    free(slots);
    return status;
}

static lattn_status fill(struct workload *workload, enum call_part part)
{
    const struct call *call = &workload->call;
    uint64_t bytes = workload->stride[part] * (uint64_t)workload->sets;
    switch (part) {
    case CALL_SLOPES:
        return fill_slopes(workload);
    case CALL_SLOT_IDX:
        return fill_slots(workload);
    case CALL_STATE_IN:
        return fill_random(workload, part, call->state_dtype, 1, bytes);
    case CALL_K:
        return fill_random(workload, part, call->dtype, 1 / sqrt(call->d), bytes);
    case CALL_Q:
    case CALL_V:
        return fill_random(workload, part, call->dtype, 1, bytes);
    default: /* an output: touched, so that no call pays for a first touch */
        return lattn_memory_fill(workload->session->stream, workload->memory.base[part], 0, 0xff,
                                 bytes);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static lattn_status allocate(struct workload *workload)
{
    lattn_device *device = workload->session->device;
    struct call_memory *memory = &workload->memory;
    lattn_status status = LATTN_OK;
    for (int part = 0; part < CALL_WORKSPACE && status == LATTN_OK; part++) {
        uint64_t bytes = call_bytes(&workload->call, (enum call_part)part);
        if (bytes == 0)
            continue;
        workload->stride[part] = bytes + (ALIGNMENT - bytes % ALIGNMENT) % ALIGNMENT;
        if (workload->stride[part] < bytes)
            workload->stride[part] = UINT64_MAX; /* which no device has */
        status = lattn_memory_alloc(device, workload->stride[part] * (uint64_t)workload->sets,
                                    &memory->base[part]);
        if (status == LATTN_OK)
            status = fill(workload, (enum call_part)part);
    }
    if (status == LATTN_OK)
        status = call_workspace(workload->session->stream, &workload->call, memory,
                                &memory->workspace_bytes);
    if (status == LATTN_OK && memory->workspace_bytes > 0)
        status = lattn_memory_alloc(device, memory->workspace_bytes, &memory->base[CALL_WORKSPACE]);
    return status;
}

lattn_status workload_open(struct session *session, const struct call *call, uint64_t rotate,
                           struct workload *workload)
{
    *workload = (struct workload){.session = session, .call = *call};
    lattn_status status = call_prepare(session->stream, call);
    if (status != LATTN_OK)
        return status;
    uint64_t sets = rotate / workload_bytes(call) + 1;
    workload->sets = sets < MAX_SETS ? (int64_t)sets : MAX_SETS;
    status = allocate(workload);
    if (status != LATTN_OK)
        workload_close(workload);
    return status;
}

void workload_close(struct workload *workload)
{
    lattn_stream_synchronize(workload->session->stream);
    for (int part = 0; part < CALL_PARTS; part++)
        lattn_memory_free(workload->session->device, workload->memory.base[part]);
}

lattn_status workload_launch(void *user, uint64_t turn)
{
    const struct workload *workload = user;
    struct call_memory memory = workload->memory;
    uint64_t set = turn % (uint64_t)workload->sets;
    for (int part = 0; part < CALL_WORKSPACE; part++)
        memory.offset[part] = workload->stride[part] * set;
    return call_launch(workload->session->stream, &workload->call, &memory);
}
