"""How a job ends: its commit manifest and result, its uploads aborted, its leftovers deleted."""
