"""Decisions, as pure functions: shares, chunks, container specs. No input or output, no clock."""
