"""Which role this process plays; the entry point of a container sets it before the user's first line."""

from __future__ import annotations

from orchestrator.scan.call import Session
from orchestrator.scan.local import LocalSession


class _Holder:
    session: Session = LocalSession()


def current_session() -> Session:
    """Give the session in force: a plain library call's, unless this process is part of a sweep."""
    return _Holder.session


def enter_session(session: Session) -> None:
    """Set the role of this process for good."""
    _Holder.session = session
