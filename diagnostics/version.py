"""The version, where the recorder can read it without asking the package index of the system."""

__version__ = "0.1.0"
