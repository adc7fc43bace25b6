/* The reader and the writer of tensor files: whole files, and files that break each rule. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "safetensors.h"

static char folder[] = "/tmp/safetensors_test.XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"file", "link", "fifo", "other"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(in_folder(names[i]));
    return rmdir(folder); /* which fails if a test has left anything else */
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A file of `data_size` bytes after a header whose length is said to be `claimed`. */
static void write_tensors(uint64_t claimed, const char *header, size_t length, size_t data_size)
{
    unsigned char *bytes = calloc(1, 8 + length + data_size);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(claimed >> (8 * i));
    memcpy(bytes + 8, header, length);
    write_file(in_folder("file"), bytes, 8 + length + data_size);
    free(bytes);
}

/* ---- what must be refused -------------------------------------------------------------------- */

#define F32_4 "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}"

struct hostile {
    const char *name;
    const char *header;
    size_t data_size;
    const char *complaint; /* part of it */
};

static const struct hostile headers[] = {
    {"empty header", "", 0, "JSON object"},
    {"blank header", "   ", 0, "JSON object"},
    {"array", "[]", 0, "JSON object"},
    {"string", "\"q\"", 0, "JSON object"},
    {"cut short", "{\"q\":{\"dtype\":\"F32\"", 16, "valid JSON"},
    {"garbage after the object", "{\"q\":" F32_4 "} x", 16, "valid JSON"},
    {"name twice", "{\"q\":" F32_4 ",\"q\":" F32_4 "}", 16, "valid JSON"},
    {"name not UTF-8", "{\"\xff\xfe\":" F32_4 "}", 16, "valid JSON"},
    {"name with a zero", "{\"a\\u0000b\":" F32_4 "}", 16, "valid JSON"},
    {"lone surrogate", "{\"\\ud800\":" F32_4 "}", 16, "valid JSON"},
    {"entry no object", "{\"q\":7}", 0, "tensor q"},
    {"entry null", "{\"q\":null}", 0, "tensor q"},
    {"no dtype", "{\"q\":{\"shape\":[4],\"data_offsets\":[0,16]}}", 16, "dtype must be a string"},
    {"no shape", "{\"q\":{\"dtype\":\"F32\",\"data_offsets\":[0,16]}}", 16, "must have"},
    {"no offsets", "{\"q\":{\"dtype\":\"F32\",\"shape\":[4]}}", 16, "must have"},
    {"one key more", "{\"q\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16],\"x\":1}}",
     16, "must have"},
    {"dtype a number", "{\"q\":{\"dtype\":4,\"shape\":[4],\"data_offsets\":[0,16]}}", 16,
     "dtype must be a string"},
    {"dtype unknown", "{\"q\":{\"dtype\":\"F33\",\"shape\":[4],\"data_offsets\":[0,16]}}", 16,
     "F33 is unknown"},
    {"shape a number", "{\"q\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,16]}}", 16,
     "shape must be an array"},
    {"negative size", "{\"q\":{\"dtype\":\"F32\",\"shape\":[-4],\"data_offsets\":[0,16]}}", 16,
     "shape[0]"},
    {"size with a fraction", "{\"q\":{\"dtype\":\"F32\",\"shape\":[4.0],\"data_offsets\":[0,16]}}",
     16, "shape[0]"},
    {"size a string", "{\"q\":{\"dtype\":\"F32\",\"shape\":[\"4\"],\"data_offsets\":[0,16]}}", 16,
     "shape[0]"},
    {"size true", "{\"q\":{\"dtype\":\"F32\",\"shape\":[true],\"data_offsets\":[0,16]}}", 16,
     "shape[0]"},
    {"size of 2^63",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808],\"data_offsets\":[0,16]}}", 16,
     "valid JSON"},
    {"size of 2^63 - 1",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807],\"data_offsets\":[0,16]}}", 16,
     "64 bits"},
    {"elements beyond 64 bits",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,16]}}", 16,
     "64 bits"},
    {"elements that wrap to the right number",
     "{\"q\":{\"dtype\":\"U8\",\"shape\":[4294967297,4294967295,3],\"data_offsets\":[0,16]}}", 16,
     "64 bits"},
    {"nine dimensions",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[4,1,1,1,1,1,1,1,1],\"data_offsets\":[0,16]}}", 16,
     "9 dimensions"},
    {"shape bigger than the span",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,16]}}", 16, "span 16"},
    {"shape smaller than the span",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,16]}}", 16, "span 16"},
    {"dtype narrower than the span",
     "{\"q\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,16]}}", 16, "span 16"},
    {"half a byte", "{\"q\":{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,0]}}", 0, "span 0"},
    {"one offset", "{\"q\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0]}}", 16,
     "two integers"},
    {"three offsets", "{\"q\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16,16]}}", 16,
     "two integers"},
    {"negative offset", "{\"q\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[-16,0]}}", 16,
     "two integers"},
    {"offsets the wrong way round",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,0]}}", 16, "do not lie"},
    {"offsets past the end", "{\"q\":" F32_4 "}", 12, "do not lie"},
    {"offsets near 2^63",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[9223372036854775791,"
     "9223372036854775807]}}",
     16, "do not lie"},
    {"hole before the first", "{\"q\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[4,16]}}",
     16, "hole"},
    {"hole between two",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"k\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
     12, "hole"},
    {"overlap",
     "{\"q\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"k\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     12, "inside"},
    {"the same bytes twice", "{\"q\":" F32_4 ",\"k\":" F32_4 "}", 16, "inside"},
    {"garbage after the data", "{\"q\":" F32_4 "}", 17, "1 bytes after"},
    {"data without a tensor", "{}", 8, "8 bytes after"},
    {"metadata a string", "{\"__metadata__\":\"x\"}", 0, "must be an object"},
    {"metadata of numbers", "{\"__metadata__\":{\"a\":1}}", 0, "__metadata__: a"},
};

