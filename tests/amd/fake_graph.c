/* Stream capture and graphs of the stand-in runtime, for programs that know HIP alone. There is one
 * graph: what was captured last. */
#include "fake_hip.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

extern const struct fake_hip fake_hip;

enum { ERROR_INVALID_VALUE = 1, ERROR_CAPTURE_INVALIDATED = 901 };

static int graph, executable;

EXPORT int hipStreamBeginCapture(void *stream, int mode)
{
    if (!stream || mode)
        return ERROR_INVALID_VALUE;
    fake_hip.capture_begin(stream);
    return 0;
}

EXPORT int hipStreamEndCapture(void *stream, void **captured)
{
    *captured = fake_hip.capture_end(stream) < 0 ? NULL : &graph;
    return *captured ? 0 : ERROR_CAPTURE_INVALIDATED;
}

EXPORT int hipGraphInstantiateWithFlags(void **made, void *from, unsigned long long flags)
{
    *made = from == &graph && !flags ? &executable : NULL;
    return *made ? 0 : ERROR_INVALID_VALUE;
}

EXPORT int hipGraphLaunch(void *launched, void *stream)
{
    if (launched != &executable || !stream)
        return ERROR_INVALID_VALUE;
    fake_hip.replay();
    return 0;
}

EXPORT int hipGraphExecDestroy(void *destroyed)
{
    return destroyed == &executable ? 0 : ERROR_INVALID_VALUE;
}

EXPORT int hipGraphDestroy(void *destroyed)
{
    return destroyed == &graph ? 0 : ERROR_INVALID_VALUE;
}

EXPORT int hipMemcpyDtoH(void *to, void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}
