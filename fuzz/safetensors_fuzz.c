/* The reader of tensor files, given the bytes of one. */
#include <stdlib.h>

#include "safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What the reader promises of an index that it lets pass. */
static void hold_to_promises(const struct safetensors_index *index, uint64_t data_size)
{
    uint64_t at = 0;
    for (size_t i = 0; i < index->count; i++) {
        const struct safetensors_tensor *tensor = &index->tensors[i];
        uint64_t bits = safetensors_dtype_bits(tensor->dtype);
        for (int k = 0; k < tensor->rank; k++)
            bits *= tensor->shape[k];
        if (tensor->begin != at || tensor->end > data_size ||
            tensor->end - tensor->begin != bits / 8 ||
            safetensors_find(index, tensor->name) != tensor)
            abort();
        at = tensor->end;
    }
    if (at != data_size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct safetensors_error error = {""};
    struct safetensors_index index;
    uint64_t length;
    unsigned char prefix[SAFETENSORS_PREFIX] = {0};
    for (size_t i = 0; i < size && i < sizeof(prefix); i++)
        prefix[i] = bytes[i];
    if (!safetensors_header_length(prefix, size, &length, &error))
        return 0;
    uint64_t data_size = size - SAFETENSORS_PREFIX - length;
    if (safetensors_parse((const char *)bytes + SAFETENSORS_PREFIX, (size_t)length, data_size,
                          &index, &error)) {
        hold_to_promises(&index, data_size);
        safetensors_index_clear(&index);
    } else if (error.text[0] == '\0') {
        abort();
    }
    return 0;
}
