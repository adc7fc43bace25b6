/* The emulated matrix instructions against plain products, by AMD's tables of registers; the
 * kernels' own handling of operands; and that no access of theirs to group memory meets a bank
 * twice. Compiled once for each family, after device.h. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/hip/kernels/matrix_tile.h"

static int failures;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: ", __LINE__);                                                         \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

/* Small whole numbers, so that sums are exact. */
static int a_of(int i, int k)
{
    return (i * 5 + k * 3) % 13 - 6;
}
static int b_of(int k, int j)
{
    return (k * 7 + j * 2) % 11 - 5;
}
static int c_of(int i, int j)
{
    return i * 16 + j;
}
static int product(int i, int j)
{
    int sum = 0;
    for (int k = 0; k < 16; k++)
        sum += a_of(i, k) * b_of(k, j);
    return sum;
}

/* Register by register, what a lane holds: the inner index of half `h` of an operand, the row of
 * register `r` of a result. */
static int inner_of(int lane, int h)
{
#if defined(LATTN_MATRIX_MFMA)
    return 4 * (lane / 16) + h;
#elif defined(LATTN_MATRIX_GFX11)
    (void)lane;
    return h;
#else
    return 4 * (lane / 16) + h % 4 + h / 4 * 8;
#endif
}
static int row_of(int lane, int r)
{
#if defined(LATTN_MATRIX_MFMA)
    return 4 * (lane / 16) + r;
#elif defined(LATTN_MATRIX_GFX11)
    return 2 * r + lane / 16;
#else
    return 8 * (lane / 16) + r;
#endif
}

template <typename T> static void instruction(void *)
{
    const int lane = lattn_thread_id();
    lattn_operand a, b;
    lattn_accumulator c;
    for (int i = 0; i < lattn_operand_size / 2; i++) {
        a.pair[i] = T::pack((float)a_of(lane % 16, inner_of(lane, 2 * i)),
                            (float)a_of(lane % 16, inner_of(lane, 2 * i + 1)));
        b.pair[i] = T::pack((float)b_of(inner_of(lane, 2 * i), lane % 16),
                            (float)b_of(inner_of(lane, 2 * i + 1), lane % 16));
    }
    for (int r = 0; r < lattn_accumulator_size; r++)
        c[r] = (float)c_of(row_of(lane, r), lane % 16);
    c = T::multiply(a, b, c);
    for (int r = 0; r < lattn_accumulator_size; r++) {
        const int row = row_of(lane, r);
        const int wanted = c_of(row, lane % 16) + product(row, lane % 16);
        CHECK(c[r] == (float)wanted, "lane %d, register %d: %g, wanted %d", lane, r, (double)c[r],
              wanted);
    }
}

/* X as an accumulator is B of a product, and A of one with its transpose; through group memory too.
 */
template <typename T> static void accumulator(void *)
{
    LATTN_LOCAL_VARIABLE lattn_u32x4 tile[32 * lattn_across_bytes / 16];
    const int lane = lattn_thread_id();
    lattn_accumulator x;
    for (int i = 0; i < lattn_accumulator_size; i++)
        x[i] = (float)b_of(lattn_row(lane, i), lane % 16);
    const lattn_operand b = lattn_round<T>(lane, x, 1.0f);
    for (int i = 0; i < lattn_accumulator_size; i++)
        x[i] = (float)a_of(lane % 16, lattn_row(lane, i));
    const lattn_operand a = lattn_round<T>(lane, x, 1.0f);

    lattn_operand_store<lattn_across>(lane, (char *)tile, 16, 1, a);
    lattn_barrier();
    const lattn_operand loaded = lattn_operand_load<lattn_across>(lane, (char *)tile, 16, 1);
    CHECK(!memcmp(&a, &loaded, sizeof(a)), "lane %d loads another operand than it stored", lane);
    for (int k = 0; k < 16; k++) {
        const float element =
            T::low(lattn_element<lattn_across>((char *)tile, 16 + lane % 16, 16 + k));
        CHECK(element == (float)a_of(lane % 16, k), "element %d, %d is %g", lane % 16, k,
              (double)element);
    }

    const lattn_accumulator sum = T::multiply(a, b, lattn_zero());
    for (int i = 0; i < lattn_accumulator_size; i++)
        CHECK(sum[i] == (float)product(lattn_row(lane, i), lane % 16), "lane %d, element %d", lane,
              i);
}

