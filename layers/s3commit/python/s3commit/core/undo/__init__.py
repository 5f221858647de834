"""The undo of a committed job (docs/adr/0038). Whoever is outside uses `job` alone."""
