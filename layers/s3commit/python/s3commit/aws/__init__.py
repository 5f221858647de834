"""Adapters: S3, DynamoDB and Lambda events behind the ports of the core."""
