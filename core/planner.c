#include "planner.h"

#include <stdio.h>

#include "cost.h"
#include "error.h"
#include "tiling.h"

/* A call of this cost (cost.h) keeps the device busy for some fractions of a millisecond, and the
 * host is far ahead of it. */
#define LONG_COST 8192.0

static const char *const pass_names[LATTN_PASS_COUNT] = {
    [LATTN_PASS_STATE] = "state",
    [LATTN_PASS_SCAN] = "scan",
    [LATTN_PASS_OUTPUT] = "output",
    [LATTN_PASS_DECODE] = "decode",
};

static const char *const dtype_names[] = {
    [LATTN_F32] = "float32",
    [LATTN_F16] = "float16",
    [LATTN_BF16] = "bfloat16",
};

static bool size_fits(int32_t size, uint16_t least, uint16_t most, uint16_t step)
{
    return size >= least && size <= most && (!step || size % step == 0);
}

/* Is the row meant for such calls, on whatever device? */
static bool row_matches(const struct lattn_kernel_row *row, const struct lattn_kind *kind)
{
    return (row->pass == LATTN_PASS_DECODE) == kind->decode && (row->types >> kind->dtype & 1) &&
           size_fits(kind->d, row->d_min, row->d_max, row->d_step) &&
           size_fits(kind->e, row->e_min, row->e_max, row->e_step) &&
           (!(row->needs & LATTN_NEEDS_TF32_ALLOWED) || kind->dtype != LATTN_F32 ||
            kind->precision == LATTN_PRECISION_TF32);
}

static bool device_can(const struct lattn_kernel_row *row, const struct lattn_caps *caps)
{
    return !(row->features & ~caps->features) && row->threads <= caps->max_threads &&
           row->shared_total <= caps->max_shared;
}

bool lattn_row_serves(const struct lattn_kernel_row *row, const struct lattn_caps *caps,
                      const struct lattn_kind *kind)
{
    return row_matches(row, kind) && device_can(row, caps);
}

/* The first row of a pass, from `first` on, that serves a call offering `offers`. */
static uint32_t find_row(const struct lattn_device *device, const struct lattn_kind *kind,
                         enum lattn_pass pass, uint32_t offers, uint32_t first)
{
    uint32_t i = first;
    for (; i < device->backend->row_count; i++) {
        const struct lattn_kernel_row *row = &device->backend->rows[i];
        if (row->pass == pass && !(row->needs & ~offers) &&
            lattn_row_serves(row, &device->caps, kind))
            break;
    }
    return i;
}

/* Says why no row of the pass will do: nothing is written for such calls, or what the least
 * demanding row that is asks of the device. */
static lattn_status explain(const struct lattn_device *device, const struct lattn_kind *kind,
                            enum lattn_pass pass)
{
    const struct lattn_kernel_row *close = NULL;
    for (uint32_t i = 0; i < device->backend->row_count; i++) {
        const struct lattn_kernel_row *row = &device->backend->rows[i];
        if (row->pass == pass && row_matches(row, kind) &&
            !(row->features & ~device->caps.features) &&
            (!close || row->shared_total + row->threads < close->shared_total + close->threads))
            close = row;
    }
    char limits[160] = "";
    if (close && !device_can(close, &device->caps))
        snprintf(limits, sizeof(limits),
                 ": %s needs groups of %u and %u bytes of group memory, the device has %u and %u",
                 close->entry, close->threads, close->shared_total, device->caps.max_threads,
                 device->caps.max_shared);
    return lattn_fail(LATTN_ERROR_UNSUPPORTED,
                      "%s device %s: no %s kernel for %s, d = %d, e = %d with these strides and "
                      "types%s",
                      device->backend->name, device->info.name, pass_names[pass],
                      dtype_names[kind->dtype], kind->d, kind->e, limits);
}

/* A walking row needs no company; any other OUTPUT row comes with STATE and SCAN. */
lattn_status lattn_plan_check(const struct lattn_device *device, const struct lattn_kind *kind)
{
    const uint32_t all = UINT32_MAX;
    const uint32_t count = device->backend->row_count;
    enum lattn_pass last = kind->decode ? LATTN_PASS_DECODE : LATTN_PASS_OUTPUT;
    if (find_row(device, kind, last, all, 0) == count)
        return explain(device, kind, last);
    if (kind->decode)
        return LATTN_OK;
    for (uint32_t i = 0; (i = find_row(device, kind, last, all, i)) < count; i++) {
        if (device->backend->rows[i].can & LATTN_CAN_WALK)
            return LATTN_OK;
    }
    for (enum lattn_pass pass = LATTN_PASS_STATE; pass <= LATTN_PASS_SCAN; pass++) {
        if (find_row(device, kind, pass, all, 0) == count)
            return explain(device, kind, pass);
    }
    return LATTN_OK;
}

