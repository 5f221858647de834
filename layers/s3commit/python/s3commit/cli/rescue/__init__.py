"""Jobs of Hadoop's S3A committers, read, judged, and finished or aborted."""
