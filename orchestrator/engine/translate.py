"""Turns what docker-py raises into this program's own errors, in one place.

docker-py has three families: ``DockerException`` (with ``APIError`` below it), ``StreamParseError`` and bare
``requests`` errors. A socket that cannot be used arrives wrapped in the first or the third: the reason is
found by walking causes and arguments.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import docker.errors
import requests.exceptions

from orchestrator.errors import EngineError, EnvironmentNotReadyError, ImageError

if TYPE_CHECKING:
    from collections.abc import Iterator

FOREIGN = (
    docker.errors.DockerException,
    docker.errors.StreamParseError,
    requests.exceptions.RequestException,
)

_NO_ENGINE = "no Docker Engine answers: start Docker (or run images/engine.sh), or use --engine process"
_NOT_ALLOWED = (
    "this user may not talk to the Docker Engine: join the docker group (usermod -aG docker USER, then "
    "log in again), or use --engine process"
)
_REFUSED = "the Docker Engine refuses connections: start Docker, check DOCKER_HOST, or use --engine process"
_SILENT = "the Docker Engine did not answer in time: see whether `docker info` does, then try again"
_LOST = "the connection to the Docker Engine broke off: see whether `docker info` answers, then try again"


@contextmanager
def engine_errors(action: str) -> Iterator[None]:
    """Translate every error of docker-py that the block raises.

    ``action`` completes "cannot …" ("start worker 3", "list containers"). Raises ImageError where an image is
    the reason and EngineError otherwise, from the original. Errors of our own pass through.
    """
    try:
        yield
    except FOREIGN as error:
        raise translate(action, error) from error


def translate(action: str, error: BaseException) -> EnvironmentNotReadyError:
    """Choose the error of ours for ``error``; never raises."""
    said = f"cannot {action}: {reason(error)}"
    if isinstance(error, (docker.errors.ImageNotFound, docker.errors.BuildError, docker.errors.ImageLoadError)):
        return ImageError(said)
    return EngineError(said)


def reason(error: BaseException) -> str:
    """Why it failed, in one line, and what to do about it where that is known."""
    if isinstance(error, docker.errors.ImageNotFound):
        return f"{_explanation(error)} (`talos-orch build` makes the worker images)"
    if isinstance(error, docker.errors.APIError):
        return _explanation(error)
    causes = list(_causes(error))
    for kind, words in (
        (FileNotFoundError, _NO_ENGINE),
        (PermissionError, _NOT_ALLOWED),
        (ConnectionRefusedError, _REFUSED),
    ):
        if any(isinstance(cause, kind) for cause in causes):
            return words
    if any(isinstance(cause, TimeoutError) or "Timeout" in type(cause).__name__ for cause in causes):
        return _SILENT
    if any(isinstance(cause, requests.exceptions.ConnectionError) for cause in causes):
        return _LOST
    return one_line(str(error)) or type(error).__name__


def one_line(text: str) -> str:
    """Return ``text`` without line breaks and doubled blanks."""
    return " ".join(text.split())


def _explanation(error: docker.errors.APIError) -> str:
    text = error.explanation
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return one_line(text or str(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Walk ``error`` and what is behind it: causes, contexts, and exceptions carried as arguments."""
    waiting, seen = [error], set()
    while waiting:
        found = waiting.pop(0)
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        behind = (found.__cause__, found.__context__, getattr(found, "reason", None), *found.args)
        waiting.extend(cause for cause in behind if isinstance(cause, BaseException))
