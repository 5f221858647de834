"""The acceptance run: what s3commit promises, tried in an account, and reported."""
