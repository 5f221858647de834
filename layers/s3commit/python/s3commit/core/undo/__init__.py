"""The undo of a committed job (docs/adr/0038). Other packages use `job` and `back_to`."""
