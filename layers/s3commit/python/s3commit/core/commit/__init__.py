"""The steps of the state machine: one module a state, named as the console shows it."""
