"""The embedded runtime: runs the synthesized template on this machine."""
