/* What the command says about itself. */
#ifndef LATTN_TOOLS_USAGE_H
#define LATTN_TOOLS_USAGE_H

/* Prints the usage of a subcommand, or of all for NULL, on stdout. */
void usage_print(const char *name);

#endif