static void assert_refused(const char *path, const char *name, const char *complaint)
{
    struct safetensors_file file;
    struct safetensors_error error = {""};
    if (safetensors_open(path, &file, &error)) {
        safetensors_close(&file);
        fail_msg("%s: not refused", name);
    }
    if (!strstr(error.text, complaint))
        fail_msg("%s: says \"%s\", not \"%s\"", name, error.text, complaint);
    assert_null(strchr(error.text, '\n'));
}

static void refuses_hostile_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
        const struct hostile *item = &headers[i];
        write_tensors(strlen(item->header), item->header, strlen(item->header), item->data_size);
        assert_refused(in_folder("file"), item->name, item->complaint);
    }
}

static void refuses_hostile_lengths(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {3,         100000000,      100000001,
                                       INT64_MAX, UINT64_MAX - 7, UINT64_MAX};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        write_tensors(lengths[i], "{}", 2, 0);
        assert_refused(in_folder("file"), "length", "header of");
    }
    for (size_t size = 0; size < 8; size++) {
        write_file(in_folder("file"), "\2\0\0\0\0\0\0\0", size);
        assert_refused(in_folder("file"), "short file", "8 at least");
    }
}

static void refuses_deep_nesting(void **state)
{
    (void)state;
    size_t depth = 1000000;
    char *header = malloc(depth);
    assert_non_null(header);
    memset(header, '[', depth);
    memcpy(header, "{\"q\":", 5);
    write_tensors(depth, header, depth, 0);
    free(header);
    assert_refused(in_folder("file"), "deep nesting", "valid JSON");
}

static void refuses_what_is_no_file(void **state)
{
    (void)state;
    assert_refused(folder, "folder", "not a regular file");
    assert_refused("/dev/null", "device", "not a regular file");
    assert_refused(in_folder("none"), "missing", "No such file");
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_refused(in_folder("fifo"), "FIFO", "not a regular file");
}

/* ---- what must be read ----------------------------------------------------------------------- */

static void reads_what_is_unusual_but_right(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data_size, count;
    } good[] = {
        {"{}", 0, 0},
        {"{}      ", 0, 0},
        {"{\"__metadata__\":{}}", 0, 0},
        {"{\"scalar\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}", 8, 1},
        {"{\"none\":{\"dtype\":\"F32\",\"shape\":[0,9223372036854775807],\"data_offsets\":[0,0]}}",
         0, 1},
        {"{\"none\":{\"dtype\":\"F32\",\"shape\":[4,0],\"data_offsets\":[0,0]},\"q\":" F32_4 "}",
         16, 2},
        {"{\"b\":{\"data_offsets\":[4,8],\"shape\":[1],\"dtype\":\"F32\"},"
         "\"a\":{\"data_offsets\":[0,4],\"shape\":[4],\"dtype\":\"F8_E4M3\"}}",
         8, 2},
        {"{\"\xc3\xa9 \\n\":" F32_4 "}", 16, 1},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        struct safetensors_file file;
        struct safetensors_error error = {""};
        write_tensors(strlen(good[i].header), good[i].header, strlen(good[i].header),
                      good[i].data_size);
        if (!safetensors_open(in_folder("file"), &file, &error))
            fail_msg("%s: %s", good[i].header, error.text);
        assert_int_equal(file.index.count, good[i].count);
        safetensors_close(&file);
    }
}

