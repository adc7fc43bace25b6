/* Every rule on the arguments of prefill and decode, checked before anything else happens. */
#ifndef LATTN_CORE_RULES_H
#define LATTN_CORE_RULES_H

#include "request.h"

/* What a call is checked for. */
enum lattn_purpose {
    LATTN_TO_PREPARE, /* dtypes and sizes alone count */
    LATTN_TO_QUERY,   /* q, k, v, o, slopes and the workspace may still be missing */
    LATTN_TO_RUN,
};

/* Read the caller's lattn_prefill_params or lattn_decode_params, of any struct_size, and make a
 * request of them. */
lattn_status lattn_rules_prefill(const void *params, enum lattn_purpose purpose,
                                 struct lattn_request *request);
lattn_status lattn_rules_decode(const void *params, enum lattn_purpose purpose,
                                struct lattn_request *request);

#endif
