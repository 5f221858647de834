"""What `s3commit doctor --probe` does: it shows in an account what correctness rests on."""
