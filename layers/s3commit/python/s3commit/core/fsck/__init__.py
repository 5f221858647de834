"""What lies at a destination, compared with what the ledger says of it; docs/fsck.md has it all."""
