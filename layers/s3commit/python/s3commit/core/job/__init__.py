"""Shared by several steps, of one job: its documents, record, plan, key and lists."""