static void reads_back_what_it_wrote(void **state)
{
    (void)state;
    static const uint16_t halves[3] = {1, 2, 3};
    static const float floats[2] = {0.5f, -2};
    static const int64_t longs[1] = {-1};
    const struct safetensors_output tensors[] = {
        {"o", "BF16", 2, {1, 3}, halves},
        {"state", "F32", 1, {2}, floats},
        {"slot", "I64", 1, {1}, longs},
    };
    const struct safetensors_metadata metadata[] = {{"op", "prefill"}};
    struct safetensors_error error = {""};
    assert_true(safetensors_write(in_folder("file"), tensors, 3, metadata, 1, &error));
    struct safetensors_file file;
    assert_true(safetensors_open(in_folder("file"), &file, &error));
    for (size_t i = 0; i < 3; i++) {
        const struct safetensors_tensor *tensor = safetensors_find(&file.index, tensors[i].name);
        unsigned char data[16];
        assert_non_null(tensor);
        assert_string_equal(tensor->dtype, tensors[i].dtype);
        assert_int_equal(tensor->rank, tensors[i].rank);
        assert_memory_equal(tensor->shape, tensors[i].shape, 8 * (size_t)tensor->rank);
        assert_int_equal(
            (file.data_start + tensor->begin) % (safetensors_dtype_bits(tensor->dtype) / 8), 0);
        assert_true(safetensors_read(&file, tensor, data, &error));
        assert_memory_equal(data, tensors[i].data, tensor->end - tensor->begin);
    }
    safetensors_close(&file);
}

static void tells_of_a_file_that_shrinks(void **state)
{
    (void)state;
    struct safetensors_file file;
    struct safetensors_error error = {""};
    float data[4];
    write_tensors(strlen("{\"q\":" F32_4 "}"), "{\"q\":" F32_4 "}", strlen("{\"q\":" F32_4 "}"),
                  16);
    assert_true(safetensors_open(in_folder("file"), &file, &error));
    assert_int_equal(truncate(in_folder("file"), 20), 0);
    assert_false(safetensors_read(&file, &file.index.tensors[0], data, &error));
    assert_non_null(strstr(error.text, "shorter"));
    safetensors_close(&file);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool write_one(const char *path, struct safetensors_error *error)
{
    static const float data[4096];
    const struct safetensors_output tensor = {"q", "F32", 1, {4096}, data};
    return safetensors_write(path, &tensor, 1, NULL, 0, error);
}

static void keeps_the_old_file_when_it_fails(void **state)
{
    (void)state;
    struct safetensors_error error = {""};
    write_file(in_folder("file"), "precious", 8);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool good = write_one(in_folder("file"), &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(good);
    assert_non_null(strstr(error.text, "too large"));
    char bytes[16];
    int descriptor = open(in_folder("file"), O_RDONLY);
    assert_int_equal(read(descriptor, bytes, sizeof(bytes)), 8);
    close(descriptor);
    assert_memory_equal(bytes, "precious", 8);
}

static void writes_through_links(void **state)
{
    (void)state;
    struct safetensors_error error = {""};
    struct stat status;
    write_file(in_folder("other"), "old", 3);
    assert_int_equal(symlink("other", in_folder("link")), 0);
    assert_true(write_one(in_folder("link"), &error));
    assert_int_equal(lstat(in_folder("link"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat(in_folder("other"), &status), 0);
    assert_true(status.st_size > 4096 * 4);
}

static void refuses_outputs_that_are_no_files(void **state)
{
    (void)state;
    struct safetensors_error error = {""};
    static const char *const paths[] = {"/dev/null", "/", "/tmp", "", "/no/such/folder/file"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        assert_false(safetensors_writable(paths[i], &error));
        assert_false(write_one(paths[i], &error));
    }
    assert_true(safetensors_writable(in_folder("new"), &error));
}

int main(void)
{
    /* A write past the limit of a file's size is to fail, not to kill. */
    signal(SIGXFSZ, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_hostile_headers),
        cmocka_unit_test(refuses_hostile_lengths),
        cmocka_unit_test(refuses_deep_nesting),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(reads_what_is_unusual_but_right),
        cmocka_unit_test(reads_back_what_it_wrote),
        cmocka_unit_test(tells_of_a_file_that_shrinks),
        cmocka_unit_test(keeps_the_old_file_when_it_fails),
        cmocka_unit_test(writes_through_links),
        cmocka_unit_test(refuses_outputs_that_are_no_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
