/* OpenBLAS's sgemm on this machine: what CPU kernels are measured against (docs/opencl-cpu.md).
 *
 *     openblas [n]      n x n matrices, 2048 by default
 *
 * Prints the best of several runs, with all cores that the process may use. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 9 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static float *random_matrix(int n)
{
    float *values = malloc(sizeof(*values) * (size_t)n * (size_t)n);
    for (size_t i = 0; values && i < (size_t)n * (size_t)n; i++)
        values[i] = (float)(rand() % 2001 - 1000) / 1000;
    return values;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2048;
    if (argc > 2 || n < 1 || n > 16384) {
        fprintf(stderr, "usage: %s [n], 1 to 16384\n", argv[0]);
        return 2;
    }
    float *a = random_matrix(n), *b = random_matrix(n), *c = random_matrix(n);
    if (!a || !b || !c) {
        fprintf(stderr, "out of memory for three %d x %d matrices\n", n, n);
        return 1;
    }
    double best = 0;
    for (int run = 0; run <= RUNS; run++) {
        double start = now();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
        double seconds = now() - start;
        if (run > 0 && (best == 0 || seconds < best)) /* the first one starts the threads */
            best = seconds;
    }
    printf("OpenBLAS sgemm  n %d  threads %d  %.3f ms  %.1f GFLOP/s\n", n,
           openblas_get_num_threads(), 1e3 * best, 2e-9 * n * n * (double)n / best);
    free(a);
    free(b);
    free(c);
    return 0;
}
