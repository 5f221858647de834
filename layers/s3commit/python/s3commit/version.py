"""The version of the package. The build reads it here."""

__version__ = "0.1.0"
