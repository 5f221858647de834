"""The protocol's needs of the world: objects, the ledger, executions, time."""
