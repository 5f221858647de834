"""The embedded runtime: the synthesized template, the real handlers and the real state machine."""
