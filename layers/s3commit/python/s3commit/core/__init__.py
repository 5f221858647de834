"""The commit protocol, pure: no boto3, no clock, no randomness, no threads."""
