"""Do something to a module the moment it has been imported, by whatever name the user's code imports it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Callable, Optional

Hook = Callable[[ModuleType], None]


class PostImportFinder(importlib.abc.MetaPathFinder):
    """A first finder that finds nothing itself: it lets the others find and adds a step after execution."""

    def __init__(self, hooks: dict[str, Hook]) -> None:
        self._hooks = hooks
        self._asking: set[str] = set()

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Give the spec that the other finders give, with the hook behind its loader's ``exec_module``."""
        if fullname not in self._hooks or fullname in self._asking:
            return None
        self._asking.add(fullname)
        try:
            for finder in sys.meta_path:
                spec = finder.find_spec(fullname, path, target) if finder is not self else None
                if spec is not None:
                    self._extend(spec, self._hooks[fullname])
                    return spec
        finally:
            self._asking.discard(fullname)
        return None

    @staticmethod
    def _extend(spec: importlib.machinery.ModuleSpec, hook: Hook) -> None:
        loader: Any = spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return
        execute = loader.exec_module

        def execute_then_hook(module: ModuleType) -> None:
            execute(module)
            hook(module)

        # On the instance, which belongs to this one spec: the loader stays of its own class for everything else.
        loader.exec_module = execute_then_hook


def install_hooks(hooks: dict[str, Hook]) -> None:
    """Run each hook after its module's import; at once for a module that is there already."""
    for name, hook in hooks.items():
        if name in sys.modules:
            hook(sys.modules[name])
    sys.meta_path.insert(0, PostImportFinder(hooks))
