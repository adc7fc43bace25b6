/* Where things are: sequences and their segments, slots of state pools, elements of tensors. Every
 * kernel of every backend takes these answers from here. */
#ifndef LATTN_SEQUENCE_H
#define LATTN_SEQUENCE_H

#include "dialect.h"

struct lattn_sequence {
    lattn_i32 number;
    lattn_i32 row;    /* its number along the batch axis of q, k, v, o */
    lattn_i64 first;  /* its first token along their token axis */
    lattn_i64 length; /* tokens, may be 0 */
};

struct lattn_segment {
    struct lattn_sequence sequence;
    lattn_i64 number; /* its place in WORK */
    lattn_i64 first;  /* its first token, counted in the sequence */
    lattn_i64 length; /* tokens; 0: the number names no segment */
};

LATTN_FUNCTION void lattn_sequence_get(const struct lattn_args *a,
                                       LATTN_GLOBAL const int *cu_seqlens, lattn_i32 number,
                                       struct lattn_sequence *sequence)
{
    sequence->number = number;
    if (a->flags & LATTN_FLAG_PACKED) {
        lattn_i64 first = cu_seqlens[a->cu_seqlens + number];
        sequence->row = 0;
        sequence->first = first;
        sequence->length = cu_seqlens[a->cu_seqlens + number + 1] - first;
    } else {
        sequence->row = number;
        sequence->first = 0;
        sequence->length = a->tokens;
    }
}

/* The number of a sequence's first segment, and how many there are. */
LATTN_FUNCTION lattn_i64 lattn_segment_first(const struct lattn_args *a,
                                             const struct lattn_sequence *sequence)
{
    if (a->flags & LATTN_FLAG_PACKED)
        return sequence->first / a->segment + sequence->number;
    return (lattn_i64)sequence->number * a->segments;
}

LATTN_FUNCTION lattn_i64 lattn_segment_count(const struct lattn_args *a,
                                             const struct lattn_sequence *sequence)
{
    return (sequence->length + a->segment - 1) / a->segment;
}

/* The sequence that segment `number` belongs to, if it names one. Packed: first segments rise
 * strictly with the sequence, and the one sought is the last that is not beyond `number`. */
