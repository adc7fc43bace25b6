/* Tiles of 16-bit elements in group memory, for operands of the matrix cores. Two shapes:
 *
 *   rows     [32 tokens][D]: as the tokens lie in memory
 *   across   [D or E][32 tokens]: transposed
 *
 * A lane reads whole granules (8 bytes for MFMA, 16 for WMMA) of one row, 16 lanes the rows of a
 * tile. A granule's place in its row is swizzled by the row, so that lanes served at once find
 * their granules in different banks. */
#ifndef LATTN_HIP_MATRIX_TILE_H
#define LATTN_HIP_MATRIX_TILE_H

#include "matrix.h"

#ifdef LATTN_MATRIX_FAMILY

enum { lattn_chunk = 32 };                                /* tokens */
enum { lattn_across_bytes = 2 * lattn_chunk };            /* of a row */
enum { lattn_line_granules = 128 / lattn_granule_bytes }; /* in 32 banks */
enum { lattn_across_granules = lattn_across_bytes / lattn_granule_bytes };

/* The byte at which a granule of D elements' rows lies. Rows are whole lines; within its line, a
 * granule's place is changed by the row's number, with its bits in such an order that the two
 * tokens of a patch, and those of its neighbours, are apart too. */
template <int D> struct lattn_rows {
    LATTN_FUNCTION int key(int row)
    {
#ifdef LATTN_MATRIX_MFMA
        return (row >> 1 & 1) | (row & 1) << 1 | (row >> 3 & 1) << 2 | (row >> 2 & 1) << 3;
#else
        return (row & 1) | (row >> 2 & 1) << 1 | (row >> 1 & 1) << 2;
#endif
    }
    LATTN_FUNCTION int at(int row, int granule)
    {
        return row * D * 2 + granule / lattn_line_granules * 128 +
               (granule % lattn_line_granules ^ key(row)) * lattn_granule_bytes;
    }
};

/* Two rows make a line. Which is first changes every 8 rows, and the half of the row every 16, so
 * that the columns of a transposed store, 8 rows apart, meet all banks too. */
struct lattn_across {
    LATTN_FUNCTION int at(int row, int granule)
    {
        const int half = (row ^ row >> 3) & 1;
        const int place = (granule ^ row / 2) % lattn_across_granules ^
                          (row >> 4 & 1) * (lattn_across_granules / 2);
        return row / 2 * 128 + half * lattn_across_bytes + place * lattn_granule_bytes;
    }
};

LATTN_FUNCTION void lattn_granule_load(lattn_u32 to[lattn_granule / 2], const LATTN_LOCAL char *at)
{
#ifdef LATTN_MATRIX_MFMA
    const lattn_u32x2 x = *(const LATTN_LOCAL lattn_u32x2 *)at;
#else
    const lattn_u32x4 x = *(const LATTN_LOCAL lattn_u32x4 *)at;
#endif
#pragma unroll
    for (int i = 0; i < lattn_granule / 2; i++)
        to[i] = x[i];
}

LATTN_FUNCTION void lattn_granule_store(LATTN_LOCAL char *at, const lattn_u32 x[lattn_granule / 2])
{
#ifdef LATTN_MATRIX_MFMA
    *(LATTN_LOCAL lattn_u32x2 *)at = (lattn_u32x2){x[0], x[1]};
#else
    *(LATTN_LOCAL lattn_u32x4 *)at = (lattn_u32x4){x[0], x[1], x[2], x[3]};
#endif
}

/* The same to device memory. */
LATTN_FUNCTION void lattn_granule_write(unsigned short *to, const lattn_u32 x[lattn_granule / 2])
{
#ifdef LATTN_MATRIX_MFMA
    *(lattn_u32x2 *)to = (lattn_u32x2){x[0], x[1]};
#else
    *(lattn_u32x4 *)to = (lattn_u32x4){x[0], x[1], x[2], x[3]};
#endif
}

