/* Prefill on the tensor cores. A group of four warps walks a segment in chunks of C tokens. The
 * state, transposed, lives in accumulators:
 *
 *     state^T = g^C state^T + (w v)^T k          w_j = g^(C-1-j)
 *     o       = diag(g^(t+1)) q state + S v      S = the masked and decayed q k^T
 *
 * For a segment's own state it goes from the last chunk to the first, and a second walk, for the
 * outputs, finds the first chunks in the L2.
 *
 * Each warp has its own columns of e. The layout of an accumulator is that of a B operand of the
 * transposed matrix, so the state need only be rounded, in place, to be multiplied by q. q, k and v
 * come through shared memory, several chunks ahead. */
#ifndef LATTN_TENSOR_WALK_CUH
#define LATTN_TENSOR_WALK_CUH

#include "chain.cuh"
#include "group.cuh"
#include "kernels/sequence.h"
#include "state_decay.cuh"
#include "state_io.cuh"
#include "tensor_tile.cuh"

/* P: the kind of product. D: d, padded. E: columns of a warp. C: tokens in a chunk. `fast`: rows of
 * q, k, v and o begin at multiples of 16 bytes. `output`: the OUTPUT pass, else STATE. */
template <typename P, int D, int E, int C, int stages, bool fast, bool output> struct lattn_walk {
    typedef typename P::element element;
    typedef typename P::operand_a operand_a;
    typedef typename P::operand_b operand_b;
    static constexpr int size = (int)sizeof(element), piece = 16 / size; /* elements in 16 bytes */
    static constexpr int warps = LATTN_TENSOR_THREADS / 32;
    static constexpr int width = warps * E; /* of the group */
    static constexpr int q_bytes = output ? C * D * size : 0;
    static constexpr int k_bytes = C * D * size;
    static constexpr int v_bytes = C * width * size;
    static constexpr int stage_bytes = q_bytes + k_bytes + v_bytes;
    static constexpr int score_at = stages * stage_bytes;
    static constexpr int staging_at = score_at + C * C * size;
    /* What rounding took from the 16x16 tiles on the diagonal of S. */
    static constexpr int rest_at = staging_at + C * width * size;
    static constexpr int walk_bytes = output ? rest_at + (P::split_scores ? C * 32 : 0) : score_at;
    static constexpr int state_bytes = lattn_state_io<D, width, LATTN_TENSOR_THREADS>::bytes;
    static constexpr int shared = walk_bytes > state_bytes ? walk_bytes : state_bytes;

    static constexpr int e_tiles = E / 16, d_tiles = D / 8, token_tiles = C / 16;
    typedef float state_tile[e_tiles][d_tiles][4];
    typedef float output_tile[token_tiles][2 * e_tiles][4];
    typedef typename P::values value_tile[token_tiles][e_tiles];

    static __device__ __forceinline__ int lane()
    {
        return threadIdx.x & 31;
    }
    static __device__ __forceinline__ int warp()
    {
        return threadIdx.x >> 5;
    }

    /* Calls f(value, d, e within the group's tile) for each element of the state. Where the
     * elements are is worked out anew each time, lest a hundred addresses are kept from one time to
     * the next. */
    template <typename F> static __device__ __forceinline__ void each(state_tile state, F f)
    {
        const int thread = lattn_opaque((int)threadIdx.x);
#pragma unroll
        for (int m = 0; m < e_tiles; m++) {
#pragma unroll
            for (int n = 0; n < d_tiles; n++) {
#pragma unroll
                for (int i = 0; i < 4; i++)
                    f(state[m][n][i], n * 8 + thread % 4 * 2 + i % 2,
                      thread / 32 * E + m * 16 + thread % 32 / 4 + i / 2 * 8);
            }
        }
    }

    typedef lattn_state_io<D, width, LATTN_TENSOR_THREADS> state_io;

    static __device__ __forceinline__ void load(state_tile state, const lattn_state_view &view,
                                                const void *from, uint32_t base)
    {
        const state_io io = {base, (int)threadIdx.x};
        io.load(view, from);
        lattn_copy_wait<0>();
        __syncthreads();
        each(state, [&](float &x, int d, int e) {
            x = __uint_as_float(lattn_load_shared(io.at(view, d, e)));
        });
        __syncthreads();
    }

    static __device__ __forceinline__ void store(state_tile state, const lattn_state_view &view,
                                                 void *to, uint32_t base)
    {
        const state_io io = {base, (int)threadIdx.x};
        __syncthreads();
        each(state, [&](float &x, int d, int e) {
            lattn_store_shared(io.at(view, d, e), __float_as_uint(x));
        });
        __syncthreads();
        io.store(view, to);
    }

    /* Where an element lies in a tile of `columns` a row. */
    template <int columns> static __device__ __forceinline__ uint32_t at(int row, int column)
    {
        return lattn_tile_at<columns / piece>(row, column / piece) + column % piece * size;
    }

    /* c += a b. The tensor cores round towards zero as they accumulate; where that would show, the
     * product is summed apart and added in float32. */
    static __device__ __forceinline__ void add(float c[4], const operand_a &a, const operand_b &b)
    {
        if (!P::exact_sums) {
            P::multiply(c, a, b);
            return;
        }
        float sum[4] = {};
        P::multiply(sum, a, b);
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[i] += sum[i];
    }

    /* S of the chunk: each warp computes tiles of 16x16 on or below the diagonal. */
    static __device__ __forceinline__ void scores(uint32_t base, uint32_t q, uint32_t k,
                                                  float slope, float scale)
    {
        constexpr int share = C == 64 ? 4 : 1;
        static_assert(C == 16 || C == 32 || C == 64, "tiles are shared among four warps");
        const int row = C == 64 ? warp() : C == 32 ? warp() >> 1 : 0;
#pragma unroll
        for (int i = 0; i < share; i++) {
            const int column = C == 64 ? i : C == 32 ? warp() & 1 : warp();
            if (column > row)
                continue;
            /* j - t of a thread's first element. */
            const float distance =
                lattn_opaque((float)((column - row) * 16 + lane() % 4 * 2 - lane() / 4));
            float c[2][2][4] = {};
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                operand_b b[2];
                const operand_a a = P::template load_a<D / piece>(q, row * 16, n * 16);
                P::template load_bt<D / piece>(b, k, column * 16, n * 16);
                add(c[n % 2][0], a, b[0]);
                add(c[n % 2][1], a, b[1]);
            }
#pragma unroll
            for (int n = 0; n < 2; n++) {
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int t = row * 16 + lane() / 4 + r * 8;
                    const int j = column * 16 + n * 8 + lane() % 4 * 2;
                    const float first = distance + (float)(n * 8 - r * 8), next = first + 1.0f;
                    const float low = c[0][n][r * 2] + c[1][n][r * 2];
                    const float high = c[0][n][r * 2 + 1] + c[1][n][r * 2 + 1];
                    const float w_low = lattn_exp2(first * slope) * scale;
                    const float w_high = lattn_exp2(next * slope) * scale;
                    const float x = first <= 0.0f ? low * w_low : 0.0f;
                    const float y = next <= 0.0f ? high * w_high : 0.0f;
                    P::store_pair(base + score_at + at<C>(t, j), x, y);
                    if (P::split_scores && column == row)
                        P::store_pair(base + rest_at + at<16>(t, j % 16), P::rest(x), P::rest(y));
                }
            }
        }
    }

    /* A power of two that brings the warp's largest finite state to the upper end of float16's
     * range. Rounded states are then neither infinite nor too small. */
    static __device__ __forceinline__ float state_unit(state_tile state)
    {
        uint32_t largest = 0;
        each(state, [&](float &x, int, int) {
            const uint32_t bits = __float_as_uint(x) & 0x7fffffffu;
            largest = max(largest, bits < 0x7f800000u ? bits : 0);
        });
        largest = __reduce_max_sync(0xffffffffu, largest);
        const int exponent = max((int)(largest >> 23), 27);
        return __uint_as_float((uint32_t)(exponent - 14) << 23);
    }

    /* o = diag(scale g^(t+1)) q state. */
    static __device__ __forceinline__ void from_state(output_tile o, state_tile state, uint32_t q,
                                                      float slope, float scale)
    {
        slope = lattn_opaque(slope);
        float unit = 1.0f, inverse = 1.0f;
        if (P::narrow) {
            unit = state_unit(state);
            inverse = 1.0f / unit;
        }
#pragma unroll
        for (int m = 0; m < token_tiles; m++)
#pragma unroll
            for (int n = 0; n < 2 * e_tiles; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    o[m][n][i] = 0.0f;
#pragma unroll
        for (int kk = 0; kk < D / 16; kk++) {
            operand_b b[2 * e_tiles];
#pragma unroll
            for (int n = 0; n < 2 * e_tiles; n++) {
                const float *const s = &state[n / 2][2 * kk][n % 2 * 2];
                const float *const t = &state[n / 2][2 * kk + 1][n % 2 * 2];
                b[n] = P::narrow ? P::from_sums(s[0] * inverse, s[1] * inverse, t[0] * inverse,
                                                t[1] * inverse)
                                 : P::from_sums(s[0], s[1], t[0], t[1]);
            }
#pragma unroll
            for (int m = 0; m < token_tiles; m++) {
                const operand_a a = P::template load_a<D / piece>(q, m * 16, kk * 16);
#pragma unroll
                for (int n = 0; n < 2 * e_tiles; n++)
                    add(o[m][n], a, b[n]);
            }
        }
#pragma unroll
        for (int m = 0; m < token_tiles; m++) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int t = m * 16 + lane() / 4 + r * 8;
                const float w = lattn_exp2((float)(-1 - t) * slope) * scale * unit;
#pragma unroll
                for (int n = 0; n < 2 * e_tiles; n++) {
                    o[m][n][r * 2] *= w;
                    o[m][n][r * 2 + 1] *= w;
                }
            }
        }
    }

    /* o += S v. Where few tokens add up to an output, as at the start of a sequence, the rounding
     * of S would show: there, on the diagonal, its rest is multiplied too. */
    static __device__ __forceinline__ void from_chunk(output_tile o, uint32_t base,
                                                      const value_tile v)
    {
#pragma unroll
        for (int m = 0; m < token_tiles; m++) {
#pragma unroll
            for (int j = 0; j <= m; j++) {
                const operand_a a =
                    P::template load_scores<C / piece>(base + score_at, m * 16, j * 16);
#pragma unroll
                for (int n = 0; n < 2 * e_tiles; n++)
                    P::multiply(o[m][n], a, P::values_b(v[j][n / 2], n % 2));
            }
            if (P::split_scores) {
                const operand_a a = P::template load_scores<16 / piece>(base + rest_at, m * 16, 0);
#pragma unroll
                for (int n = 0; n < 2 * e_tiles; n++)
                    P::multiply(o[m][n], a, P::values_b(v[m][n / 2], n % 2));
            }
        }
    }

    /* Zero if every element is finite, else NaN. */
    static __device__ __forceinline__ float doubt(const output_tile o)
    {
        float sum = 0.0f;
#pragma unroll
        for (int m = 0; m < token_tiles; m++)
#pragma unroll
            for (int n = 0; n < 2 * e_tiles; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    sum = fmaf(o[m][n][i], 0.0f, sum);
        return sum;
    }

    /* Was the doubt of the chunk's own making? A product of matrices multiplies what lies after a
     * token by zero, which an infinite or undefined v survives; and float16 has scores that are
     * too large for it. */
    static __device__ __noinline__ bool chunk_at_fault(uint32_t base, uint32_t v)
    {
        float sum = 0.0f;
        for (int j = 0; j < C; j++) {
            for (int n = lane(); n < E; n += 32)
                sum = fmaf(P::load_element(v + at<width>(j, warp() * E + n)), 0.0f, sum);
            for (int t = lane(); P::narrow && t < C; t += 32) {
                if (j <= t)
                    sum = fmaf(P::load_element(base + score_at + at<C>(t, j)), 0.0f, sum);
            }
        }
        return __any_sync(0xffffffffu, sum != 0.0f);
    }

    static __device__ __noinline__ float exact_score(uint32_t q, uint32_t k, int t, int j,
                                                     float slope, float scale)
    {
        float sum = 0.0f;
        for (int i = 0; i < D; i++)
            sum = fmaf(P::load_element(q + at<D>(t, i)), P::load_element(k + at<D>(j, i)), sum);
        return sum * (lattn_exp2((float)(j - t) * slope) * scale);
    }

    /* o += S v, term by term: nothing that lies after a token is touched for it. */
    static __device__ __forceinline__ void from_chunk_exactly(output_tile o, uint32_t base,
                                                              uint32_t q, uint32_t k, uint32_t v,
                                                              float slope, float scale)
    {
#pragma unroll 1
        for (int j = 0; j < C; j++) {
#pragma unroll
            for (int m = 0; m < token_tiles; m++) {
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int t = m * 16 + lane() / 4 + r * 8;
                    if (j > t)
                        continue;
                    float s = P::load_element(base + score_at + at<C>(t, j));
                    if (P::split_scores && j / 16 == t / 16)
                        s += P::load_element(base + rest_at + at<16>(t, j % 16));
                    if (P::narrow && !isfinite(s))
                        s = exact_score(q, k, t, j, slope, scale);
#pragma unroll
                    for (int n = 0; n < 2 * e_tiles; n++) {
#pragma unroll
                        for (int i = 0; i < 2; i++) {
                            const int e = warp() * E + n * 8 + lane() % 4 * 2 + i;
                            o[m][n][r * 2 + i] =
                                fmaf(s, P::load_element(v + at<width>(j, e)), o[m][n][r * 2 + i]);
                        }
                    }
                }
            }
        }
    }

    /* Through shared memory, so that rows are stored in 16-byte pieces. */
    static __device__ __forceinline__ void store(const output_tile o, uint32_t staging, element *to,
                                                 long long stride, int rows, int columns)
    {
        staging += warp() * C * E * size;
#pragma unroll
        for (int m = 0; m < token_tiles; m++)
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int n = 0; n < 2 * e_tiles; n++)
                    P::store_pair(staging +
                                      at<E>(m * 16 + r * 8 + lane() / 4, n * 8 + lane() % 4 * 2),
                                  o[m][n][r * 2], o[m][n][r * 2 + 1]);
        __syncwarp();
        constexpr int chunks = E / piece;
