"""The verbs, one a module: parse, one call, print."""
