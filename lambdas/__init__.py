"""One flat module a function: parse, one call, map the result."""
