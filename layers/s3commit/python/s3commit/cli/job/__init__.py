"""One job, as the command reads it and acts on it."""
