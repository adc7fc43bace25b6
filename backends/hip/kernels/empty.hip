/* No kernel: whether the compiler knows an architecture. */
