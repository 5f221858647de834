"""The calls of the state machine's functions: which state follows which, and several in one."""
