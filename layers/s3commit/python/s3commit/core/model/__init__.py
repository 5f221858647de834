"""Values, states, errors, limits and locks: immutable, typed, free of I/O."""
