"""What runs in a container: the supervisor (standard library only) and the trial process (the user's code)."""
