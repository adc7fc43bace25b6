// The public headers as C++: the same structs as in C, and functions that link.
#include <lattn/lattn.h>

#include <lattn/interop.h>

#include <cstdio>
#include <cstring>

#include "header_test.h"

int main()
{
    const header_view here = HEADER_VIEW;
    if (std::memcmp(&here, &header_view_c, sizeof(here)) != 0) {
        std::puts("C and C++ disagree on the public structs");
        return 1;
    }
    lattn_context_params params = LATTN_CONTEXT_PARAMS_INIT;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    lattn_prefill_params prefill = LATTN_PREFILL_PARAMS_INIT;
    lattn_decode_params decode = LATTN_DECODE_PARAMS_INIT;
    lattn_native native = lattn_native_opencl(nullptr, nullptr);
    if (params.struct_size != sizeof(params) || info.struct_size != sizeof(info) ||
        prefill.struct_size != sizeof(prefill) || decode.struct_size != sizeof(decode) ||
        native.struct_size != sizeof(native) || prefill.tokens != 0 || decode.workspace.base) {
        std::puts("an _INIT macro does not give the size and zeros");
        return 1;
    }
    params.backends = "reference";
    lattn_context *context = nullptr;
    if (lattn_context_create(&params, &context) != LATTN_OK) {
        std::puts(lattn_error_message());
        return 1;
    }
    lattn_context_destroy(context);
    return 0;
}
