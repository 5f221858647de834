"""Calls of a function that run several steps in a row (docs/adr/0039)."""
