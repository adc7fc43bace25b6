#include "usage.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *synopsis, *text;
} pages[] = {
    {"devices", "[--json]",
     "Lists the devices of this machine, best first, and why one cannot be used.\n"},
    {"prefill",
     "IN -o OUT [--backend B] [--device N] [--decay recurrence|vllm] [--precision f32|tf32]\n"
     "                     [--block-states]",
     "Reads q, k [b,h,n,d], v [b,h,n,e], slopes [h] and, where present, kv_history [b,h,d,e].\n"
     "Writes o [b,h,n,e], state [b,h,d,e] and, with --block-states, kv [b,h,ceil(n/256)+1,d,e].\n"
     "q and k may have fewer heads than v.\n"},
    {"decode", "IN -o OUT [--backend B] [--device N]",
     "Reads q, k [B,h,1,d], v [B,h,1,e], slopes [h], cache_in [slots,h,d,e] and slot_idx [B].\n"
     "Writes o [B,h*e] and cache [slots,h,d,e]. A row whose slot does not exist is skipped.\n"},
    {"verify", "[FILE...] [--backend B] [--device N] [--json]",
     "Runs every device, or that of --backend, over a table of cases, or over FILEs with expected\n"
     "results, and compares with the float64 reference. Ends with 1 if any row fails.\n"},
    {"bench",
     "[--backend B] [--device N] [--op prefill|decode] [--shape b,h,n,d,e | --sweep]\n"
     "                   [--dtype f32|f16|bf16] [--precision f32|tf32] [--json]",
     "Prints device time, GB/s, GFLOP/s and time / floor, where the floor is the time to read "
     "each\n"
     "input and write each output once at the device's own copy bandwidth. In a decode shape, n "
     "is\n"
     "the tokens of one row, 1 to 8. --sweep runs over lengths and heads, to show how time "
     "grows:\n"
     "where it is linear, ns/(b h n) stays the same.\n"},
};

void usage_print(const char *name)
{
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        if (!name)
            printf("%s lattn %s %s\n", i == 0 ? "usage:" : "      ", pages[i].name,
                   pages[i].synopsis);
        else if (strcmp(name, pages[i].name) == 0)
            printf("usage: lattn %s %s\n\n%s", pages[i].name, pages[i].synopsis, pages[i].text);
    }
    fputs(
        "\nB is auto (the best device there is), reference, opencl, cuda or hip. N counts the "
        "devices\n"
        "of B, or without --backend those that lattn devices lists. Tensor files are safetensors.\n"
        "Exit status: 0 done, 1 ran and failed, 2 bad usage or input.\n",
        stdout);
}