/* May the row walk whole sequences in this call? */
static bool may_walk(const struct lattn_kernel_row *row, const struct lattn_request *request)
{
    int32_t flags = request->args.flags;
    return (row->can & LATTN_CAN_WALK) &&
           (!(flags & LATTN_FLAG_KEPT) || (row->can & LATTN_CAN_WALK_KEPT)) &&
           (!(flags & LATTN_FLAG_VLLM) || (row->can & LATTN_CAN_WALK_VLLM));
}

/* Block states and the vllm rule go by blocks, and a row that does not walk goes block by block. */
static bool may_lengthen(const struct lattn_kernel_row *row, const struct lattn_request *request)
{
    return (row->can & LATTN_CAN_WALK) &&
           !(request->args.flags & (LATTN_FLAG_KEPT | LATTN_FLAG_VLLM));
}

static bool may_chain(const struct lattn_kernel_row *row, const struct lattn_request *request)
{
    return (row->can & LATTN_CAN_CHAIN) && may_lengthen(row, request);
}

static lattn_status add_step(const struct lattn_device *device, struct lattn_plan *plan,
                             uint32_t row, uint64_t groups)
{
    if (!groups)
        return LATTN_OK;
    if (groups > device->caps.max_groups)
        return lattn_fail(LATTN_ERROR_UNSUPPORTED,
                          "%s needs %llu groups in one launch, the device takes %llu",
                          device->backend->rows[row].entry, (unsigned long long)groups,
                          (unsigned long long)device->caps.max_groups);
    plan->steps[plan->step_count++] = (struct lattn_step){row, groups};
    return LATTN_OK;
}

static uint64_t groups_at_once(const struct lattn_device *device,
                               const struct lattn_kernel_row *row)
{
    return (uint64_t)device->caps.compute_units * (row->groups_per_unit ? row->groups_per_unit : 1);
}

/* Of a launch: no more than run at once, if the row's groups can share what there is to do. Packed
 * sequences differ in length, and are better shared out as groups become free. */
static uint64_t launch_groups(const struct lattn_device *device,
                              const struct lattn_request *request,
                              const struct lattn_kernel_row *row, int32_t segment)
{
    uint64_t groups = lattn_groups_of(row, request, segment);
    uint64_t at_once = groups_at_once(device, row);
    bool share = (row->can & LATTN_CAN_TAKE_TURNS) && !(request->args.flags & LATTN_FLAG_PACKED);
    return share && at_once && groups <= device->caps.max_groups && groups > at_once ? at_once
                                                                                     : groups;
}

static lattn_status plan_walk(const struct lattn_device *device,
                              const struct lattn_request *request, uint32_t output,
                              struct lattn_plan *plan)
{
    plan->segment = LATTN_WHOLE_SEQUENCE;
    plan->segments = (request->args.flags & LATTN_FLAG_PACKED) ? request->args.sequences : 1;
    return add_step(device, plan, output,
                    launch_groups(device, request, &device->backend->rows[output], plan->segment));
}

/* The numbers of segments, as kernels are told them. */
static void set_segments(const struct lattn_request *request, int32_t segment,
                         struct lattn_plan *plan)
{
    const struct lattn_args *args = &request->args;
    int64_t total = lattn_segment_count(request, segment);
    plan->segmented = true;
    plan->segment = segment;
    plan->segments =
        (int32_t)((args->flags & LATTN_FLAG_PACKED) || !args->sequences ? total
                                                                        : total / args->sequences);
}

static lattn_status plan_chain(const struct lattn_device *device,
                               const struct lattn_request *request, uint32_t output,
                               int32_t segment, struct lattn_plan *plan)
{
    const struct lattn_kernel_row *row = &device->backend->rows[output];
    uint64_t groups = lattn_groups_of(row, request, segment);
    set_segments(request, segment, plan);
    plan->chained = true;
    lattn_status status = lattn_chain_size(row, groups, &plan->workspace);
    return status ? status : add_step(device, plan, output, groups);
}

