#include "apply.h"
#include "commands.h"
#include "options.h"

static int list_outputs(const struct call *call, struct apply_output *outputs)
{
    outputs[0] = (struct apply_output){
        "o", CALL_O, call->dtype, 4, {call->batch, call->heads, call->tokens, call->e}};
    outputs[1] = (struct apply_output){
        "state", CALL_STATE_OUT, LATTN_F32, 4, {call->batch, call->heads, call->d, call->e}};
    outputs[2] =
        (struct apply_output){"kv",
                              CALL_KEPT,
                              LATTN_F32,
                              5,
                              {call->batch, call->heads, call_blocks(call) + 1, call->d, call->e}};
    return call->keep_blocks ? 3 : 2;
}

int command_prefill(int argc, char **argv)
{
    return apply_command(argc, argv, CALL_PREFILL,
                         OPTION_OUTPUT | OPTION_BACKEND | OPTION_DEVICE | OPTION_DECAY |
                             OPTION_PRECISION | OPTION_BLOCK_STATES,
                         list_outputs);
}
