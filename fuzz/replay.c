/* Runs a fuzz target without a fuzzer: replay ROUNDS FILE... takes each file as it is, and then
 * ROUNDS times with a few bytes changed, the same ones at every run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static uint64_t state = 1;

static size_t pick(size_t count)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % count;
}

/* Swaps bytes for others that a header is made of, shifts some, and now and then cuts. Returns the
 * new size. */
static size_t change(uint8_t *bytes, size_t size)
{
    static const char alphabet[] = "{}[]\",:0123456789eE+-.\\u \xff";
    for (size_t turns = pick(4) + 1; turns > 0 && size > 0; turns--) {
        size_t at = pick(size), from = pick(size);
        size_t length = pick(size - (at > from ? at : from) + 1);
        switch (pick(4)) {
        case 0:
            bytes[at] = (uint8_t)pick(256);
            break;
        case 1:
            memmove(bytes + at, bytes + from, length);
            break;
        default:
            bytes[at] = (uint8_t)alphabet[pick(sizeof(alphabet) - 1)];
        }
        if (pick(32) == 0)
            size = at;
    }
    return size;
}

/* Exactly as large as the input, so that a sanitizer sees a byte too far. */
static int run_exact(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return 1;
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 0;
}

static int replay(const char *path, long rounds)
{
    static uint8_t original[1 << 16], bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t size = fread(original, 1, sizeof(original), file);
    fclose(file);
    int failed = run_exact(original, size);
    for (long i = 0; i < rounds && !failed; i++) {
        memcpy(bytes, original, size);
        failed = run_exact(bytes, change(bytes, size));
    }
    return failed;
}

int main(int argc, char **argv)
{
    long rounds = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
    int failed = argc <= 2;
    for (int i = 2; i < argc && !failed; i++)
        failed = replay(argv[i], rounds);
    return failed;
}
