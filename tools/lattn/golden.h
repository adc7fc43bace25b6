/* Files of inputs with the results that someone else got: exact_o, exact_state and exact_cache of
 * the recurrence in float64; seed_o, seed_kv and seed_cache of the kernels that lattn ports, with
 * the vllm decay in prefill. */
#ifndef LATTN_TOOLS_GOLDEN_H
#define LATTN_TOOLS_GOLDEN_H

#include "check.h"
#include "input.h"

enum golden_kind { GOLDEN_EXACT, GOLDEN_SEED, GOLDEN_KINDS };

const char *golden_kind_name(enum golden_kind kind);

/* Reads the results of that kind and sets up `call`, which is input->call to begin with, to give
 * them. `*found` tells whether the file has any. Returns an exit status, other than EXIT_DONE after
 * a complaint. `expected` is to be freed in any case. */
int golden_expect(const struct input *input, enum golden_kind kind, struct call *call,
                  struct expected *expected, bool *found);

#endif
