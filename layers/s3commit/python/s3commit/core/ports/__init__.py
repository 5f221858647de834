"""What the protocol needs of the world: objects, the ledger, executions, time."""
