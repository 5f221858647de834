"""The protocol's bytes, written and read: codecs, names of keys, and strict parsing."""
