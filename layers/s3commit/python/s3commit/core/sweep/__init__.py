"""The scheduled sweep: jobs that nobody works on, orphaned uploads, documents past retention."""
