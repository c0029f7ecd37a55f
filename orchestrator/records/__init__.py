"""The sweep's folder: file names, atomic writes, the spool of chunks and the trial log. Knows no Docker."""
