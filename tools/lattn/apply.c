#include "apply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "input.h"
#include "options.h"
#include "report.h"
#include "safetensors.h"
#include "session.h"

static int check_paths(const struct options *options, const char *name)
{
    struct safetensors_error error;
    if (options->file_count != 1)
        return complain(EXIT_USAGE, "%s: one input file is needed, %d given", name,
                        options->file_count);
    if (!options->output)
        return complain(EXIT_USAGE, "%s: -o OUT is missing", name);
    if (!safetensors_writable(options->output, &error))
        return complain(EXIT_USAGE, "%s: %s", options->output, error.text);
    return EXIT_DONE;
}

static int run_on_device(const struct options *options, const struct input *input,
                         struct host_arrays *arrays, lattn_device_info *info)
{
    memcpy(arrays->input, input->data, sizeof(arrays->input));
    lattn_context *context;
    lattn_status status = lattn_context_create(NULL, &context);
    if (status != LATTN_OK)
        return complain_library(status, "lattn_context_create");
    int end = EXIT_DONE;
    int32_t index;
    struct session session;
    if ((status = session_find(context, options->backend, options->device, &index)) != LATTN_OK ||
        (status = session_open(context, index, &session)) != LATTN_OK) {
        complain_library(status, options->backend ? options->backend : "auto");
        end = EXIT_FAILED;
    } else {
        status = session_run(&session, &input->call, arrays);
        if (status != LATTN_OK)
            end = complain_library(status, input->path);
        *info = session.info;
        session_close(&session);
    }
    lattn_context_destroy(context);
    return end;
}

static int write_outputs(const struct options *options, const struct input *input,
                         const struct host_arrays *arrays, const lattn_device_info *info,
                         const struct apply_output *outputs, int count)
{
    struct safetensors_output tensors[APPLY_MAX_OUTPUTS];
    for (int i = 0; i < count; i++) {
        tensors[i] = (struct safetensors_output){.name = outputs[i].name,
                                                 .dtype = dtype_tag(outputs[i].dtype),
                                                 .rank = outputs[i].rank,
                                                 .data = arrays->output[outputs[i].part]};
        for (int k = 0; k < outputs[i].rank; k++)
            tensors[i].shape[k] = (uint64_t)outputs[i].shape[k];
    }
    const char *operation = call_operation_name(input->call.operation);
    const char *decay = input->call.decay == LATTN_DECAY_VLLM ? "vllm" : "recurrence";
    const struct safetensors_metadata metadata[] = {
        {"lattn", lattn_version_string()}, {"op", operation},      {"decay", decay},
        {"backend", info->backend},        {"device", info->name},
    };
    struct safetensors_error error;
    if (!safetensors_write(options->output, tensors, (size_t)count, metadata,
                           sizeof(metadata) / sizeof(*metadata), &error))
        return complain(EXIT_FAILED, "%s: %s", options->output, error.text);
    return EXIT_DONE;
}

/* What was done, in a line. */
static void tell(const struct options *options, const struct call *call,
                 const lattn_device_info *info, const struct apply_output *outputs, int count)
{
    printf("%s:%d (%s): %s of %" PRId64 " x %d heads x %" PRId64 " tokens, d %d, e %d, %s; wrote ",
           info->backend, info->ordinal, info->name, call_operation_name(call->operation),
           call->batch, call->heads, call->tokens, call->d, call->e, dtype_name(call->dtype));
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? ", " : "", outputs[i].name);
    printf(" to %s\n", options->output);
}

static int apply(const struct options *options, struct input *input, apply_outputs_fn list_outputs)
{
    struct apply_output outputs[APPLY_MAX_OUTPUTS];
    struct host_arrays arrays = {0};
    lattn_device_info info;
    int end = EXIT_DONE;
    int count = list_outputs(&input->call, outputs);
    for (int i = 0; i < count && end == EXIT_DONE; i++) {
        arrays.output[outputs[i].part] = input_output(input, outputs[i].part);
        end = arrays.output[outputs[i].part] ? EXIT_DONE : EXIT_FAILED;
    }
    if (end == EXIT_DONE)
        end = run_on_device(options, input, &arrays, &info);
    if (end == EXIT_DONE)
        end = write_outputs(options, input, &arrays, &info, outputs, count);
    if (end == EXIT_DONE)
        tell(options, &input->call, &info, outputs, count);
    for (int i = 0; i < count; i++)
        free(arrays.output[outputs[i].part]);
    return end;
}

int apply_command(int argc, char **argv, enum call_operation operation, unsigned accepted,
                  apply_outputs_fn list_outputs)
{
    const char *name = call_operation_name(operation);
    struct options options;
    int end;
    if (!options_parse(argc, argv, name, accepted, &options, &end))
        return end;
    end = check_paths(&options, name);
    if (end != EXIT_DONE)
        return end;
    struct input input;
    end = input_open(options.files[0], operation, &input);
    if (end != EXIT_DONE)
        return end;
    input.call.decay = options.decay;
    input.call.precision = options.precision;
    input.call.keep_blocks = options.block_states;
    end = apply(&options, &input, list_outputs);
    input_close(&input);
    return end;
}
