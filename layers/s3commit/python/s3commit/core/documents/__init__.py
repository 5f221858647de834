"""The documents of a job, one module each: its class and limits, read and written."""
