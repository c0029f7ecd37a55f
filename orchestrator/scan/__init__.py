"""``Scan`` in its three roles: alone in this process, in a sweep's driver, in a sweep's worker."""
