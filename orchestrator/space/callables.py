"""What identifies a function or class: where it can be imported from, or its name and its source.

The keys are those of Talos 2.0.10's own records, since parameter hashes are taken over them.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
from types import CodeType, ModuleType
from typing import Any, Callable

from orchestrator.space.labels import printed

TAG = "__talos_type__"

_SCALARS = (type(None), bool, int, float, str)
_SOURCES_KEPT = 4096
# By identity, since a class may be unhashable; the object is kept so that its id is not used again.
_sources: dict[int, tuple[Any, bytes | None]] = {}


def find(module: str, qualname: str) -> Any:
    """Import ``module`` and follow ``qualname`` in it; ImportError or AttributeError where that ends."""
    return functools.reduce(getattr, qualname.split("."), importlib.import_module(module))


def reference(value: Any, encode: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the tagged JSON that stands for a callable.

    Something importable is its module, qualified name and source hash. Anything else (lambdas, closures,
    what the script itself defines) is its qualified name, the hash of its source or bytecode, and what it
    binds as far as that is scalar. Two processes that run the same script get the same reference: no
    address, no mutable state.
    """
    module, qualname = _place(value)
    source = _source(value)
    if _is_importable(value, module, qualname):
        found = {TAG: "callable", "module": module, "qualname": qualname, "portable": True}
        if source is not None:
            found["source_hash"] = hashlib.sha256(source).hexdigest()
        return found
    body = source if source is not None else _code_bytes(value)
    digest = hashlib.sha256(body).hexdigest()
    found = {TAG: "nonportable_callable", "module": module, "qualname": qualname, "portable": False}
    return {**found, "source_hash": digest, **_bindings(value, encode)}


def _place(value: Any) -> tuple[str | None, str | None]:
    module = getattr(value, "__module__", None)
    name = getattr(value, "__name__", None)
    qualname = getattr(value, "__qualname__", name)
    if module is None and type(value).__module__.split(".")[0] == "numpy":
        module = "numpy"
    if module and module != "__main__" and name and _lookup(module, name) is value:
        qualname = name
    return module, qualname


def _lookup(module: str, qualname: str) -> Any:
    try:
        return find(module, qualname)
    except Exception:  # noqa: BLE001 - importing a user's module may raise anything; then it is not importable
        return None


def _is_importable(value: Any, module: str | None, qualname: str | None) -> bool:
    if not module or module == "__main__" or not qualname or "<" in qualname:
        return False
    there = _lookup(module, qualname)
    if there is value:
        return True
    if not (inspect.ismethod(there) and inspect.ismethod(value)):
        return False
    return there.__func__ is value.__func__ and there.__self__ is value.__self__


def _source(value: Any) -> bytes | None:
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return _read_source(value)
    known = _sources.get(id(value))
    if known is not None:
        return known[1]
    text = _read_source(value)
    if len(_sources) >= _SOURCES_KEPT:
        _sources.clear()
    _sources[id(value)] = (value, text)
    return text


def _read_source(value: Any) -> bytes | None:
    try:
        return inspect.getsource(value).encode()
    except (OSError, TypeError):
        return None


def _code_bytes(value: Any) -> bytes:
    code = getattr(value, "__code__", None)
    if not isinstance(code, CodeType):
        return type(value).__qualname__.encode()
    return repr(_code_parts(code)).encode()


def _code_parts(code: CodeType) -> tuple[Any, ...]:
    # marshal's bytes would depend on reference counts and on the file's path.
    constants = [_code_parts(item) if isinstance(item, CodeType) else _constant(item) for item in code.co_consts]
    return (code.co_name, code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, constants)


def _constant(item: Any) -> str:
    if isinstance(item, frozenset):
        return f"frozenset({sorted(map(repr, item))})"
    return repr(item)


def _bindings(value: Any, encode: Callable[[Any], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(value, functools.partial):
        found["func"] = encode(value.func)
        found["args"] = encode(value.args)
        found["keywords"] = encode(value.keywords)
        return found
    owner = getattr(value, "__self__", None)
    if inspect.isfunction(value):
        found.update(_function_bindings(value, encode))
    elif isinstance(owner, type):
        found["bound_owner"] = encode(owner)
    elif owner is not None and not isinstance(owner, ModuleType):
        state = {} if hasattr(owner, "__dict__") else {"state": None}
        found["bound_owner"] = {"type": encode(type(owner)), **state}
    elif not isinstance(value, type):
        found["repr"] = printed(value)
    wrapped = getattr(value, "__wrapped__", None)
    if callable(wrapped) and wrapped is not value:
        found["__wrapped__"] = encode(wrapped)
    return found


def _function_bindings(value: Any, encode: Callable[[Any], Any]) -> dict[str, Any]:
    # Only scalars: a captured dictionary may change from trial to trial, and data may be large.
    found: dict[str, Any] = {}
    if value.__defaults__ and _all_scalar(value.__defaults__):
        found["defaults"] = encode(value.__defaults__)
    if value.__kwdefaults__ and _all_scalar(value.__kwdefaults__.values()):
        found["keyword_defaults"] = encode(value.__kwdefaults__)
    try:
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
    except ValueError:  # a cell that is still empty
        return found
    if cells and _all_scalar(cells):
        found["closure"] = [encode(item) for item in cells]
    return found


def _all_scalar(values: Any) -> bool:
    return all(type(item) in _SCALARS for item in values)
