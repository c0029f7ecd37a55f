"""The merged table out of a sweep's folder alone. Starts nothing."""
