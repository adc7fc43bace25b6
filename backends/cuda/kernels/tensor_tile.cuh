/* Tiles in shared memory. Rows are cut into chunks of 16 bytes, and a chunk's place in its row is
 * swizzled by the row, so that neither eight rows of one chunk (ldmatrix), nor four rows of two
 * chunks (32-bit and 64-bit accesses), meet in a bank. */
#ifndef LATTN_TENSOR_TILE_CUH
#define LATTN_TENSOR_TILE_CUH

#include "tensor_list.h"
#include "tensor_mma.cuh"

/* The byte at which chunk `chunk` of row `row` begins, in a tile of `chunks` a row. */
template <int chunks> static __device__ __forceinline__ uint32_t lattn_tile_at(int row, int chunk)
{
    static_assert(chunks == 2 || chunks == 4 || chunks % 8 == 0, "no swizzle for this width");
    if (chunks == 2)
        chunk ^= row >> 2 & 1;
    else if (chunks == 4)
        chunk ^= row >> 1 & 3;
    else
        chunk ^= (row & 3) << 1 | (row >> 2 & 1);
    return (uint32_t)(row * chunks + chunk) * 16;
}

/* Loads the first `have_rows` x `have_columns` of a tile, and zeros for the rest of it. `from` is
 * the first element; with `fast` its rows begin at multiples of 16 bytes. */
template <typename element, int rows, int columns, bool fast>
static __device__ __forceinline__ void
lattn_tile_fill(uint32_t to, const element *from, long long stride, int have_rows, int have_columns)
{
    constexpr int width = 16 / (int)sizeof(element), chunks = columns / width;
    constexpr int per_word = 4 / (int)sizeof(element);
    static_assert(rows * chunks % LATTN_TENSOR_THREADS == 0, "uneven shares");
#pragma unroll
    for (int i = 0; i < rows * chunks / LATTN_TENSOR_THREADS; i++) {
        const int index = (int)threadIdx.x + i * LATTN_TENSOR_THREADS;
        const int row = index / chunks, chunk = index % chunks;
        const element *source = from + row * stride + chunk * width;
        int have = have_columns - chunk * width;
        have = row < have_rows && have > 0 ? min(have, width) : 0;
        if (fast) {
            lattn_copy_async(to + lattn_tile_at<chunks>(row, chunk), have ? source : from,
                             have * (int)sizeof(element));
        } else {
            uint32_t words[4] = {};
#pragma unroll
            for (int j = 0; j < width; j++) {
                if (j < have)
                    words[j / per_word] |= (uint32_t)source[j] << j % per_word * 16;
            }
            lattn_store_shared4(to + lattn_tile_at<chunks>(row, chunk),
                                make_uint4(words[0], words[1], words[2], words[3]));
        }
    }
}

/* Stores 16 bytes of a row from shared memory, of which `have` elements (at least one) are real. */
template <typename element, bool fast>
static __device__ __forceinline__ void lattn_chunk_store(element *to, uint32_t from, int have)
{
    constexpr int width = 16 / (int)sizeof(element);
    if (fast && have >= width) {
        lattn_store_global4(to, lattn_load_shared4(from));
        return;
    }
#pragma unroll 1
    for (int j = 0; j < width && j < have; j++)
        to[j] = (element)(lattn_load_shared(from + j * (int)sizeof(element) / 4 * 4) >>
                          j * (int)sizeof(element) % 4 * 8);
}

/* Zero outputs, of a padding sequence: the first `have` of `columns` in each row. */
template <int columns, typename element>
static __device__ __forceinline__ void lattn_rows_zero(element *to, long long stride,
                                                       long long rows, int have, long long thread,
                                                       int threads)
{
    for (long long i = thread; i < rows * columns; i += threads) {
        if (i % columns < have)
            to[i / columns * stride + i % columns] = 0;
    }
}

#endif
