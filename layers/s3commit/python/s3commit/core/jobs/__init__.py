"""One job, as several steps need it: its record, what is its own, and what it replaces."""
