/* What a compiler makes of the public structs. */
#ifndef LATTN_TESTS_HEADER_TEST_H
#define LATTN_TESTS_HEADER_TEST_H

struct header_view {
    size_t sizes[7];
    size_t offsets[7];
};

#define HEADER_VIEW                                                                                \
    {                                                                                              \
        {sizeof(lattn_context_params), sizeof(lattn_device_info),    sizeof(lattn_native),         \
         sizeof(lattn_state),          sizeof(lattn_prefill_params), sizeof(lattn_decode_params),  \
         sizeof(lattn_status)},                                                                    \
        {                                                                                          \
            offsetof(lattn_context_params, backends), offsetof(lattn_device_info, reason),         \
                offsetof(lattn_native, number), offsetof(lattn_state, slot_type),                  \
                offsetof(lattn_prefill_params, workspace), offsetof(lattn_decode_params, scale),   \
                offsetof(lattn_decode_params, workspace)                                           \
        }                                                                                          \
    }

#ifdef __cplusplus
extern "C"
#endif
    const struct header_view header_view_c;

#endif
