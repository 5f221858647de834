"""Fakes of S3, ledger and Step Functions with real conditional semantics, and the fault plan."""
