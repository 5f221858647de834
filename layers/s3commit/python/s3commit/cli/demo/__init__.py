"""The demonstration: a job from a DataFrame to its files, on the embedded runtime."""
