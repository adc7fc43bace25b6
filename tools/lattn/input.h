/* A call read from a tensor file. */
#ifndef LATTN_TOOLS_INPUT_H
#define LATTN_TOOLS_INPUT_H

#include "call.h"
#include "report.h"
#include "safetensors.h"

struct input {
    const char *path;
    struct safetensors_file file;
    struct call call;
    void *data[CALL_PARTS]; /* the inputs of the call */
};

/* Opens and checks the file, and reads the tensors of the operation. When that is not EXIT_DONE it
 * has been said why, and there is nothing to close. */
int input_open(const char *path, enum call_operation operation, struct input *input);

/* As input_open, for a file that tells by its tensors which operation it is for. */
int input_open_any(const char *path, struct input *input);

void input_close(struct input *input);

/* An array for an output of the call, or NULL after a complaint. */
void *input_output(const struct input *input, enum call_part part);

/* One more tensor of the file, of any of the three float types: its bytes (to be freed) if there is
 * one with the given shape, and NULL in `data` if there is none of that name. */
int input_expected(const struct input *input, const char *name, int rank, const int64_t *shape,
                   lattn_dtype *dtype, void **data);

#endif