static lattn_status plan_segments(const struct lattn_device *device,
                                  const struct lattn_request *request, uint32_t output,
                                  int32_t segment, const uint32_t rows[2], struct lattn_plan *plan)
{
    const struct lattn_args *args = &request->args;
    set_segments(request, segment, plan);
    lattn_status status = lattn_states_size(lattn_segment_count(request, segment), args->heads,
                                            args->d, args->e, &plan->workspace);
    if (status)
        return status;
    uint64_t groups =
        request->total ? lattn_groups_of(&device->backend->rows[rows[0]], request, segment) : 0;
    status = add_step(device, plan, rows[0], groups);
    if (status)
        return status;
    /* With no tokens there are only states to pass on, if anyone wants them. */
    bool scan = request->total || (args->flags & (LATTN_FLAG_STATE_OUT | LATTN_FLAG_KEPT));
    groups = scan ? lattn_groups_of(&device->backend->rows[rows[1]], request, segment) : 0;
    status = add_step(device, plan, rows[1], groups);
    if (status)
        return status;
    groups = request->total
                 ? launch_groups(device, request, &device->backend->rows[output], segment)
                 : 0;
    return add_step(device, plan, output, groups);
}

/* Is there a row that may compute the call in one launch over segments? */
static bool any_row_chains(const struct lattn_device *device, const struct lattn_request *request)
{
    const uint32_t count = device->backend->row_count;
    for (uint32_t i = 0; i < count; i++) {
        i = find_row(device, &request->kind, LATTN_PASS_OUTPUT, request->offers, i);
        if (i < count && may_chain(&device->backend->rows[i], request))
            return true;
    }
    return false;
}

struct way {
    uint32_t row; /* of OUTPUT; the number of rows: none */
    int32_t segment;
    double cost;
};

/* The way that is expected to be fastest. `split`: also over segments in three launches, for rows
 * that could go without. */
static struct way choose_way(const struct lattn_device *device, const struct lattn_request *request,
                             const uint32_t rows[2], bool split)
{
    const struct lattn_backend *backend = device->backend;
    const bool can_segment = rows[0] < backend->row_count && rows[1] < backend->row_count;
    struct way best = {.row = backend->row_count};
    for (uint32_t output = 0;; output++) {
        output = find_row(device, &request->kind, LATTN_PASS_OUTPUT, request->offers, output);
        if (output == backend->row_count)
            return best;
        const struct lattn_kernel_row *row = &backend->rows[output];
        const bool walk = may_walk(row, request), scan = can_segment && (split || !walk);
        const struct lattn_choice choice = {
            .output = row,
            .state = scan ? &backend->rows[rows[0]] : NULL,
            .scan = scan ? &backend->rows[rows[1]] : NULL,
            .may_walk = walk,
            .may_lengthen = may_lengthen(row, request),
            .may_chain = may_chain(row, request),
        };
        if (!walk && !scan)
            continue;
        struct way way = {.row = output};
        way.segment = lattn_choose_segment(&device->caps, request, &choice, &way.cost);
        bool comparable =
            best.row < backend->row_count && row->pace && backend->rows[best.row].pace;
        if (best.row == backend->row_count || (comparable && way.cost < best.cost))
            best = way;
    }
}

lattn_status lattn_plan_prefill(const struct lattn_device *device,
                                const struct lattn_request *request, struct lattn_plan *plan)
{
    const struct lattn_backend *backend = device->backend;
    const struct lattn_kind *kind = &request->kind;
    *plan = (struct lattn_plan){0};
    const uint32_t rows[2] = {
        find_row(device, kind, LATTN_PASS_STATE, request->offers, 0),
        find_row(device, kind, LATTN_PASS_SCAN, request->offers, 0),
    };
    const bool chains = any_row_chains(device, request);
    struct way way = choose_way(device, request, rows, !chains);
    /* Where one launch would do, three are worth the host's time only for long work. */
    if (chains && way.cost > LONG_COST)
        way = choose_way(device, request, rows, true);
    if (way.row < backend->row_count) {
        if (way.segment == LATTN_WHOLE_SEQUENCE)
            return plan_walk(device, request, way.row, plan);
        return may_chain(&backend->rows[way.row], request)
                   ? plan_chain(device, request, way.row, way.segment, plan)
                   : plan_segments(device, request, way.row, way.segment, rows, plan);
    }
    for (enum lattn_pass pass = LATTN_PASS_STATE; pass <= LATTN_PASS_SCAN; pass++) {
        if (rows[pass] == backend->row_count &&
            find_row(device, kind, LATTN_PASS_OUTPUT, request->offers, 0) < backend->row_count)
            return explain(device, kind, pass);
    }
    return explain(device, kind, LATTN_PASS_OUTPUT);
}

