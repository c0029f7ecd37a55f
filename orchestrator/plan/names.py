"""What each name of a script stands for, as far as its text alone can tell."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Through these a script can bind any name without spelling it.
_DYNAMIC = frozenset({"exec", "eval", "globals", "locals", "vars", "setattr"})


@dataclass(slots=True, kw_only=True, eq=False)
class Scope:
    """A module, class, function or lambda.

    ``bound`` holds, by name, every node that gives, changes or takes away that name. A comprehension is no
    scope here: its variables count for the scope around it, which only errs towards doubt.
    """

    node: ast.AST
    outer: Scope | None
    bound: dict[str, list[ast.AST]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True, eq=False)
class Names:
    """The scopes of one module, with every place where a name is read and every node's parent.

    ``doubtful`` holds the names that a ``global`` or ``nonlocal`` statement moves between scopes. ``dynamic``
    is whether the script can bind names that it does not spell. ``star`` is the line of the last ``import *``
    or 0.
    """

    module: Scope
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    reads: dict[str, list[ast.Name]] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    dynamic: bool = False
    star: int = 0

    def owner(self, name: str, at: ast.AST) -> Scope | None:
        """Return the scope whose ``name`` is meant at the node ``at``, or None if no scope binds it."""
        scope: Scope | None = self.scopes[at]
        first = True
        while scope is not None:
            visible = first or not isinstance(scope.node, ast.ClassDef)
            if visible and name in scope.bound:
                return scope
            scope, first = scope.outer, False
        return None

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the node's parent, its parent, and so on up to the module."""
        while node in self.parents:
            node = self.parents[node]
            yield node


def read_names(tree: ast.Module) -> Names:
    """Return the names of a parsed module."""
    names = Names(module=Scope(node=tree, outer=None))
    for parent in ast.walk(tree):
        names.parents.update(dict.fromkeys(ast.iter_child_nodes(parent), parent))
    waiting: list[tuple[ast.AST, Scope]] = [(tree, names.module)]
    while waiting:  # no recursion: a long sum is a deep tree
        node, scope = waiting.pop()
        _note(node, scope, names)
        waiting.extend(_children(node, scope, names))
    names.dynamic = any(name in _DYNAMIC for name in names.reads)
    return names


def settled_value(names: Names, read: ast.Name, harmless: Callable[[ast.Name], bool]) -> ast.expr | None:
    """Return the expression that a name certainly has where it is read, or None when that is not certain.

    It is when the name is bound once, by a plain assignment to it alone, and every place that reads it is
    ``harmless``: one that cannot change the value or hand it on.
    """
    name, owner = read.id, names.owner(read.id, read)
    if owner is None or names.dynamic or name in names.doubtful or len(owner.bound[name]) != 1:
        return None
    target = owner.bound[name][0]
    statement = names.parents.get(target)
    alone = isinstance(statement, ast.Assign) and statement.targets == [target]
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not (alone or isinstance(statement, ast.AnnAssign)):
        return None
    if names.star > statement.lineno:
        return None
    for other in names.reads[name]:
        if names.owner(name, other) is owner and not harmless(other):
            return None
    return statement.value


def _note(node: ast.AST, scope: Scope, names: Names) -> None:
    names.scopes[node] = scope
    for name in _bound_names(node, names):
        scope.bound.setdefault(name, []).append(node)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        names.reads.setdefault(node.id, []).append(node)
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        names.doubtful.update(node.names)


def _children(node: ast.AST, scope: Scope, names: Names) -> list[tuple[ast.AST, Scope]]:
    """Return the children of a node, each with the scope that its names belong to."""
    if isinstance(node, ast.ClassDef):
        inner, inside = Scope(node=node, outer=scope), list[ast.AST](node.body)
    elif isinstance(node, _FUNCTIONS):
        inner = Scope(node=node, outer=scope)
        inside = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
        arguments = list(ast.iter_child_nodes(node.args))
        names.scopes[node.args] = scope
        outside = [child for child in ast.iter_child_nodes(node) if child is not node.args and child not in inside]
        # Defaults are worked out where the function is defined.
        outside += [child for child in arguments if not isinstance(child, ast.arg)]
        inside += [child for child in arguments if isinstance(child, ast.arg)]
        return [(child, scope) for child in outside] + [(child, inner) for child in inside]
    else:
        inner, inside = scope, []
    return [(child, inner if child in inside else scope) for child in ast.iter_child_nodes(node)]


def _bound_names(node: ast.AST, names: Names) -> list[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        found = [(alias.asname or alias.name).split(".")[0] for alias in node.names]
        if "*" in found:
            names.star = max(names.star, node.lineno)
        return [name for name in found if name != "*"]
    return []
