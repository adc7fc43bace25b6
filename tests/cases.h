/* A list of attention cases that grows. */
#ifndef LATTN_TESTS_CASES_H
#define LATTN_TESTS_CASES_H

#include "attention.h"

struct case_list {
    struct attention_case *cases;
    size_t count, room;
};

/* Adds a case under a name of its own. */
void case_add(struct case_list *list, struct attention_case c, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a case drawn from all that is allowed, by the run's seed. */
void case_add_random(struct case_list *list, bool decode, int number);

/* Runs all on every device, and frees the list. */
int case_run(struct case_list *list, const char *suite, int argc, char **argv);

#endif