LATTN_FUNCTION lattn_i32 lattn_segment_owner(const struct lattn_args *a,
                                             LATTN_GLOBAL const int *cu_seqlens, lattn_i64 number)
{
    lattn_i32 low = 0, high = a->sequences;
    if (!(a->flags & LATTN_FLAG_PACKED))
        return (lattn_i32)(number / a->segments);
    while (high - low > 1) {
        lattn_i32 middle = low + (high - low) / 2;
        if (cu_seqlens[a->cu_seqlens + middle] / a->segment + (lattn_i64)middle <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* For STATE, and for OUTPUT after a scan. */
LATTN_FUNCTION void lattn_segment_get(const struct lattn_args *a,
                                      LATTN_GLOBAL const int *cu_seqlens, lattn_i64 number,
                                      struct lattn_segment *segment)
{
    lattn_i64 left;
    lattn_sequence_get(a, cu_seqlens, lattn_segment_owner(a, cu_seqlens, number),
                       &segment->sequence);
    segment->number = number;
    segment->first = (number - lattn_segment_first(a, &segment->sequence)) * a->segment;
    left = segment->first < 0 ? 0 : segment->sequence.length - segment->first;
    segment->length = left < 0 ? 0 : left < a->segment ? left : a->segment;
}

/* For an OUTPUT that can walk: without segments a group has a whole sequence, which may be empty
 * and still has its state to hand on. */
LATTN_FUNCTION void lattn_segment_walk(const struct lattn_args *a,
                                       LATTN_GLOBAL const int *cu_seqlens, lattn_i64 number,
                                       struct lattn_segment *segment)
{
    if (a->flags & (LATTN_FLAG_SEGMENTED | LATTN_FLAG_CHAINED)) {
        lattn_segment_get(a, cu_seqlens, number, segment);
        return;
    }
    lattn_sequence_get(a, cu_seqlens, (lattn_i32)number, &segment->sequence);
    segment->number = number;
    segment->first = 0;
    segment->length = segment->sequence.length;
}

/* ---- states ---- */

struct lattn_slots {
    lattn_i64 in, out; /* rows of the pools */
    bool initial;      /* there is an initial state, in row `in` */
    bool padding;      /* outputs are zero, and states are left alone */
};

LATTN_FUNCTION lattn_i64 lattn_slot(LATTN_GLOBAL const void *slots, lattn_i64 offset,
                                    lattn_i32 sequence, bool given, bool wide)
{
    if (!given)
        return sequence;
    return wide ? ((LATTN_GLOBAL const lattn_i64 *)slots)[offset + sequence]
                : ((LATTN_GLOBAL const lattn_i32 *)slots)[offset + sequence];
}

LATTN_FUNCTION void lattn_slots_get(const struct lattn_args *a,
                                    LATTN_GLOBAL const unsigned char *has_initial,
                                    LATTN_GLOBAL const void *slot_in,
                                    LATTN_GLOBAL const void *slot_out, lattn_i32 sequence,
                                    struct lattn_slots *slots)
{
    slots->in = slots->out = sequence;
    slots->initial = (a->flags & LATTN_FLAG_STATE_IN) != 0;
    slots->padding = false;
    if (slots->initial && (a->flags & LATTN_FLAG_HAS_INITIAL))
        slots->initial = has_initial[a->has_initial + sequence] != 0;
    if (slots->initial) {
        slots->in = lattn_slot(slot_in, a->slot_in, sequence, (a->flags & LATTN_FLAG_SLOT_IN) != 0,
                               (a->flags & LATTN_FLAG_SLOT_IN_64) != 0);
        slots->padding = slots->in < 0 || slots->in >= a->in.slots;
    }
    if (a->flags & LATTN_FLAG_STATE_OUT) {
        slots->out =
            lattn_slot(slot_out, a->slot_out, sequence, (a->flags & LATTN_FLAG_SLOT_OUT) != 0,
                       (a->flags & LATTN_FLAG_SLOT_OUT_64) != 0);
        slots->padding = slots->padding || slots->out < 0 || slots->out >= a->out.slots;
    }
}

/* ---- elements ---- */

/* Of q, k, v, o: where the dims of a token begin. `token` counts in the sequence. */
LATTN_FUNCTION lattn_i64 lattn_token_at(const struct lattn_token_layout *layout,
                                        const struct lattn_sequence *sequence, lattn_i32 head,
                                        lattn_i64 token)
{
    return layout->offset + sequence->row * layout->batch + head * layout->head +
           (sequence->first + token) * layout->token;
}

/* Of a pool of states: where the state of a row and head begins. */
LATTN_FUNCTION lattn_i64 lattn_state_at(const struct lattn_state_layout *layout, lattn_i64 slot,
                                        lattn_i32 head)
{
    return layout->offset + slot * layout->slot + head * layout->head;
}

/* Of WORK: where the contiguous [d, e] state of a segment begins. */
LATTN_FUNCTION lattn_i64 lattn_work_at(const struct lattn_args *a, lattn_i64 segment,
                                       lattn_i32 head)
{
    return a->work + (segment * a->heads + head) * a->d * a->e;
}

/* Of the block states: where the contiguous [d, e] state before block `block` begins; the final
 * state follows the last block. */
LATTN_FUNCTION lattn_i64 lattn_block_state_at(const struct lattn_args *a,
                                              const struct lattn_sequence *sequence, lattn_i32 head,
                                              lattn_i64 block)
{
    lattn_i64 row;
    if (a->flags & LATTN_FLAG_PACKED) {
        row = sequence->first / LATTN_BLOCK + 2 * (lattn_i64)sequence->number + block;
        row = row * a->heads + head;
    } else {
        row = (lattn_i64)sequence->number * a->heads + head;
        row = row * ((sequence->length + LATTN_BLOCK - 1) / LATTN_BLOCK + 1) + block;
    }
    return a->kept.offset + row * a->d * a->e;
}

#endif
