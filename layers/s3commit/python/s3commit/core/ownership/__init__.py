"""Whose is an object or an upload: by its name, its metadata, its etag, and who else is there."""
