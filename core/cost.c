/* Times are in tokens: the time in which one group, running with all its neighbours, takes in one
 * token of its head. The kernels are bound by memory, so tokens and states are weighed by bytes. */
#include "cost.h"

#include "tiling.h"

/* Launching two more kernels, and waiting for the last groups of each. */
#define LAUNCHES_COST 128.0

/* Rounds in which `groups` groups run, when `caps` lets so many of the row run at once. */
static double rounds(const struct lattn_caps *caps, const struct lattn_kernel_row *row,
                     uint64_t groups)
{
    uint64_t units = caps->compute_units ? caps->compute_units : 1;
    uint64_t at_once = units * (row->groups_per_unit ? row->groups_per_unit : 1);
    return groups ? (double)((groups - 1) / at_once + 1) : 0;
}

/* A state's bytes over those of one token's q, k, v and o. */
static double state_tokens(const struct lattn_request *request)
{
    const struct lattn_args *args = &request->args;
    double element = request->kind.dtype == LATTN_F32 ? 4 : 2;
    return 4.0 * args->d * args->e / (2.0 * (args->d + args->e) * element);
}

/* The part of an axis that one tile covers. */
static double part(uint16_t tile, int32_t extent)
{
    return tile && tile < extent ? (double)tile / extent : 1;
}

static double walk_cost(const struct lattn_caps *caps, const struct lattn_request *request,
                        const struct lattn_choice *choice)
{
    uint64_t groups = lattn_groups_of(choice->output, request, LATTN_WHOLE_SEQUENCE);
    double sequences = request->args.sequences ? request->args.sequences : 1;
    double mean = (double)request->total / sequences + state_tokens(request);
    double all = rounds(caps, choice->output, groups) * mean;
    /* However many groups there are, the longest sequence is walked by one of them. */
    double longest = (double)request->longest + state_tokens(request);
    return all > longest ? all : longest;
}

static double segment_cost(const struct lattn_caps *caps, const struct lattn_request *request,
                           const struct lattn_choice *choice, int32_t segment)
{
    double length = request->longest < segment ? (double)request->longest : segment;
    double state = state_tokens(request);
    /* STATE reads k and v, half of a token's bytes, and writes a state. */
    double states = rounds(caps, choice->state, lattn_groups_of(choice->state, request, segment)) *
                    (0.5 * length + state);
    /* SCAN reads and writes its tile of every state of a sequence. */
    double tile =
        part(choice->scan->d_tile, request->args.d) * part(choice->scan->e_tile, request->args.e);
    double scan = rounds(caps, choice->scan, lattn_groups_of(choice->scan, request, segment)) * 2 *
                  tile * state * (double)lattn_ceil_div(request->longest, segment);
    double outputs =
        rounds(caps, choice->output, lattn_groups_of(choice->output, request, segment)) *
        (length + state);
    return states + scan + outputs + LAUNCHES_COST;
}

int32_t lattn_choose_segment(const struct lattn_caps *caps, const struct lattn_request *request,
                             const struct lattn_choice *choice)
{
    int32_t best = choice->may_walk ? LATTN_WHOLE_SEQUENCE : LATTN_BLOCK;
    if (!choice->state || (!choice->may_walk && !choice->may_lengthen))
        return best;
    double least = choice->may_walk ? walk_cost(caps, request, choice)
                                    : segment_cost(caps, request, choice, LATTN_BLOCK);
    for (int64_t segment = LATTN_BLOCK; segment < request->longest; segment *= 2) {
        double cost = segment_cost(caps, request, choice, (int32_t)segment);
        if (cost < least) {
            least = cost;
            best = (int32_t)segment;
        }
        if (!choice->may_lengthen)
            break;
    }
    return best;
}
