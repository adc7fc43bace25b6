#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "report.h"
#include "session.h"
#include "usage.h"

static const struct {
    const char *name;
    int has_value;
    unsigned bit;
} known[] = {
    {"output", required_argument, OPTION_OUTPUT},
    {"backend", required_argument, OPTION_BACKEND},
    {"device", required_argument, OPTION_DEVICE},
    {"decay", required_argument, OPTION_DECAY},
    {"precision", required_argument, OPTION_PRECISION},
    {"block-states", no_argument, OPTION_BLOCK_STATES},
    {"json", no_argument, OPTION_JSON},
    {"op", required_argument, OPTION_OPERATION},
    {"shape", required_argument, OPTION_SHAPE},
    {"dtype", required_argument, OPTION_DTYPE},
    {"sweep", no_argument, OPTION_SWEEP},
};

#define KNOWN (sizeof(known) / sizeof(*known))

/* One of two words: 0, 1, or -1 for neither. */
static int one_of(const char *value, const char *first, const char *second)
{
    if (strcmp(value, first) == 0)
        return 0;
    return strcmp(value, second) == 0 ? 1 : -1;
}

static bool parse_number(const char **text, int64_t least, int64_t *number)
{
    char *end;
    errno = 0;
    long long value = strtoll(*text, &end, 10);
    if (end == *text || errno != 0 || value < least)
        return false;
    *text = end;
    *number = value;
    return true;
}

static bool parse_shape(const char *text, int64_t shape[5])
{
    for (int i = 0; i < 5; i++) {
        if (!parse_number(&text, 1, &shape[i]) || *text != (i < 4 ? ',' : '\0'))
            return false;
        /* More than this no dimension has in the library, but for the tokens of a prefill. */
        if (shape[i] > INT32_MAX)
            return false;
        text++;
    }
    return true;
}

/* NULL, or the rule that `value` breaks. */
static const char *set(struct options *options, unsigned bit, const char *value)
{
    int choice = 0;
    switch (bit) {
    case OPTION_OUTPUT:
        options->output = value;
        return NULL;
    case OPTION_BACKEND:
        options->backend = value;
        return backend_known(value) ? NULL : "must be auto, reference, opencl, cuda or hip";
    case OPTION_DEVICE:
        if (!parse_number(&value, 0, &options->device) || *value || options->device > INT32_MAX)
            return "must be the number of a device, from 0";
        return NULL;
    case OPTION_DECAY:
        choice = one_of(value, "recurrence", "vllm");
        options->decay = choice == 1 ? LATTN_DECAY_VLLM : LATTN_DECAY_RECURRENCE;
        return choice < 0 ? "must be recurrence or vllm" : NULL;
    case OPTION_PRECISION:
        choice = one_of(value, "f32", "tf32");
        options->precision = choice == 1 ? LATTN_PRECISION_TF32 : LATTN_PRECISION_FULL;
        return choice < 0 ? "must be f32 or tf32" : NULL;
    case OPTION_BLOCK_STATES:
        options->block_states = true;
        return NULL;
    case OPTION_SWEEP:
        options->sweep = true;
        return NULL;
    case OPTION_JSON:
        options->json = true;
        return NULL;
    case OPTION_OPERATION:
        choice = one_of(value, "prefill", "decode");
        options->operation = choice == 1 ? CALL_DECODE : CALL_PREFILL;
        options->has_operation = true;
        return choice < 0 ? "must be prefill or decode" : NULL;
    case OPTION_SHAPE:
        options->has_shape = true;
        return parse_shape(value, options->shape)
                   ? NULL
                   : "must be b,h,n,d,e: five numbers from 1 to 2147483647";
    default:
        options->has_dtype = true;
        return dtype_parse(value, &options->dtype) ? NULL : "must be f32, f16 or bf16";
    }
}

static size_t accept(unsigned accepted, struct option *list)
{
    size_t count = 0;
    for (size_t i = 0; i < KNOWN; i++) {
        if (accepted & known[i].bit)
            list[count++] =
                (struct option){known[i].name, known[i].has_value, NULL, (int)(256 + i)};
    }
    list[count++] = (struct option){"help", no_argument, NULL, 'h'};
    list[count] = (struct option){0};
    return count;
}

bool options_parse(int argc, char **argv, const char *name, unsigned accepted,
                   struct options *options, int *status)
{
    struct option list[KNOWN + 2];
    accept(accepted, list);
    const char *letters = accepted & OPTION_OUTPUT ? ":ho:" : ":h";
    *options = (struct options){.device = -1};
    *status = EXIT_USAGE;
    opterr = 0;
    for (;;) {
        int at = optind; /* of the argument that a complaint is about */
        int found = getopt_long(argc, argv, letters, list, NULL);
        if (found == -1)
            break;
        if (found == 'h') {
            usage_print(name);
            *status = EXIT_DONE;
            return false;
        }
        const char *argument = at < argc ? argv[at] : "";
        if (found == ':') {
            complain(EXIT_USAGE, "%s: %s needs a value", name, argument);
            return false;
        }
        if (found == '?') {
            complain(EXIT_USAGE, "%s: %s is no option of it (see lattn %s --help)", name,
                     argv[optind - 1], name);
            return false;
        }
        size_t which = found == 'o' ? 0 : (size_t)(found - 256);
        const char *rule = set(options, known[which].bit, optarg);
        if (rule) {
            complain(EXIT_USAGE, "%s: --%s %s: %s", name, known[which].name, optarg, rule);
            return false;
        }
    }
    options->file_count = argc - optind;
    options->files = argv + optind;
    return true;
}
