/* An emulated work-group: each lane is a fiber, and what lanes do together (barriers, exchanges,
 * matrix instructions) happens when the last of them arrives. A lane that is missing, or that does
 * something else meanwhile, is an error of the kernel, and ends the process with a message: on the
 * device it would be a hang or a wrong result. */
#ifndef LATTN_TESTS_AMD_WAVE_H
#define LATTN_TESTS_AMD_WAVE_H

#ifdef __cplusplus
extern "C" {
#endif

#define AMD_MAX_THREADS 1024
#define AMD_MAX_WAVE 64

/* Runs body(context) on every lane of a group. One group at a time in a process. */
void amd_group_run(int threads, int wave, long long group, void (*body)(void *context),
                   void *context);

int amd_thread(void);
long long amd_group(void);
int amd_wave_size(void);

/* All lanes of the group. */
void amd_barrier(void);

/* All lanes of a wave: `combine` gets every lane's input, by lane, and fills every lane's output.
 * `what` names the operation, which must be the same for all. */
typedef void (*amd_combine)(int lanes, const void *const inputs[], void *const outputs[]);
void amd_together(const char *what, amd_combine combine, const void *input, void *output);

/* Ends the process: the kernel does what no document allows. */
void amd_die(const char *what);

#ifdef __cplusplus
}
#endif

#endif