/* The operand of 16 rows, from `row` on, and 16 inner elements, from 16 `step` on. */
template <typename Layout>
LATTN_FUNCTION lattn_operand lattn_operand_load(int lane, const LATTN_LOCAL char *tile, int row,
                                                int step)
{
    lattn_operand operand;
    row |= lane % 16;
#ifdef LATTN_MATRIX_GFX11
    lattn_granule_load(operand.pair, tile + Layout::at(row, 2 * step));
    lattn_granule_load(operand.pair + 4, tile + Layout::at(row, 2 * step + 1));
#else
    lattn_granule_load(operand.pair,
                       tile + Layout::at(row, (16 / lattn_granule * step) | lane / 16));
#endif
    return operand;
}

/* Stores the operand of lattn_operand_of where lattn_operand_load finds it. */
template <typename Layout>
LATTN_FUNCTION void lattn_operand_store(int lane, LATTN_LOCAL char *tile, int row, int step,
                                        const lattn_operand &operand)
{
    lattn_u32 granule[lattn_granule / 2];
    lattn_own_granule(lane, operand, granule);
    lattn_granule_store(tile + Layout::at(row | lane % 16, (16 / lattn_granule * step) | lane / 16),
                        granule);
}

/* One element, as a pair with an undefined upper half. */
template <typename Layout>
LATTN_FUNCTION lattn_u32 lattn_element(const LATTN_LOCAL char *tile, int row, int column)
{
    return *(const LATTN_LOCAL unsigned short *)(tile + Layout::at(row, column / lattn_granule) +
                                                 column % lattn_granule * 2);
}

/* ---- from memory to tiles ------------------------------------------------------------------- */

/* Two tokens by 8 dims, held in registers between memory and a tile. */
struct lattn_patch {
    lattn_u32x4 token[2];
};

/* What a thread takes of a chunk: patch `index` of `count`. Four neighbours read 64 adjacent bytes
 * of a token, and the next four those of the next two tokens. */
struct lattn_place {
    int token, dim;
};

LATTN_FUNCTION lattn_place lattn_place_of(int index)
{
    lattn_place place;
    place.dim = 8 * (index % 4 + index / (2 * lattn_chunk) * 4);
    place.token = index / 4 % (lattn_chunk / 2) * 2;
    return place;
}

/* Reads a patch; zero outside of [rows, columns]. `from` is the chunk's first element. */
LATTN_FUNCTION void lattn_patch_load(lattn_patch &patch, const unsigned short *from,
                                     lattn_i64 stride, const lattn_place &place, int rows,
                                     int columns)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        patch.token[i] = (lattn_u32x4){0, 0, 0, 0};
        if (place.token + i < rows && place.dim < columns)
            patch.token[i] = *(const lattn_u32x4 *)(from + (place.token + i) * stride + place.dim);
    }
}

template <typename Layout>
LATTN_FUNCTION void lattn_patch_store_rows(LATTN_LOCAL char *tile, const lattn_patch &patch,
                                           const lattn_place &place)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < 8 / lattn_granule; j++) {
            lattn_u32 granule[lattn_granule / 2];
#pragma unroll
            for (int n = 0; n < lattn_granule / 2; n++)
                granule[n] = patch.token[i][j * lattn_granule / 2 + n];
            lattn_granule_store(tile + Layout::at(place.token + i, place.dim / lattn_granule + j),
                                granule);
        }
    }
}

/* Transposed: pairs of tokens. */
LATTN_FUNCTION void lattn_patch_store_across(LATTN_LOCAL char *tile, const lattn_patch &patch,
                                             const lattn_place &place)
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const lattn_u32 pair = lattn_bytes(patch.token[1][i / 2], patch.token[0][i / 2],
                                           i % 2 ? 0x07060302u : 0x05040100u);
        *(LATTN_LOCAL lattn_u32 *)(tile +
                                   lattn_across::at(place.dim + i, place.token / lattn_granule) +
                                   place.token % lattn_granule * 2) = pair;
    }
}

/* Weighs each token. */
template <typename T>
LATTN_FUNCTION void lattn_patch_weigh(lattn_patch &patch, float first, float second)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float weight = i ? second : first;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const lattn_u32 pair = patch.token[i][j];
            patch.token[i][j] = T::pack(T::low(pair) * weight, T::high(pair) * weight);
        }
    }
}

#endif
#endif
