"""The scheduled sweep: it starts, gives up and retires the jobs that no event leads to."""
