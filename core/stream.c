#include "stream.h"

#include "error.h"

static lattn_status open_stream(lattn_device *device, bool adopt, void *native,
                                lattn_stream **stream)
{
    if (!stream)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "stream = NULL: must point to a handle");
    *stream = NULL;
    if (!device)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "device = NULL: must be an open device");
    const struct lattn_env *env = &device->context->env;
    const struct lattn_backend *backend = device->backend;
    lattn_stream *made = lattn_env_alloc(
        env, sizeof(*made) + backend->row_count * sizeof(made->kernels[0]), "a stream");
    if (!made)
        return LATTN_ERROR_OUT_OF_MEMORY;
    made->device = device;
    lattn_status status = backend->stream_open(device->impl, adopt, native, &made->impl);
    if (status) {
        lattn_env_free(env, made);
        return status;
    }
    *stream = made;
    return LATTN_OK;
}

lattn_status lattn_stream_create(lattn_device *device, lattn_stream **stream)
{
    return open_stream(device, false, NULL, stream);
}

lattn_status lattn_stream_adopt(lattn_device *device, void *native, lattn_stream **stream)
{
    return open_stream(device, true, native, stream);
}

void lattn_stream_destroy(lattn_stream *stream)
{
    if (!stream)
        return;
    stream->device->backend->stream_close(stream->impl);
    lattn_env_free(&stream->device->context->env, stream);
}

static lattn_status check_stream(const lattn_stream *stream)
{
    if (!stream)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "stream = NULL: must be a stream");
    return LATTN_OK;
}

lattn_status lattn_stream_synchronize(lattn_stream *stream)
{
    lattn_status status = check_stream(stream);
    return status ? status : stream->device->backend->synchronize(stream->impl);
}

static lattn_status copy(lattn_stream *stream, const struct lattn_copy *copy)
{
    lattn_status status = check_stream(stream);
    if (status || !copy->bytes)
        return status;
    if (!copy->to || !copy->from)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "%s = NULL: must be memory of %llu bytes",
                          copy->to ? "source" : "destination", (unsigned long long)copy->bytes);
    return stream->device->backend->copy(stream->impl, copy);
}

lattn_status lattn_memory_upload(lattn_stream *stream, void *base, uint64_t offset,
                                 const void *host, uint64_t bytes)
{
    return copy(stream, &(struct lattn_copy){LATTN_COPY_UPLOAD, base, offset, host, 0, bytes});
}

lattn_status lattn_memory_download(lattn_stream *stream, void *host, const void *base,
                                   uint64_t offset, uint64_t bytes)
{
    return copy(stream, &(struct lattn_copy){LATTN_COPY_DOWNLOAD, host, 0, base, offset, bytes});
}

lattn_status lattn_memory_copy(lattn_stream *stream, void *to, uint64_t to_offset, const void *from,
                               uint64_t from_offset, uint64_t bytes)
{
    return copy(stream,
                &(struct lattn_copy){LATTN_COPY_DEVICE, to, to_offset, from, from_offset, bytes});
}

lattn_status lattn_memory_fill(lattn_stream *stream, void *base, uint64_t offset, uint8_t value,
                               uint64_t bytes)
{
    lattn_status status = check_stream(stream);
    if (status || !bytes)
        return status;
    if (!base)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "base = NULL: must be memory of %llu bytes",
                          (unsigned long long)bytes);
    return stream->device->backend->fill(stream->impl, base, offset, value, bytes);
}

lattn_status lattn_stream_time_begin(lattn_stream *stream)
{
    lattn_status status = check_stream(stream);
    if (status)
        return status;
    status = stream->device->backend->time_begin(stream->impl);
    stream->timing = !status;
    return status;
}

lattn_status lattn_stream_time_end(lattn_stream *stream, double *milliseconds)
{
    lattn_status status = check_stream(stream);
    if (status)
        return status;
    if (!milliseconds)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "milliseconds = NULL: must point to a number");
    if (!stream->timing)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "stream: no measurement was begun on it");
    status = stream->device->backend->time_end(stream->impl, milliseconds);
    stream->timing = status != LATTN_OK;
    return status;
}

lattn_status lattn_stream_load(lattn_stream *stream, const struct lattn_kind *kind)
{
    const struct lattn_device *device = stream->device;
    lattn_status status = lattn_plan_check(device, kind);
    for (uint32_t i = 0; !status && i < device->backend->row_count; i++) {
        const struct lattn_kernel_row *row = &device->backend->rows[i];
        if (stream->kernels[i] || !lattn_row_serves(row, &device->caps, kind))
            continue;
        void *kernel = NULL;
        status = device->backend->load(stream->impl, row, &kernel);
        if (!status)
            stream->kernels[i] = kernel;
    }
    return status;
}

lattn_status lattn_stream_run(lattn_stream *stream, const struct lattn_request *request,
                              const struct lattn_plan *plan)
{
    const struct lattn_backend *backend = stream->device->backend;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (!stream->kernels[plan->steps[i].row])
            return lattn_fail(LATTN_ERROR_NOT_PREPARED,
                              "kernel %s is not loaded on this stream: call lattn_%s_prepare with "
                              "the same dtype, d, e and precision first",
                              backend->rows[plan->steps[i].row].entry,
                              request->kind.decode ? "decode" : "prefill");
    }
    struct lattn_args args = request->args;
    args.segment = plan->segment;
    args.segments = plan->segments;
    if (plan->segmented)
        args.flags |= plan->chained ? LATTN_FLAG_CHAINED : LATTN_FLAG_SEGMENTED;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct lattn_step *step = &plan->steps[i];
        const struct lattn_kernel_row *row = &backend->rows[step->row];
        struct lattn_launch launch = {
            .groups = step->groups,
            .threads = row->threads,
            .shared = row->shared,
            .memories = request->memories,
            .args = &args,
        };
        lattn_status status = backend->launch(stream->impl, stream->kernels[step->row], &launch);
        if (status)
            return status;
    }
    return LATTN_OK;
}
