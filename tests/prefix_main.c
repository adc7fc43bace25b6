#include <stddef.h>
#include <stdio.h>

int first(float *o, char *message, size_t size);
int second(float *o, char *message, size_t size);

int main(void)
{
    float o[2] = {0, 0};
    char message[2][200] = {"unset", "unset"};
    const int status[2] = {first(&o[0], message[0], sizeof(message[0])),
                           second(&o[1], message[1], sizeof(message[1]))};
    printf("first: status %d, o %g, \"%s\"; second: status %d, o %g, \"%s\"\n", status[0],
           (double)o[0], message[0], status[1], (double)o[1], message[1]);
    return status[0] || status[1] || o[0] != 6 || o[1] != 6 || message[0][0] || message[1][0];
}
