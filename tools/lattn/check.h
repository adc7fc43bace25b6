/* One call on one device, held against what it should give. */
#ifndef LATTN_TOOLS_CHECK_H
#define LATTN_TOOLS_CHECK_H

#include "compare.h"
#include "session.h"

/* What is expected of a call, by output: CALL_O; CALL_STATE_OUT, or CALL_STATE_IN for the pool of a
 * decode; CALL_KEPT. What has no data is not compared. */
struct expected {
    struct compare_array part[CALL_PARTS];
    double tolerance; /* times the usual limits: 1 for the truth, 2 for a result that errs itself */
};

struct check_result {
    lattn_status status;         /* of the call; the errors count only if it is LATTN_OK */
    double error_o, error_state; /* NaN: not compared */
    double limit_o, limit_state;
    bool good;
};

/* Expectations by the reference device: the same call with inputs widened to float32, so that only
 * the last rounding of a float64 computation is left. expected_free() frees them. */
lattn_status expect_reference(struct session *reference, const struct call *call,
                              void *const data[CALL_PARTS], struct expected *expected);
void expected_free(struct expected *expected);

/* Runs the call with the inputs `data`, whose outputs are poisoned, and compares. In a decode,
 * padding rows must give zeros, and slots without a row must keep every bit. */
struct check_result check_call(struct session *session, const struct call *call,
                               void *const data[CALL_PARTS], const struct expected *expected);

#endif