/* From memory to both shapes of tile and back. */
template <typename T> static void patches(void *)
{
    enum { D = 64 };
    LATTN_LOCAL_VARIABLE lattn_u32x4 rows[lattn_chunk * D * 2 / 16];
    LATTN_LOCAL_VARIABLE lattn_u32x4 across[D * lattn_across_bytes / 16];
    static unsigned short memory[lattn_chunk][D] __attribute__((aligned(16)));
    const int thread = lattn_thread_id(), threads = 2 * LATTN_WAVE;
    if (thread == 0)
        for (int t = 0; t < lattn_chunk; t++)
            for (int i = 0; i < D; i++)
                memory[t][i] = (unsigned short)(t * D + i + 1);
    lattn_barrier();
    for (int index = thread; index < 2 * D; index += threads) {
        lattn_patch patch;
        const lattn_place place = lattn_place_of(index);
        lattn_patch_load(patch, memory[0], D, place, 29, 56);
        lattn_patch_store_rows<lattn_rows<D>>((char *)rows, patch, place);
        lattn_patch_store_across((char *)across, patch, place);
    }
    lattn_barrier();
    for (int i = thread; i < lattn_chunk * D; i += threads) {
        const int t = i / D, d = i % D;
        const unsigned wanted = t < 29 && d < 56 ? (unsigned)(i + 1) : 0;
        CHECK(lattn_element<lattn_rows<D>>((char *)rows, t, d) == wanted, "row %d, dim %d", t, d);
        CHECK(lattn_element<lattn_across>((char *)across, d, t) == wanted, "dim %d, token %d", d,
              t);
    }
}

/* ---- banks ---------------------------------------------------------------------------------- */

/* Group memory has 32 banks of 4 bytes and serves 128 bytes at once: 32 lanes of 4 bytes, 16 of 8,
 * 8 of 16. */
static void check_banks(const char *what, const int at[LATTN_WAVE], int bytes)
{
    const int together = 128 / bytes;
    for (int first = 0; first < LATTN_WAVE; first += together) {
        int used[32] = {0};
        for (int lane = first; lane < first + together; lane++)
            for (int i = 0; i < bytes / 4; i++)
                used[at[lane] / 4 + i & 31]++;
        for (int bank = 0; bank < 32; bank++)
            CHECK(used[bank] <= 1, "%s: lanes from %d on meet bank %d %d times", what, first, bank,
                  used[bank]);
    }
}

template <typename Layout> static void check_operands(const char *what, int rows, int steps)
{
    int at[LATTN_WAVE];
    for (int row = 0; row < rows; row += 16)
        for (int granule = 0; granule < 16 / lattn_granule * steps; granule++) {
            /* gfx11 reads one granule with both half waves: the same words, which are no conflict.
             */
            const int spread = lattn_operand_size < 16;
            if (spread * (granule % (16 / lattn_granule)) != 0)
                continue;
            for (int lane = 0; lane < LATTN_WAVE; lane++)
                at[lane] = Layout::at(row | lane % 16, granule | lane / 16 * spread);
            check_banks(what, at, lattn_granule_bytes);
        }
}

template <int D> static void check_patches()
{
    int at[LATTN_WAVE];
    for (int first = 0; first < 2 * D; first += LATTN_WAVE) {
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 8 / lattn_granule; j++) {
                for (int lane = 0; lane < LATTN_WAVE; lane++) {
                    const lattn_place place = lattn_place_of(first + lane);
                    at[lane] = lattn_rows<D>::at(place.token + i, place.dim / lattn_granule + j);
                }
                check_banks("rows of a patch", at, lattn_granule_bytes);
            }
        for (int i = 0; i < 8; i++) {
            for (int lane = 0; lane < LATTN_WAVE; lane++) {
                const lattn_place place = lattn_place_of(first + lane);
                at[lane] = lattn_across::at(place.dim + i, place.token / lattn_granule) +
                           place.token % lattn_granule * 2;
            }
            check_banks("a patch transposed", at, 4);
        }
    }
}

int main()
{
    amd_group_run(LATTN_WAVE, LATTN_WAVE, 0, instruction<lattn_f16>, NULL);
    amd_group_run(LATTN_WAVE, LATTN_WAVE, 0, instruction<lattn_bf16>, NULL);
    amd_group_run(LATTN_WAVE, LATTN_WAVE, 0, accumulator<lattn_f16>, NULL);
    amd_group_run(LATTN_WAVE, LATTN_WAVE, 0, accumulator<lattn_bf16>, NULL);
    amd_group_run(2 * LATTN_WAVE, LATTN_WAVE, 0, patches<lattn_bf16>, NULL);
    check_operands<lattn_rows<64>>("an operand of rows of 64", lattn_chunk, 4);
    check_operands<lattn_rows<128>>("an operand of rows of 128", lattn_chunk, 8);
    check_operands<lattn_rows<256>>("an operand of rows of 256", lattn_chunk, 16);
    check_operands<lattn_across>("a transposed operand", 256, lattn_chunk / 16);
    check_patches<64>();
    check_patches<128>();
    check_patches<256>();
    if (failures)
        printf("%d failures\n", failures);
    return failures != 0;
}
