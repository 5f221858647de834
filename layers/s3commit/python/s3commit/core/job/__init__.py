"""What several steps read and note of one job: its documents, record, plan, key and lists."""