lattn_status lattn_plan_decode(const struct lattn_device *device,
                               const struct lattn_request *request, struct lattn_plan *plan)
{
    *plan = (struct lattn_plan){0};
    plan->segment = LATTN_WHOLE_SEQUENCE;
    plan->segments = 1;
    for (uint32_t i = 0;; i++) {
        i = find_row(device, &request->kind, LATTN_PASS_DECODE, request->offers, i);
        if (i == device->backend->row_count)
            return explain(device, &request->kind, LATTN_PASS_DECODE);
        const struct lattn_kernel_row *row = &device->backend->rows[i];
        uint64_t groups = lattn_groups_of(row, request, plan->segment);
        if (!(row->needs & LATTN_NEEDS_MANY_GROUPS) || groups / 4 >= groups_at_once(device, row))
            return add_step(device, plan, i, groups);
    }
}

bool lattn_plan_recall(const struct lattn_plan_memo *memo, const struct lattn_request *request,
                       struct lattn_plan *plan)
{
    const struct lattn_kind *kind = &request->kind;
    const struct lattn_args *args = &request->args;
    if (!memo->known || memo->kind.decode != kind->decode || memo->kind.dtype != kind->dtype ||
        memo->kind.precision != kind->precision || memo->kind.d != kind->d ||
        memo->kind.e != kind->e || memo->offers != request->offers ||
        memo->longest != request->longest || memo->total != request->total ||
        memo->tokens != args->tokens || memo->sequences != args->sequences ||
        memo->heads != args->heads || memo->flags != args->flags)
        return false;
    *plan = memo->plan;
    return true;
}

void lattn_plan_remember(struct lattn_plan_memo *memo, const struct lattn_request *request,
                         const struct lattn_plan *plan)
{
    *memo = (struct lattn_plan_memo){
        .known = true,
        .kind = request->kind,
        .offers = request->offers,
        .longest = request->longest,
        .total = request->total,
        .tokens = request->args.tokens,
        .sequences = request->args.sequences,
        .heads = request->args.heads,
        .flags = request->args.flags,
        .plan = *plan,
    };
}

lattn_status lattn_plan_workspace_bound(const struct lattn_device *device,
                                        const struct lattn_request *request, uint64_t *bytes)
{
    const struct lattn_args *args = &request->args;
    const struct lattn_backend *backend = device->backend;
    /* The most segments are blocks, and packed sequences have the most of those. */
    struct lattn_request packed = *request;
    packed.args.tokens = request->total;
    packed.args.flags |= LATTN_FLAG_PACKED;
    lattn_status status = LATTN_OK;
    *bytes = 0;
    if (find_row(device, &request->kind, LATTN_PASS_STATE, UINT32_MAX, 0) < backend->row_count)
        status = lattn_states_size(lattn_segment_count(&packed, LATTN_BLOCK), args->heads, args->d,
                                   args->e, bytes);
    for (uint32_t i = 0; !status && i < backend->row_count; i++) {
        const struct lattn_kernel_row *row = &backend->rows[i];
        uint64_t size = 0;
        if (!(row->can & LATTN_CAN_CHAIN) || !lattn_row_serves(row, &device->caps, &request->kind))
            continue;
        status = lattn_chain_size(row, lattn_groups_of(row, &packed, LATTN_BLOCK), &size);
        *bytes = size > *bytes ? size : *bytes;
    }
    return status;
}

void lattn_plan_describe(const struct lattn_device *device, const struct lattn_plan *plan,
                         char *text, size_t size)
{
    if (!plan->step_count) {
        snprintf(text, size, "nothing to launch");
        return;
    }
    int used = plan->segmented
                   ? snprintf(text, size, "%d segments of %d tokens%s: ", plan->segments,
                              plan->segment, plan->chained ? ", chained" : "")
                   : snprintf(text, size, "whole sequences: ");
    for (uint32_t i = 0; i < plan->step_count && used >= 0 && (size_t)used < size; i++) {
        used += snprintf(text + used, size - (size_t)used, "%s%s x %llu", i ? ", " : "",
                         device->backend->rows[plan->steps[i].row].entry,
                         (unsigned long long)plan->steps[i].groups);
    }
}
