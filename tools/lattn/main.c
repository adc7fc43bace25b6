/* lattn: the command of the library. */
#include <lattn/lattn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "report.h"
#include "safetensors.h"
#include "usage.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"devices", command_devices}, {"prefill", command_prefill}, {"decode", command_decode},
    {"verify", command_verify},   {"bench", command_bench},
};

static void interrupted(int number)
{
    safetensors_abandon();
    signal(number, SIG_DFL);
    raise(number);
}

static void handle_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = interrupted};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
    /* Then a file that grows past its limit is a failed write, reported like any other. */
    signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return complain(EXIT_USAGE, "a subcommand is missing (see lattn --help)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage_print(NULL);
        return finish_output(EXIT_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("lattn %s\n", lattn_version_string());
        return finish_output(EXIT_DONE);
    }
    handle_signals();
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return finish_output((enum exit_status)commands[i].run(argc - 1, argv + 1));
    }
    return complain(EXIT_USAGE, "%s is no subcommand (see lattn --help)", argv[1]);
}
