#include "oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* vLLM's prefill counts decays from the start of its blocks. */
#define VLLM_BLOCK 256

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Of the finite numbers: an infinity in an input says nothing of the size of the rest. */
static double norm(const double *a, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += isfinite(a[i]) ? a[i] * a[i] : 0;
    return sqrt(sum);
}

int64_t oracle_state_count(const struct oracle *oracle)
{
    int64_t every = oracle->every ? oracle->every : 1;
    return (oracle->tokens + every - 1) / every + 1;
}

/* S_t = g S_{t-1} + k_t v_t^T;  o_t = scale q_t S_t */
static void recurrence_token(const struct oracle *a, int64_t t, double *state)
{
    const double *q = a->q + t * a->d, *k = a->k + t * a->d, *v = a->v + t * a->e;
    double *o = a->o + t * a->e;
    double g = exp(-a->slope);
    memset(o, 0, sizeof(*o) * (size_t)a->e);
    for (int i = 0; i < a->d; i++) {
        double *row = state + (int64_t)i * a->e;
        for (int j = 0; j < a->e; j++) {
            row[j] = g * row[j] + k[i] * v[j];
            o[j] += a->scale * q[i] * row[j];
        }
    }
}

/* o_t = scale (sum_{j <= t in the block} exp(-s (t - j)) (q_t . k_j) v_j + exp(-s r) q_t P), with P
 * the state before the block and r = t's number within it. */
static void vllm_output(const struct oracle *a, int64_t t, const double *prefix)
{
    const double *q = a->q + t * a->d;
    double *o = a->o + t * a->e;
    int64_t r = t % VLLM_BLOCK;
    memset(o, 0, sizeof(*o) * (size_t)a->e);
    for (int64_t j = t - r; j <= t; j++) {
        double weight = exp(-a->slope * (double)(t - j)) * dot(q, a->k + j * a->d, a->d);
        for (int c = 0; c < a->e; c++)
            o[c] += a->scale * weight * a->v[j * a->e + c];
    }
    for (int i = 0; i < a->d; i++)
        for (int c = 0; c < a->e; c++)
            o[c] += a->scale * exp(-a->slope * (double)r) * q[i] * prefix[(int64_t)i * a->e + c];
}

void oracle_run(const struct oracle *a)
{
    int64_t cells = (int64_t)a->d * a->e;
    int64_t every = a->every ? a->every : 1;
    size_t bytes = sizeof(double) * (size_t)cells;
    double *state = calloc((size_t)cells, sizeof(double));
    double *prefix = calloc((size_t)cells, sizeof(double));
    double *kept = a->states, *kept_size = a->state_size;
    if (a->initial)
        memcpy(state, a->initial, bytes);
    double size = norm(state, cells);
    double decay = exp(-a->slope);

    for (int64_t t = 0; t < a->tokens; t++) {
        if (t % every == 0) {
            memcpy(kept, state, bytes);
            kept += cells;
            *kept_size++ = fmax(size, norm(state, cells));
        }
        if (t % VLLM_BLOCK == 0)
            memcpy(prefix, state, bytes);
        recurrence_token(a, t, state);
        size = hypot(decay * size, norm(a->k + t * a->d, a->d) * norm(a->v + t * a->e, a->e));
        if (a->vllm)
            vllm_output(a, t, prefix);
        double typical = fabs(a->scale) * norm(a->q + t * a->d, a->d) * size / sqrt(a->d);
        a->o_size[t] = fmax(typical, norm(a->o + t * a->e, a->e));
    }
    memcpy(kept, state, bytes);
    *kept_size = fmax(size, norm(state, cells));
    free(prefix);
    free(state);
}
