"""The scheduled sweep: it starts, abandons and retires the jobs that no event leads to."""
