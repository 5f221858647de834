"""Writing from Python: jobs, tasks and streams whose files stay invisible."""
