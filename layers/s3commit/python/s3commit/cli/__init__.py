"""The command `s3commit`."""
