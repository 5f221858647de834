"""What the ledger or S3 has lost, found again from the other."""
