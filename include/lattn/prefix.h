/* The names of this copy of the library are as they stand. A build with the Meson option
 * symbol_prefix installs another file in place of this one, which puts the prefix before each. */
