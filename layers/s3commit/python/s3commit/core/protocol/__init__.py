"""The steps of a job, one module a phase, over the ports alone."""
