/* Prefill on the matrix cores, for 16-bit inputs. A group walks a segment in chunks of 32 tokens
 * with the state S, float32 and [d, e], in the accumulators of the products that build it:
 *
 *     o^T = S^T q^T diag(scale g^(t+1)) + v^T P^T      P = the masked and decayed scale q k^T
 *     S   = g^L S + (w k)^T v                          w_j = g^(L-1-j), L tokens in the chunk
 *
 * Each wave has its own columns of e. Everything is computed transposed, so that S and P, rounded,
 * are operands where they lie; of P, which all waves need, two waves make 16 tokens each and
 * hand it round through group memory. The next chunk is read from memory meanwhile. */
#ifndef LATTN_HIP_MATRIX_WALK_H
#define LATTN_HIP_MATRIX_WALK_H

#include "kernels/sequence.h"
#include "kernels/storage.h"
#include "kernels/tile.h"
#include "matrix_tile.h"

#ifdef LATTN_MATRIX_FAMILY

/* D: d, padded. E: the group's columns, in `waves` equal parts. `output`: OUTPUT, else STATE. */
template <typename T, int D, int E, int waves, bool output> struct lattn_walk {
    static constexpr int threads = waves * LATTN_WAVE;
    static constexpr int d_tiles = D / 16, e_tiles = E / waves / 16, token_tiles = lattn_chunk / 16;
    static_assert(E % (16 * waves) == 0 && waves >= token_tiles, "whole tiles for every wave");

    /* Group memory. P and its units take the place of k, once P is made. */
    static constexpr int k_across_at = 0;
    static constexpr int v_across_at = k_across_at + D * lattn_across_bytes;
    static constexpr int k_rows_at = v_across_at + E * lattn_across_bytes;
    static constexpr int q_rows_at = k_rows_at + lattn_chunk * D * 2;
    static constexpr int score_at = k_rows_at;
    static constexpr int unit_at = score_at + lattn_chunk * lattn_across_bytes;
    /* Where the first tile of scores has its rest. */
    static constexpr int rest_step = token_tiles - 1;
    static constexpr int shared_bytes = output ? q_rows_at + lattn_chunk * D * 2 : k_rows_at;

    static constexpr int d_patches = (2 * D + threads - 1) / threads; /* of a thread */
    static constexpr int e_patches = (2 * E + threads - 1) / threads;

    struct chunk {
        lattn_patch q[d_patches], k[d_patches], v[e_patches];
    };
    struct source {
        const unsigned short *q, *k, *v; /* at the segment's first token */
        lattn_i64 q_stride, k_stride, v_stride;
        int d, columns; /* of e, in the group */
    };
    typedef lattn_accumulator state_tiles[d_tiles][e_tiles];
    typedef lattn_accumulator output_tiles[e_tiles][token_tiles];

    /* ---- states in memory: float32 ---- */

    struct place {
        lattn_i64 at, d_stride, e_stride;
    };

    LATTN_FUNCTION place place_of(const lattn_state_layout &layout, lattn_i64 slot,
                                  const lattn_group &group)
    {
        const lattn_i64 at = lattn_state_at(&layout, slot, group.head);
        return {at + group.e_tile * E * layout.e, layout.d, layout.e};
    }

    /* One that lies contiguous. */
    LATTN_FUNCTION place place_of(const lattn_args &a, lattn_i64 at, const lattn_group &group)
    {
        return {at + group.e_tile * E, a.e, 1};
    }

    /* Calls f(element, its index, whether there is one) for each element. */
    template <typename F>
    LATTN_FUNCTION void each(state_tiles &state, const place &at, const source &from, F f)
    {
        const int lane = lattn_forget(lattn_thread_id()) % LATTN_WAVE;
#pragma unroll
        for (int m = 0; m < e_tiles; m++) {
            const int column = (lattn_wave() * e_tiles + m) * 16 + lane % 16;
            lattn_i64 row_at = at.at + column * at.e_stride + lattn_row(lane, 0) * at.d_stride;
#pragma unroll
            for (int n = 0; n < d_tiles; n++) {
#pragma unroll
                for (int i = 0; i < lattn_accumulator_size; i++) {
                    const bool there =
                        column < from.columns && n * 16 + lattn_row(lane, i) < from.d;
                    float x = state[n][m][i];
                    f(x, row_at + lattn_row(0, i) * at.d_stride, there);
                    state[n][m][i] = x;
                }
                row_at += 16 * at.d_stride;
            }
        }
    }

    /* Without branches, which would hold back the loads: what is not there reads the first. */
    LATTN_FUNCTION void load(state_tiles &state, const void *base, const place &at,
                             const source &from)
    {
        each(
            state, at, from, [&](float &x, lattn_i64 i, bool there) __attribute__((always_inline)) {
                const float value = ((const float *)base)[there ? i : at.at];
                /* A NaN with any bits, as one that rounding keeps. */
                x = !there ? 0.0f : value == value ? value : lattn_float_of(0x7fc00000u);
            });
    }

    LATTN_FUNCTION void store(state_tiles &state, void *base, const place &at, const source &from)
    {
        each(
            state, at, from, [&](float &x, lattn_i64 i, bool there) __attribute__((always_inline)) {
                if (there)
                    ((float *)base)[i] = x;
            });
    }

    /* ---- chunks: memory to registers to group memory ---- */

    template <int patches, int width>
    LATTN_FUNCTION void fetch_tensor(int thread, lattn_patch (&to)[patches],
                                     const unsigned short *from, lattn_i64 stride, int rows,
                                     int columns)
    {
#pragma unroll
        for (int i = 0; i < patches; i++) {
            const lattn_place place = lattn_place_of(thread + i * threads);
            lattn_patch_load(to[i], from, stride, place, rows, place.dim < width ? columns : 0);
        }
    }

    /* The chunk from token `first` on, `rows` of it. */
    LATTN_FUNCTION void fetch(chunk &to, const source &from, lattn_i64 first, int rows)
    {
        const int thread = lattn_forget(lattn_thread_id());
        if (output)
            fetch_tensor<d_patches, D>(thread, to.q, from.q + first * from.q_stride, from.q_stride,
                                       rows, from.d);
        fetch_tensor<d_patches, D>(thread, to.k, from.k + first * from.k_stride, from.k_stride,
                                   rows, from.d);
        fetch_tensor<e_patches, E>(thread, to.v, from.v + first * from.v_stride, from.v_stride,
                                   rows, from.columns);
    }

    LATTN_FUNCTION int rows_from(lattn_i64 length, lattn_i64 first)
    {
        return length - first < lattn_chunk ? (int)(length - first) : lattn_chunk;
    }

    LATTN_FUNCTION void settle(LATTN_LOCAL char *shared, chunk &of, float slope, int rows)
    {
        const int thread = lattn_forget(lattn_thread_id());
#pragma unroll
        for (int i = 0; i < d_patches; i++) {
            const lattn_place place = lattn_place_of(thread + i * threads);
            if (2 * D % threads && place.dim >= D)
                continue;
            if (output) {
                lattn_patch_store_rows<lattn_rows<D>>(shared + q_rows_at, of.q[i], place);
                lattn_patch_store_rows<lattn_rows<D>>(shared + k_rows_at, of.k[i], place);
            }
            const int left = rows - 1 - place.token;
            lattn_patch_weigh<T>(of.k[i], lattn_decay_weight(slope, left > 0 ? left : 0),
                                 lattn_decay_weight(slope, left > 1 ? left - 1 : 0));
            lattn_patch_store_across(shared + k_across_at, of.k[i], place);
        }
#pragma unroll
        for (int i = 0; i < e_patches; i++) {
            const lattn_place place = lattn_place_of(thread + i * threads);
            if (!(2 * E % threads) || place.dim < E)
                lattn_patch_store_across(shared + v_across_at, of.v[i], place);
        }
    }

    /* ---- the products ---- */

    /* A power of two that takes `largest`, the bits of a finite value >= 0, to the upper end of
     * float16's range when divided by it. */
    LATTN_FUNCTION float unit_of(lattn_u32 largest)
    {
        const lattn_u32 exponent = largest >> 23;
        return lattn_float_of(((exponent < 16 ? 16 : exponent) - 14) << 23);
    }

    LATTN_FUNCTION lattn_u32 larger(lattn_u32 largest, float x)
    {
        const lattn_u32 bits = lattn_bits_of(x) & 0x7fffffffu;
        return bits < 0x7f800000u && bits > largest ? bits : largest;
    }

    LATTN_FUNCTION float state_unit(int lane, const state_tiles &state)
    {
        if (!T::narrow)
            return 1.0f;
        lattn_u32 largest = 0;
#pragma unroll
        for (int n = 0; n < d_tiles; n++)
#pragma unroll
            for (int m = 0; m < e_tiles; m++)
#pragma unroll
                for (int i = 0; i < lattn_accumulator_size; i++)
                    largest = larger(largest, state[n][m][i]);
#pragma unroll
        for (int distance = 1; distance < LATTN_WAVE; distance *= 2) {
            const lattn_u32 other = lattn_exchange(lane, largest, distance);
            largest = other > largest ? other : largest;
        }
        return unit_of(largest);
    }

    /* P^T of the wave's 16 tokens, keys down, in units of its own for each token. A score's
     * rounding changes a token's whole row of v, and where few tokens add up, as at the start of a
     * sequence, nothing averages it away: so the first 16 tokens also have what rounding took from
     * their scores, in the place of the keys 16 to 31, which are later than they. */
    LATTN_FUNCTION float scores(int lane, lattn_operand p[token_tiles],
                                const LATTN_LOCAL char *shared, int tile, float slope, float scale)
    {
        lattn_accumulator sum[token_tiles];
#pragma unroll
        for (int j = 0; j < token_tiles; j++) {
            sum[j] = lattn_zero();
            if (j > tile)
                continue;
#pragma unroll
            for (int n = 0; n < d_tiles; n++)
                sum[j] = T::multiply(
                    lattn_operand_load<lattn_rows<D>>(lane, shared + k_rows_at, 16 * j, n),
                    lattn_operand_load<lattn_rows<D>>(lane, shared + q_rows_at, 16 * tile, n),
                    sum[j]);
        }
        lattn_u32 largest = 0;
#pragma unroll
        for (int j = 0; j < token_tiles; j++) {
#pragma unroll
            for (int i = 0; i < lattn_accumulator_size; i++) {
                const int distance = 16 * tile + lane % 16 - (16 * j + lattn_row(lane, i));
                const float weight = lattn_decay_weight(slope, distance < 0 ? 0 : distance) * scale;
                sum[j][i] = distance < 0 ? 0.0f : sum[j][i] * weight;
                largest = larger(largest, sum[j][i]);
            }
        }
        float unit = 1.0f;
        if (T::narrow) {
#pragma unroll
            for (int distance = 16; distance < LATTN_WAVE; distance *= 2) {
                const lattn_u32 other = lattn_exchange(lane, largest, distance);
                largest = other > largest ? other : largest;
            }
            unit = unit_of(largest);
        }
#pragma unroll
        for (int j = 0; j < token_tiles; j++)
            p[j] = lattn_round<T>(lane, sum[j], T::narrow ? 1.0f / unit : 1.0f);
        if (tile == 0)
            p[rest_step] = lattn_rest<T>(lane, sum[0], T::narrow ? 1.0f / unit : 1.0f);
        return unit;
    }

    LATTN_FUNCTION void share(int lane, LATTN_LOCAL char *shared,
                              const lattn_operand p[token_tiles], float unit, int tile)
    {
#pragma unroll
        for (int j = 0; j < token_tiles; j++)
            lattn_operand_store<lattn_across>(lane, shared + score_at, 16 * tile, j, p[j]);
        if (T::narrow && lane < 16)
            ((LATTN_LOCAL float *)(shared + unit_at))[16 * tile + lane] = unit;
    }

    /* o^T = S^T q^T diag(scale g^(t+1)). */
    LATTN_FUNCTION void from_state(int lane, output_tiles &o, const state_tiles &state,
                                   const LATTN_LOCAL char *shared, float slope, float scale)
    {
        const float unit = state_unit(lane, state);
        const float inverse = 1.0f / unit;
#pragma unroll
        for (int m = 0; m < e_tiles; m++)
#pragma unroll
            for (int t = 0; t < token_tiles; t++)
                o[m][t] = lattn_zero();
#pragma unroll
        for (int n = 0; n < d_tiles; n++) {
            lattn_operand a[e_tiles];
#pragma unroll
            for (int m = 0; m < e_tiles; m++)
                a[m] = lattn_round<T>(lane, state[n][m], inverse);
#pragma unroll
            for (int t = 0; t < token_tiles; t++) {
                const lattn_operand b =
                    lattn_operand_load<lattn_rows<D>>(lane, shared + q_rows_at, 16 * t, n);
#pragma unroll
                for (int m = 0; m < e_tiles; m++)
                    o[m][t] = T::multiply(a[m], b, o[m][t]);
            }
        }
#pragma unroll
        for (int t = 0; t < token_tiles; t++) {
            const float weight = lattn_decay_weight(slope, 16 * t + lane % 16 + 1) * scale * unit;
#pragma unroll
            for (int m = 0; m < e_tiles; m++)
                o[m][t] *= weight;
        }
    }

    LATTN_FUNCTION float score_unit(int lane, const LATTN_LOCAL char *shared, int tile)
    {
        return T::narrow ? ((const LATTN_LOCAL float *)(shared + unit_at))[16 * tile + lane % 16]
                         : 1.0f;
    }

    LATTN_FUNCTION lattn_operand value_operand(int lane, const LATTN_LOCAL char *shared, int m,
                                               int step)
    {
        return lattn_operand_load<lattn_across>(lane, shared + v_across_at,
                                                (lattn_wave() * e_tiles + m) * 16, step);
    }

    /* o^T += v^T P^T. */
    LATTN_FUNCTION void from_chunk(int lane, output_tiles &o, const LATTN_LOCAL char *shared)
    {
#pragma unroll
        for (int t = 0; t < token_tiles; t++) {
            const float unit = score_unit(lane, shared, t);
#pragma unroll
            for (int m = 0; m < e_tiles; m++) {
                lattn_accumulator sum = T::narrow ? lattn_zero() : o[m][t];
#pragma unroll
                for (int j = 0; j <= t; j++)
                    sum = T::multiply(
                        value_operand(lane, shared, m, j),
                        lattn_operand_load<lattn_across>(lane, shared + score_at, 16 * t, j), sum);
                if (t == 0)
                    sum = T::multiply(
                        value_operand(lane, shared, m, 0),
                        lattn_operand_load<lattn_across>(lane, shared + score_at, 0, rest_step),
                        sum);
                o[m][t] = T::narrow ? o[m][t] + sum * unit : sum;
            }
        }
    }

    /* Is some element not finite? */
    LATTN_FUNCTION bool doubt(const output_tiles &o)
    {
        float sum = 0.0f;
#pragma unroll
        for (int m = 0; m < e_tiles; m++)
#pragma unroll
            for (int t = 0; t < token_tiles; t++)
#pragma unroll
                for (int i = 0; i < lattn_accumulator_size; i++)
                    sum += o[m][t][i] * 0.0f;
        return !(sum == 0.0f);
    }

    /* Is there an element in the wave's v that is not finite? A product of matrices multiplies what
     * lies after a token by zero, which such an element survives. */
    LATTN_FUNCTION bool value_at_fault(int lane, const LATTN_LOCAL char *shared)
    {
        float sum = 0.0f;
#pragma unroll
        for (int m = 0; m < e_tiles; m++)
#pragma unroll
            for (int j = 0; j < token_tiles; j++) {
                const lattn_operand v = value_operand(lane, shared, m, j);
#pragma unroll
                for (int i = 0; i < lattn_operand_size / 2; i++)
                    sum += T::low(v.pair[i]) * 0.0f + T::high(v.pair[i]) * 0.0f;
            }
        return lattn_any(!(sum == 0.0f));
    }

    /* o^T += v^T P^T, term by term: nothing that lies after a token is touched for it. */
    LATTN_FUNCTION void from_chunk_exactly(int lane, output_tiles &o,
                                           const LATTN_LOCAL char *shared)
    {
        const int wave = lattn_wave();
#pragma unroll 1
        for (int j = 0; j < lattn_chunk; j++) {
#pragma unroll
            for (int t = 0; t < token_tiles; t++) {
                const int token = 16 * t + lane % 16;
                if (j > token)
                    continue;
                float p = T::low(lattn_element<lattn_across>(shared + score_at, token, j));
                if (t == 0)
                    p += T::low(
                        lattn_element<lattn_across>(shared + score_at, token, 16 * rest_step + j));
                p *= score_unit(lane, shared, t);
#pragma unroll
                for (int m = 0; m < e_tiles; m++)
#pragma unroll
                    for (int i = 0; i < lattn_accumulator_size; i++)
                        o[m][t][i] += p * T::low(lattn_element<lattn_across>(
                                              shared + v_across_at,
                                              (wave * e_tiles + m) * 16 + lattn_row(lane, i), j));
            }
        }
    }

    /* A lane has whole granules of e of one token. */
    LATTN_FUNCTION void write(const output_tiles &o, unsigned short *to, lattn_i64 stride, int rows,
                              int columns)
    {
        const int lane = lattn_forget(lattn_thread_id()) % LATTN_WAVE;
#pragma unroll
        for (int m = 0; m < e_tiles; m++)
#pragma unroll
            for (int t = 0; t < token_tiles; t++) {
                lattn_u32 pairs[lattn_accumulator_size / 2];
                lattn_u32 granule[lattn_granule / 2];
#pragma unroll
                for (int i = 0; i < lattn_accumulator_size / 2; i++)
                    pairs[i] = T::round_pair(o[m][t][2 * i], o[m][t][2 * i + 1]);
                lattn_own_granule(lane, lattn_operand_of(lane, pairs), granule);
                const int token = 16 * t + lane % 16;
                const int column = (lattn_wave() * e_tiles + m) * 16 + lattn_granule * (lane / 16);
                if (token < rows && column < columns)
                    lattn_granule_write(to + token * stride + column, granule);
            }
    }

    /* S = g^L S + (w k)^T v. */
    LATTN_FUNCTION void update(state_tiles &state, const LATTN_LOCAL char *shared, float decay)
    {
        const int lane = lattn_forget(lattn_thread_id()) % LATTN_WAVE;
#pragma unroll
        for (int n = 0; n < d_tiles; n++)
#pragma unroll
            for (int m = 0; m < e_tiles; m++)
                state[n][m] *= decay;
#pragma unroll
        for (int j = 0; j < token_tiles; j++) {
            lattn_operand b[e_tiles];
#pragma unroll
            for (int m = 0; m < e_tiles; m++)
                b[m] = value_operand(lane, shared, m, j);
#pragma unroll
            for (int n = 0; n < d_tiles; n++) {
                const lattn_operand a =
                    lattn_operand_load<lattn_across>(lane, shared + k_across_at, 16 * n, j);
#pragma unroll
                for (int m = 0; m < e_tiles; m++)
                    state[n][m] = T::multiply(a, b[m], state[n][m]);
            }
        }
    }

    /* o of the chunk in group memory. All waves meet twice in it. */
    LATTN_FUNCTION void outputs(output_tiles &o, const state_tiles &state, LATTN_LOCAL char *shared,
                                float slope, float scale)
    {
        const int wave = lattn_wave();
        const int lane = lattn_forget(lattn_thread_id()) % LATTN_WAVE;
        lattn_operand p[token_tiles] = {};
        float unit = 1.0f;
        if (wave < token_tiles)
            unit = scores(lane, p, shared, wave, slope, scale);
        from_state(lane, o, state, shared, slope, scale);
        /* Otherwise the compiler may hold all of q in registers to multiply after the barrier. */
#pragma unroll
        for (int m = 0; m < e_tiles; m++)
#pragma unroll
            for (int t = 0; t < token_tiles; t++)
                o[m][t] = lattn_settled(o[m][t]);
        lattn_barrier();
        if (wave < token_tiles)
            share(lane, shared, p, unit, wave);
        lattn_barrier();
        output_tiles whole;
#pragma unroll
        for (int m = 0; m < e_tiles; m++)
#pragma unroll
            for (int t = 0; t < token_tiles; t++)
                whole[m][t] = o[m][t];
        from_chunk(lane, whole, shared);
        if (lattn_any(doubt(whole)) && value_at_fault(lane, shared)) {
            from_chunk_exactly(lane, o, shared);
            return;
        }
#pragma unroll
        for (int m = 0; m < e_tiles; m++)
#pragma unroll
            for (int t = 0; t < token_tiles; t++)
                o[m][t] = whole[m][t];
    }

    static inline __attribute__((device, always_inline)) void run(LATTN_LOCAL char *shared,
                                                                  LATTN_KERNEL_PARAMS)
    {
        struct lattn_group group;
        struct lattn_segment segment;
        struct lattn_slots slots;
        const bool segmented = (a.flags & LATTN_FLAG_SEGMENTED) != 0;
        const bool keeps = output && !segmented && (a.flags & LATTN_FLAG_KEPT);

        lattn_group_get(lattn_group_id(), lattn_tiles(a.e, E), 1, 1, a.heads, &group);
        if (output)
            lattn_segment_walk(&a, cu_seqlens, group.segment, &segment);
        else
            lattn_segment_get(&a, cu_seqlens, group.segment, &segment);
        lattn_slots_get(&a, has_initial, slot_in, slot_out, segment.sequence.number, &slots);
        const lattn_i64 length = segment.length;
        if (length == 0 && (!output || segmented))
            return;
        const int e0 = group.e_tile * E;
        source from;
        from.d = a.d;
        from.columns = a.e - e0 < E ? a.e - e0 : E;
        from.q = (const unsigned short *)q +
                 lattn_token_at(&a.q, &segment.sequence, group.head / a.group, segment.first);
        from.k = (const unsigned short *)k +
                 lattn_token_at(&a.k, &segment.sequence, group.head / a.group, segment.first);
        from.v = (const unsigned short *)v +
                 lattn_token_at(&a.v, &segment.sequence, group.head, segment.first) + e0;
        from.q_stride = a.q.token;
        from.k_stride = a.k.token;
        from.v_stride = a.v.token;
        unsigned short *to = (unsigned short *)o + e0 +
                             lattn_token_at(&a.o, &segment.sequence, group.head, segment.first);
        if (slots.padding) {
            for (lattn_i64 i = lattn_thread_id(); output && i < length * from.columns; i += threads)
                to[i / from.columns * a.o.token + i % from.columns] = 0;
            return;
        }

        state_tiles state;
#pragma unroll
        for (int n = 0; n < d_tiles; n++)
#pragma unroll
            for (int m = 0; m < e_tiles; m++)
                state[n][m] = lattn_zero();
        if (output && (segmented || slots.initial))
            load(state, segmented ? work : state_in,
                 segmented ? place_of(a, lattn_work_at(&a, segment.number, group.head), group)
                           : place_of(a.in, slots.in, group),
                 from);

        const float slope = slopes[a.slopes + group.head];
        chunk next;
        fetch(next, from, 0, rows_from(length, 0));
#pragma unroll 1
        for (lattn_i64 first = 0;; first += lattn_chunk) {
            if (keeps && (first % LATTN_BLOCK == 0 || first >= length))
                store(state, kept,
                      place_of(a,
                               lattn_block_state_at(&a, &segment.sequence, group.head,
                                                    (first + LATTN_BLOCK - 1) / LATTN_BLOCK),
                               group),
                      from);
            if (first >= length)
                break;
            const int current = rows_from(length, first);
            settle(shared, next, slope, current);
            if (first + lattn_chunk < length)
                fetch(next, from, first + lattn_chunk, rows_from(length, first + lattn_chunk));
            lattn_barrier();
            if (output) {
                output_tiles out;
                outputs(out, state, shared, slope, a.scale);
                write(out, to + first * a.o.token, a.o.token, current, from.columns);
            }
            update(state, shared, lattn_decay_weight(slope, current));
            lattn_barrier();
        }

        if (!output)
            store(state, work, place_of(a, lattn_work_at(&a, segment.number, group.head), group),
                  from);
        else if (!segmented && (a.flags & LATTN_FLAG_STATE_OUT))
            store(state, state_out, place_of(a.out, slots.out, group), from);
    }
};

#endif
#endif
