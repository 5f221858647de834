"""What the protocol writes and reads as bytes: codecs, names of keys, and strict parsing."""
