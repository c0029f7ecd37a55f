"""``python -m orchestrator.cli``."""

from __future__ import annotations

from orchestrator.cli import main

main(prog_name="talos-orch")
