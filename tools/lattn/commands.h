/* The subcommands. Each takes its own name as argv[0] and returns an exit status. */
#ifndef LATTN_TOOLS_COMMANDS_H
#define LATTN_TOOLS_COMMANDS_H

int command_devices(int argc, char **argv);
int command_prefill(int argc, char **argv);
int command_decode(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_bench(int argc, char **argv);

#endif
