#include "session.h"

#include <stdio.h>
#include <string.h>

bool backend_known(const char *name)
{
    static const char *const names[] = {"auto", "reference", "opencl", "cuda", "hip"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

lattn_status session_find(lattn_context *context, const char *backend, int64_t ordinal,
                          int32_t *index)
{
    if (ordinal < 0)
        return lattn_device_find(context, backend, 0, index);
    if (backend && strcmp(backend, "auto") != 0)
        return lattn_device_find(context, backend, (int32_t)ordinal, index);
    *index = (int32_t)ordinal;
    return LATTN_OK;
}

lattn_status session_open(lattn_context *context, int32_t index, struct session *session)
{
    *session = (struct session){.info = LATTN_DEVICE_INFO_INIT};
    lattn_status status = lattn_device_open(context, index, &session->device);
    if (status == LATTN_OK)
        status = lattn_device_info_of(session->device, &session->info);
    if (status == LATTN_OK)
        status = lattn_stream_create(session->device, &session->stream);
    if (status != LATTN_OK) {
        lattn_device_close(session->device);
        return status;
    }
    snprintf(session->label, sizeof(session->label), "%s:%d", session->info.backend,
             session->info.ordinal);
    return LATTN_OK;
}

void session_close(struct session *session)
{
    lattn_stream_destroy(session->stream);
    lattn_device_close(session->device);
}

/* On the device; and for the reference, whose memory is the machine's, on the host too. */
static uint64_t total_bytes(const struct session *session, const struct call *call,
                            const struct host_arrays *arrays)
{
    const bool shared = strcmp(session->info.backend, "reference") == 0;
    uint64_t total = 0;
    for (int part = 0; part < CALL_WORKSPACE; part++) {
        const uint64_t bytes = call_bytes(call, (enum call_part)part);
        int copies = 1;
        if (arrays && shared)
            copies += (arrays->input[part] != NULL) + (arrays->output[part] != NULL);
        for (int i = 0; i < copies; i++)
            total = bytes > UINT64_MAX - total ? UINT64_MAX : total + bytes;
    }
    return total;
}

lattn_status session_room(struct session *session, const struct call *call,
                          const struct host_arrays *arrays)
{
    const uint64_t bytes = total_bytes(session, call, arrays);
    void *base;
    if (session->info.memory == 0 || bytes <= session->info.memory)
        return LATTN_OK;
    /* The library's refusal of it all says what there is. */
    lattn_status status = lattn_memory_alloc(session->device, bytes, &base);
    lattn_memory_free(session->device, base);
    return status;
}

static bool is_output(enum call_part part)
{
    return part == CALL_O || part == CALL_STATE_OUT || part == CALL_KEPT;
}

static lattn_status place(struct session *session, const struct call *call,
                          const struct host_arrays *arrays, struct call_memory *memory)
{
    lattn_status status = LATTN_OK;
    for (int part = 0; part < CALL_WORKSPACE && status == LATTN_OK; part++) {
        uint64_t bytes = call_bytes(call, (enum call_part)part);
        if (bytes == 0)
            continue;
        status = lattn_memory_alloc(session->device, bytes, &memory->base[part]);
        if (status == LATTN_OK && is_output((enum call_part)part))
            status = lattn_memory_fill(session->stream, memory->base[part], 0, 0xff, bytes);
        else if (status == LATTN_OK)
            status = lattn_memory_upload(session->stream, memory->base[part], 0,
                                         arrays->input[part], bytes);
    }
    if (status == LATTN_OK)
        status = call_workspace(session->stream, call, memory, &memory->workspace_bytes);
    if (status == LATTN_OK && memory->workspace_bytes > 0)
        status = lattn_memory_alloc(session->device, memory->workspace_bytes,
                                    &memory->base[CALL_WORKSPACE]);
    return status;
}

static lattn_status download(struct session *session, const struct call *call,
                             const struct call_memory *memory, const struct host_arrays *arrays)
{
    lattn_status status = LATTN_OK;
    for (int part = 0; part < CALL_WORKSPACE && status == LATTN_OK; part++) {
        uint64_t bytes = call_bytes(call, (enum call_part)part);
        if (bytes > 0 && arrays->output[part])
            status = lattn_memory_download(session->stream, arrays->output[part],
                                           memory->base[part], 0, bytes);
    }
    return status;
}

lattn_status session_run(struct session *session, const struct call *call,
                         const struct host_arrays *arrays)
{
    struct call_memory memory = {0};
    lattn_status status = call_prepare(session->stream, call);
    if (status == LATTN_OK)
        status = session_room(session, call, arrays);
    if (status == LATTN_OK)
        status = place(session, call, arrays, &memory);
    if (status == LATTN_OK)
        status = call_launch(session->stream, call, &memory);
    if (status == LATTN_OK)
        status = lattn_stream_synchronize(session->stream);
    if (status == LATTN_OK)
        status = download(session, call, &memory, arrays);
    if (status != LATTN_OK)
        lattn_stream_synchronize(session->stream); /* what was put on it uses the memory */
    for (int part = 0; part < CALL_PARTS; part++)
        lattn_memory_free(session->device, memory.base[part]);
    return status;
}