#pragma unroll
        for (int i = 0; i < C * chunks / 32; i++) {
            const int row = (lane() + i * 32) / chunks, chunk = lane() % chunks;
            const int column = warp() * E + chunk * piece;
            if (row < rows && column < columns)
                lattn_chunk_store<element, fast>(to + row * stride + column,
                                                 staging + lattn_tile_at<chunks>(row, chunk),
                                                 columns - column);
        }
        __syncwarp();
    }

    static __device__ __forceinline__ lattn_state_decay past_of(float slope, int tokens)
    {
        return P::type == LATTN_TYPE_F32
                   ? lattn_state_decay::of(slope, tokens)
                   : lattn_state_decay{0.0f, lattn_decay_weight(slope, tokens)};
    }

    /* state = g^length state + (w v)^T k; of a segment's own state, state += g^after (w v)^T k, and
     * `past.factor` is the power. With float32, too, the chunk's part is summed apart: the tensor
     * cores round towards zero as they accumulate, which would add up over a long walk. */
    static __device__ __forceinline__ void update(state_tile state, const value_tile v, uint32_t k,
                                                  float slope, const lattn_state_decay &past,
                                                  int length)
    {
        constexpr bool apart = !output || P::type == LATTN_TYPE_F32;
        slope = lattn_opaque(slope);
        operand_a a[token_tiles][e_tiles];
#pragma unroll
        for (int j = 0; j < token_tiles; j++) {
            float w[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                w[i] = lattn_exp2(-(float)max(length - 1 - j * 16 - P::weight_token(i), 0) * slope);
#pragma unroll
            for (int m = 0; m < e_tiles; m++)
                a[j][m] = P::values_a(v[j][m], w);
        }
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            float sum[e_tiles][8];
#pragma unroll
            for (int m = 0; m < e_tiles; m++)
#pragma unroll
                for (int i = 0; i < 8; i++)
                    sum[m][i] = apart ? 0.0f : state[m][2 * n + i / 4][i % 4] * past.factor;
#pragma unroll
            for (int j = 0; j < token_tiles; j++) {
                operand_b b[2];
                P::template load_b<D / piece>(b, k, j * 16, n * 16);
#pragma unroll
                for (int m = 0; m < e_tiles; m++) {
                    P::multiply(sum[m], a[j][m], b[0]);
                    P::multiply(sum[m] + 4, a[j][m], b[1]);
                }
            }
#pragma unroll
            for (int m = 0; m < e_tiles; m++)
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    float &x = state[m][2 * n + i / 4][i % 4];
                    x = !output ? fmaf(past.factor, sum[m][i], x)
                        : apart ? past.step(x, sum[m][i])
                                : sum[m][i];
                }
        }
    }

    /* Where a segment's rows begin. */
    struct rows {
        const element *q, *k, *v;
        element *o;
        long long count;
        int columns;
        float slope;
    };

    static __device__ __forceinline__ void walk(state_tile state, uint32_t base, const rows &x,
                                                const struct lattn_args &a)
    {
        const int chunks = (int)((x.count + C - 1) / C);
        auto fill = [&](int step) {
            if (step < chunks) {
                const long long first = (long long)(output ? step : chunks - 1 - step) * C;
                const int have = (int)min((long long)C, x.count - first);
                const uint32_t to = base + step % stages * stage_bytes;
                lattn_tile_fill<element, C, D, fast>(to + q_bytes, x.k + first * a.k.token,
                                                     a.k.token, have, a.d);
                if (output)
                    lattn_tile_fill<element, C, D, fast>(to, x.q + first * a.q.token, a.q.token,
                                                         have, a.d);
                lattn_tile_fill<element, C, width, fast>(
                    to + q_bytes + k_bytes, x.v + first * a.v.token, a.v.token, have, x.columns);
            }
            lattn_copy_commit();
        };
        const lattn_state_decay whole = past_of(x.slope, C);
        const float slope = lattn_slope2(x.slope);
        /* Not unrolled: this runs once, and fetching its code would take longer. */
#pragma unroll 1
        for (int i = 0; i < stages - 1; i++)
            fill(i);
#pragma unroll 1
        for (int step = 0; step < chunks; step++) {
            lattn_copy_wait<stages - 2>();
            __syncthreads();
            fill(step + stages - 1);

            const uint32_t q_tile = base + step % stages * stage_bytes;
            const uint32_t k_tile = q_tile + q_bytes, v_tile = k_tile + k_bytes;
            const long long first = (long long)(output ? step : chunks - 1 - step) * C;
            const int length = (int)min((long long)C, x.count - first);
            output_tile out;
            if (output) {
                scores(base, q_tile, k_tile, slope, a.scale);
                from_state(out, state, q_tile, slope, a.scale);
                __syncthreads();
            }
            value_tile values;
#pragma unroll
            for (int j = 0; j < token_tiles; j++)
#pragma unroll
                for (int m = 0; m < e_tiles; m++)
                    values[j][m] =
                        P::template load_values<width / piece>(v_tile, j * 16, warp() * E + m * 16);
            if (output) {
                from_chunk(out, base, values);
                if (__any_sync(0xffffffffu, doubt(out) != 0.0f) && chunk_at_fault(base, v_tile)) {
                    from_state(out, state, q_tile, slope, a.scale);
                    from_chunk_exactly(out, base, q_tile, k_tile, v_tile, slope, a.scale);
                }
                store(out, base + staging_at, x.o + first * a.o.token, a.o.token, length,
                      x.columns);
            }
            const lattn_state_decay past =
                !output       ? lattn_state_decay{1.0f, lattn_decay_weight(
                                                            x.slope, (int)(x.count - first) - length)}
                : length == C ? whole
                              : past_of(x.slope, length);
            update(state, values, k_tile, slope, past, length);
        }
        lattn_copy_wait<0>();
        __syncthreads();
    }

    /* ---- a segment ---- */

    struct group_barrier {
        static __device__ __forceinline__ void wait()
        {
            __syncthreads();
        }
    };
    static constexpr int floats = e_tiles * d_tiles * 4;
    typedef lattn_chain<floats, LATTN_TENSOR_THREADS, group_barrier> chain;
    static_assert(chain::shared_bytes <= state_bytes, "states pass through where chunks were");
    /* Walks for the own states of a chain's segments: no q, and its room for more stages. */
    static constexpr int own_stages =
        walk_bytes / (k_bytes + v_bytes) < 5 ? walk_bytes / (k_bytes + v_bytes) : 5;
    typedef lattn_walk<P, D, E, C, own_stages, fast, false> own_walk;

    /* Finds the state before a segment of a chain, and leaves it in shared memory as threads hold
     * it. (A function of its own, lest its registers and the walk's get into each other's way.) */
    static __device__ __noinline__ void find_prefix(chain &link, bool initial, uint32_t base,
                                                    const rows &x, const struct lattn_args &a)
    {
        state_tile state;
        float(&flat)[floats] = *(float(*)[floats])state;
        each(state, [&](float &s, int, int) { s = 0.0f; });
#pragma unroll 1
        for (int step = link.last() ? chain::IN_ROW : chain::OWN; step < chain::STEPS; step++) {
            if (step != chain::OWN)
                link.wait_begun();
            link.add(step, initial, flat, x.slope, base);
            if (step == chain::OWN) {
                const typename own_walk::rows own = {x.q,     x.k,       x.v,    x.o,
                                                     x.count, x.columns, x.slope};
                own_walk::walk(state, base, own, a);
            } else if (step == chain::ROW) {
                link.publish(flat);
                each(state, [&](float &s, int, int) { s = 0.0f; });
            }
        }
        link.put(flat, base);
    }

    static __device__ __forceinline__ void
    serve(const void *q, const void *k, const void *v, void *o, const float *slopes,
          const int *cu_seqlens, const unsigned char *has_initial, const void *state_in,
          const void *slot_in, void *state_out, const void *slot_out, float *work, chain &link,
          uint32_t base, const struct lattn_args &a)
    {
        const bool chained = output && (a.flags & LATTN_FLAG_CHAINED);
        const bool segmented = !output || (a.flags & LATTN_FLAG_SEGMENTED);
        struct lattn_group group;
        struct lattn_segment segment;
        struct lattn_slots slots;
        lattn_group_here(a, width, &group);
        if (output)
            lattn_segment_walk(&a, cu_seqlens, group.segment, &segment);
        else
            lattn_segment_get(&a, cu_seqlens, group.segment, &segment);
        /* A chain passes on the state of an empty sequence, too. */
        if ((segmented || (chained && segment.first != 0)) && segment.length == 0)
            return;
        lattn_slots_get(&a, has_initial, slot_in, slot_out, segment.sequence.number, &slots);
        const int head = group.head, first_e = group.e_tile * width;
        const rows x = {
            (const element *)q +
                lattn_token_at(&a.q, &segment.sequence, head / a.group, segment.first),
            (const element *)k +
                lattn_token_at(&a.k, &segment.sequence, head / a.group, segment.first),
            (const element *)v + lattn_token_at(&a.v, &segment.sequence, head, segment.first) +
                first_e,
            (element *)o + lattn_token_at(&a.o, &segment.sequence, head, segment.first) + first_e,
            segment.length,
            a.e - first_e,
            slopes[a.slopes + head],
        };
        if (slots.padding) {
            if (output)
                lattn_rows_zero<width>(x.o, a.o.token, segment.length, x.columns, threadIdx.x,
                                       LATTN_TENSOR_THREADS);
            return;
        }

        state_tile state;
        each(state, [&](float &s, int, int) { s = 0.0f; });
        const bool last = segment.first + segment.length == segment.sequence.length;
        if (output && (segmented || (slots.initial && (!chained || segment.first == 0)))) {
            const void *const from = segmented ? work : state_in;
            const lattn_state_view view =
                segmented ? lattn_state_view(a, segment.number, head, first_e, from)
                          : lattn_state_view(a, a.in, slots.in, head, first_e, from);
            load(state, view, from, base);
        }
        if (chained && (segment.first > 0 || !last)) {
            float(&flat)[floats] = *(float(*)[floats])state;
            link.enter((int)(segment.first / a.segment),
                       (int)lattn_segment_count(&a, &segment.sequence));
            if (segment.first == 0 && slots.initial)
                link.keep_initial(flat);
            find_prefix(link, slots.initial, base, x, a);
            link.get(flat, base);
        }
        walk(state, base, x, a);
        if (!output) {
            store(state, lattn_state_view(a, segment.number, head, first_e, work), work, base);
        } else if (!segmented && last && (a.flags & LATTN_FLAG_STATE_OUT)) {
            store(state, lattn_state_view(a, a.out, slots.out, head, first_e, state_out), state_out,
                  base);
        }
    }

    static __device__ __forceinline__ void run(const void *q, const void *k, const void *v, void *o,
                                               const float *slopes, const int *cu_seqlens,
                                               const unsigned char *has_initial,
                                               const void *state_in, const void *slot_in,
                                               void *state_out, const void *slot_out, float *work,
                                               const struct lattn_args &a)
    {
        extern __shared__ __align__(128) unsigned char memory[];
        const bool chained = output && (a.flags & LATTN_FLAG_CHAINED);
        chain link(work, a, width, (int)threadIdx.x);
        if (chained)
            link.begin();
        serve(q, k, v, o, slopes, cu_seqlens, has_initial, state_in, slot_in, state_out, slot_out,
              work, link, lattn_shared_at(memory), a);
        if (chained)
            link.end();
    }
};

#endif
