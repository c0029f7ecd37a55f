"""The version, alone in a file so that a container can read it without importing anything else."""

__version__ = "0.1.0"
