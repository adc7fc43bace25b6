#include "apply.h"
#include "commands.h"
#include "options.h"

static int list_outputs(const struct call *call, struct apply_output *outputs)
{
    outputs[0] = (struct apply_output){
        "o", CALL_O, call->dtype, 2, {call->batch, (int64_t)call->heads * call->e}};
    outputs[1] = (struct apply_output){
        "cache", CALL_STATE_IN, call->state_dtype, 4, {call->slots, call->heads, call->d, call->e}};
    return 2;
}

int command_decode(int argc, char **argv)
{
    return apply_command(argc, argv, CALL_DECODE, OPTION_OUTPUT | OPTION_BACKEND | OPTION_DEVICE,
                         list_outputs);
}
