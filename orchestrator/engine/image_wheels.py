"""The packages of an image, fetched by this machine's own pip.

What makes pip work here (indexes, file:// folders, proxies, credentials, a network that intercepts TLS)
then works for the image without being copied into it, the build itself needs no network, and the wheels are
kept for the next build. This needs a pip on the base's Python version, since pip judges requirements by the
Python that it runs on. Where there is none, pip in the build stage does the work with the settings that can
be handed over.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.engine.image_recipe import pinned_versions, requirement_names
from orchestrator.engine.translate import one_line
from orchestrator.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.engine.image_recipe import ImageRequest

# Small files would only hide the long waits.
_LARGE = re.compile(r"^ *Downloading \S+ \((\d{2,}\.\d MB|[\d.]+ GB)\)")
_SETTINGS = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT")
_BUNDLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
_ASK_PIP = "import pip, sys; print('%d.%d' % sys.version_info[:2])"
_INDEX_HINT = (
    "add the Torch project's index of CPU builds to pip's settings (PIP_EXTRA_INDEX_URL), or pass a folder "
    "of wheels with --wheels DIR, or build with --backend tensorflow"
)


def host_python(version: str, machine: str, environ: Mapping[str, str]) -> str | None:
    """Find a Python here that has pip and resolves as the image's would; None where there is none."""
    if sys.platform != "linux" or platform.machine() != machine or platform.libc_ver()[0] != "glibc":
        return None
    names = (sys.executable, f"python{version}", "python3")
    for found in filter(None, (shutil.which(name, path=environ.get("PATH")) for name in names)):
        done = subprocess.run([found, "-c", _ASK_PIP], env=dict(environ), capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return found
    return None


def fetch_wheels(
    request: ImageRequest,
    files: Mapping[str, bytes],
    python: str,
    *,
    environ: Mapping[str, str],
    cache: Path,
    say: Callable[[str], None],
) -> Path:
    """Return a folder with exactly the wheels of this image, kept or downloaded; raises ImageError.

    A folder is there whole or not at all: concurrent builds may both download, and one of them wins.
    """
    folder = cache / f"wheels-{wheels_key(request, files, python)}"
    if folder.is_dir():
        say(f"using the wheels in {folder}")
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    say(f"fetching wheels with this machine's pip into {folder}")
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as scratch:
        part = Path(scratch) / "wheels"
        part.mkdir()
        for name in requirement_names(request):
            (Path(scratch) / Path(name).name).write_bytes(files[name])
        command = download_command(request, python, Path(scratch), part)
        _run_pip(command, pip_environ(request, files, environ), request, say)
        (part / "offline").touch()
        try:
            part.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder


def wheels_key(request: ImageRequest, files: Mapping[str, bytes], python: str) -> str:
    """Twelve hex digits over all that decides which wheels pip picks, as far as it is known here."""
    facts = [python, platform.machine(), request.torch_index or "", *pinned_versions(request, files).values()]
    if request.wheels is not None:
        found = sorted(request.wheels.glob("*.whl"))
        facts += [f"{wheel.name} {wheel.stat().st_size} {wheel.stat().st_mtime_ns}" for wheel in found]
    digest = hashlib.sha256("\0".join(facts).encode())
    for name in requirement_names(request):
        digest.update(f"\0{name}\0".encode() + files[name])
    return digest.hexdigest()[:12]


def download_command(request: ImageRequest, python: str, requirements: Path, target: Path) -> list[str]:
    """Return the pip call that puts the wheels of ``request`` into ``target``."""
    command = [python, "-m", "pip", "download", "--only-binary=:all:", "--progress-bar=off"]
    command += ["--disable-pip-version-check", "--dest", str(target)]
    for name in requirement_names(request):
        command += ["-r", str(requirements / Path(name).name)]
    if request.wheels is not None:
        return [*command, "--no-index", "--find-links", str(request.wheels.absolute())]
    if request.torch_index:
        command += ["--extra-index-url", request.torch_index]
    return command


def pip_environ(request: ImageRequest, files: Mapping[str, bytes], environ: Mapping[str, str]) -> dict[str, str]:
    """Return pip's environment: the pinned versions, and with ``--wheels`` no settings of this machine."""
    kept = dict(environ)
    if request.wheels is not None:
        kept = {name: value for name, value in environ.items() if not name.startswith("PIP_")}
        kept["PIP_CONFIG_FILE"] = os.devnull
    return {**kept, **pinned_versions(request, files)}


def settings_for_stage(
    request: ImageRequest, *, environ: Mapping[str, str], folder: Path, say: Callable[[str], None]
) -> dict[str, str]:
    """Hand pip in the build stage what it needs: files into ``folder``, and the returned build arguments.

    Copies wheels of ``--wheels`` or of local find-links folders, constraint files and the TLS bundle.
    Settings that name places of this machine only (file:// indexes) cannot be handed over: they are left out.
    """
    if request.wheels is not None:
        _copy_wheels([request.wheels], folder)
        (folder / "offline").touch()
        return {}
    settings = {**_configured(environ), **{k: v for k, v in environ.items() if k.startswith("PIP_")}}
    links = settings.get("PIP_FIND_LINKS", "").split()
    _copy_wheels([Path(link) for link in links if Path(link).is_dir()], folder)
    constraints = [Path(name) for name in settings.get("PIP_CONSTRAINT", "").split()]
    texts = [path.read_text() for path in constraints if path.is_file()]
    if texts:
        (folder / "constraints.txt").write_text("\n".join(texts))
    for name in _BUNDLES:
        bundle = Path(settings.get(name) or environ.get(name) or "/nonexistent")
        if bundle.is_file():
            shutil.copyfile(bundle, folder / "ca.pem")
            break
    say("no pip for the image's Python here: the packages are downloaded inside of the build")
    arguments = {name: _reachable(settings[name]) for name in _SETTINGS if settings.get(name)}
    if request.torch_index:
        arguments["TORCH_INDEX"] = request.torch_index
    return {name: value for name, value in arguments.items() if value}


def _reachable(setting: str) -> str:
    return " ".join(part for part in setting.split() if not part.startswith("file:"))


def _copy_wheels(sources: list[Path], folder: Path) -> None:
    for source in sources:
        for wheel in source.glob("*.whl"):
            shutil.copyfile(wheel, folder / wheel.name)


def _configured(environ: Mapping[str, str]) -> dict[str, str]:
    """Read pip's configuration files as variables: ``global.index-url='…'`` becomes PIP_INDEX_URL."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, env=dict(environ), capture_output=True, text=True, check=False)
    found = {}
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        name, _, value = line.partition("=")
        scope, _, key = name.rpartition(".")
        if scope in {"global", "download", "install"}:
            found["PIP_" + key.upper().replace("-", "_")] = " ".join(shlex.split(value.replace("\\n", " ")))
    return found


def _run_pip(command: list[str], environ: dict[str, str], request: ImageRequest, say: Callable[[str], None]) -> None:
    last = "pip said nothing"
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        for line in pip.stdout or ():
            if _LARGE.match(line):
                say(one_line(line))
            if line.startswith("ERROR:") or last == "pip said nothing":
                last = one_line(line)
    if pip.returncode != 0:
        if request.wheels is not None:
            hint = f"put its wheel into {request.wheels}"
        elif request.device == "cpu" and "torch==" in last:
            hint = _INDEX_HINT
        else:
            hint = "check pip's settings, or pass a folder of wheels with --wheels DIR"
        raise ImageError(f"pip cannot get the image's packages: {last}: {hint}")
