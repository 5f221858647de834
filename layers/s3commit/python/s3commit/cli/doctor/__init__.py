"""What `s3commit doctor` checks: one function a check."""
