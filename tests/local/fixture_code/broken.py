"""A module that can not be imported."""

raise RuntimeError("broken on import")
