/* Times are in tokens: the time in which one compute unit, all being busy, moves q, k, v and o of
 * one token of a head. The kernels are bound by memory, so tokens and states are weighed by bytes.
 */
#include "cost.h"

#include <math.h>

#include "tiling.h"

/* Launching two more kernels, and waiting for the last groups of each. */
#define LAUNCHES_COST 128.0
/* Groups of a chain waiting for each other. */
#define WAIT_COST 32.0
/* What a group that is missing on a unit costs, over what it would cost. */
#define ALONE_COST 0.4

/* The part of an axis that one tile covers. */
static double part(uint16_t tile, int32_t extent)
{
    return tile && tile < extent ? (double)tile / extent : 1;
}

/* The time that the row's `groups` groups take for one token each; infinite for more of them than a
 * launch can have. */
static double token_time(const struct lattn_caps *caps, const struct lattn_request *request,
                         const struct lattn_kernel_row *row, uint64_t groups)
{
    if (groups > caps->max_groups)
        return (double)INFINITY;
    uint64_t units = caps->compute_units ? caps->compute_units : 1;
    double pace = row->pace ? row->pace / 100.0 : 1;
    double each = groups ? (double)((groups - 1) / units + 1) : 0;
    /* A unit that runs fewer groups than it could waits more. */
    if (row->pace && groups && each < row->groups_per_unit)
        each += ALONE_COST * (row->groups_per_unit - each);
    /* Rows with a pace are made for their largest d, and pad what is smaller. */
    double padding = row->pace ? (double)row->d_max / request->args.d : 1;
    return each * pace * padding * part(row->e_tile, request->args.e) *
           part(row->d_tile, request->args.d);
}

/* A state's bytes over those of one token's q, k, v and o. */
static double state_tokens(const struct lattn_request *request)
{
    const struct lattn_args *args = &request->args;
    double element = request->kind.dtype == LATTN_F32 ? 4 : 2;
    return 4.0 * args->d * args->e / (2.0 * (args->d + args->e) * element);
}

static double walk_cost(const struct lattn_caps *caps, const struct lattn_request *request,
                        const struct lattn_choice *choice)
{
    uint64_t groups = lattn_groups_of(choice->output, request, LATTN_WHOLE_SEQUENCE);
    double sequences = request->args.sequences ? request->args.sequences : 1;
    double mean = (double)request->total / sequences + state_tokens(request);
    double all = token_time(caps, request, choice->output, groups) * mean;
    /* However many groups there are, the longest sequence is walked by one of them. */
    double longest = token_time(caps, request, choice->output, 1) *
                     ((double)request->longest + state_tokens(request));
    return all > longest ? all : longest;
}

static double chain_cost(const struct lattn_caps *caps, const struct lattn_request *request,
                         const struct lattn_choice *choice, int32_t segment)
{
    double length = request->longest < segment ? (double)request->longest : segment;
    double state = state_tokens(request);
    /* A group reads k and v twice, and writes and reads states; those of others, by rows and in
     * rows of the square root of their number, from a cache. */
    double others = sqrt((double)lattn_ceil_div(request->longest, segment));
    return token_time(caps, request, choice->output,
                      lattn_groups_of(choice->output, request, segment)) *
               (1.5 * length + (2 + others) * state) +
           WAIT_COST;
}

static double segment_cost(const struct lattn_caps *caps, const struct lattn_request *request,
                           const struct lattn_choice *choice, int32_t segment)
{
    if (choice->may_chain)
        return chain_cost(caps, request, choice, segment);
    double length = request->longest < segment ? (double)request->longest : segment;
    double state = state_tokens(request);
    /* STATE reads k and v, half of a token's bytes, and writes a state. */
    double states =
        token_time(caps, request, choice->state, lattn_groups_of(choice->state, request, segment)) *
        (0.5 * length + state);
    /* SCAN reads and writes its tile of every state of a sequence. */
    double scan =
        token_time(caps, request, choice->scan, lattn_groups_of(choice->scan, request, segment)) *
        2 * state * (double)lattn_ceil_div(request->longest, segment);
    double outputs = token_time(caps, request, choice->output,
                                lattn_groups_of(choice->output, request, segment)) *
                     (length + state);
    return states + scan + outputs + LAUNCHES_COST;
}

int32_t lattn_choose_segment(const struct lattn_caps *caps, const struct lattn_request *request,
                             const struct lattn_choice *choice, double *cost)
{
    int32_t best = choice->may_walk ? LATTN_WHOLE_SEQUENCE : LATTN_BLOCK;
    *cost = choice->may_walk ? walk_cost(caps, request, choice)
                             : segment_cost(caps, request, choice, LATTN_BLOCK);
    if ((!choice->state && !choice->may_chain) || (!choice->may_walk && !choice->may_lengthen))
        return best;
    for (int64_t segment = LATTN_BLOCK; segment < request->longest; segment *= 2) {
        double least = segment_cost(caps, request, choice, (int32_t)segment);
        if (least < *cost) {
            *cost = least;
            best = (int32_t)segment;
        }
        if (!choice->may_lengthen)
            break;
    }
    return best;
}
