"""The first file that runs in a container: ``python enter.py supervise|drive|trial JOB.json …``.

It is run by path, since the package lies where no Python path leads (and must not: the user's own modules come first).
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Only for the import below; main.py takes the entry out again before the user's code runs.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from orchestrator.worker.main import main

    sys.exit(main(sys.argv[1:]))
