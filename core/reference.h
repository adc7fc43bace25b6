/* The float64 reference: the recurrence of lattn.h, token by token, on host memory. Slow and right:
 * it judges the kernels, so it shares the layout of their arguments and none of their arithmetic.
 */
#ifndef LATTN_CORE_REFERENCE_H
#define LATTN_CORE_REFERENCE_H

#include "kernels/args.h"

/* All of a call; `memories` as in struct lattn_launch, `type` (LATTN_TYPE_) of q, k, v and o. */
void lattn_reference_prefill(void *const *memories, const struct lattn_args *args, int type);
void lattn_reference_decode(void *const *memories, const struct lattn_args *args, int type);

#endif
