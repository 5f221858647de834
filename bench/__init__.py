"""What s3commit costs, measured beside what it stands in for: ``python -m bench``."""
