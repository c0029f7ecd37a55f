"""The grid: exact counts, mixed radix, descriptions and adoption."""

from __future__ import annotations

import ast
import itertools
import json
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orchestrator.space
from orchestrator.errors import SpaceMismatchError
from orchestrator.space import Domain, ParamSpace

SMALL = st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1)
ROOT = Path(orchestrator.space.__file__).parents[2]


class Plain:
    """An instance with the default repr, which shows an address."""


def through_json(description):
    return json.loads(json.dumps(description, allow_nan=False))


@given(SMALL)
def test_the_grid_is_the_product_in_dict_order_with_the_last_key_fastest(params):
    domain = Domain.of(params)
    expected = [dict(zip(params, row, strict=True)) for row in itertools.product(*params.values())]
    assert [domain.at(index) for index in range(domain.total)] == expected
    assert list(domain.at(0)) == list(params)


def test_an_index_outside_the_grid_is_an_index_error():
    domain = Domain.of({"a": [1, 2]})
    for index in (-1, 2):
        with pytest.raises(IndexError, match="2 combinations"):
            domain.at(index)


def test_a_grid_of_ten_to_the_eighteen_is_counted_exactly():
    space = ParamSpace({f"k{number}": list(range(10)) for number in range(18)})
    assert space.dimensions == len(space) == space.size == 10**18
    assert list(space.row(10**18 - 1).values()) == [9] * 18
    assert list(space.row(-2).values()) == [9] * 17 + [8]


def test_forty_two_keys_of_ten_values_are_counted_exactly():
    space = ParamSpace({f"k{number}": list(range(10)) for number in range(42)})
    assert space.dimensions == space.size == 10**42
    assert space
    assert space.row(10**41)["k0"] == 1
    assert next(space.rows()) == dict.fromkeys(space.param_keys, 0)


def test_a_row_is_a_new_dict_each_time():
    space = ParamSpace({"a": [1]})
    space.row(0)["a"] = 99
    assert space.row(0) == {"a": 1}


def test_a_description_is_json_and_holds_no_address():
    domain = Domain.of({"a": [len, lambda x: x, Plain(), np.float64(0.5), float("nan"), {1, 2}], "b": (0, 4, 4)})
    text = json.dumps(domain.describe(), allow_nan=False)
    assert "0x" not in text
    assert '"size": 6' in text
    assert domain.describe()[1] == {"key": "b", "size": 4, "values": [0, 1, 2, 3]}


def test_more_than_ten_thousand_candidates_are_described_by_a_digest():
    large, larger = Domain.of({"a": list(range(10_001))}), Domain.of({"a": list(range(1, 10_002))})
    assert set(large.describe()[0]) == {"key", "size", "digest"}
    assert set(Domain.of({"a": list(range(10_000))}).describe()[0]) == {"key", "size", "values"}
    assert large.fingerprint() != larger.fingerprint()
    assert large.adopt(through_json(large.describe())).values == large.values
    with pytest.raises(SpaceMismatchError, match="'a'"):
        large.adopt(larger.describe())


def test_a_fingerprint_tells_apart_order_values_and_kinds_of_number():
    one = Domain.of({"a": [1], "b": [2]}).fingerprint()
    others = [
        {"b": [2], "a": [1]},
        {"a": [1.0], "b": [2]},
        {"a": [True], "b": [2]},
        {"a": [np.int64(1)], "b": [2]},
    ]
    assert one == Domain.of({"a": [1], "b": [2]}).fingerprint()
    assert len({one, *(Domain.of(other).fingerprint() for other in others)}) == 5


def test_a_fingerprint_is_the_same_in_another_process():
    code = (
        "import random\nfrom orchestrator.space import Domain\n"
        "class Mine: pass\n"
        "def make(n):\n    return lambda x: x + n\n"
        "values = [Mine, Mine(), make(1), random.random, {'b', 'a', 'c'}, frozenset({'x', 'y'})]\n"
        "print(Domain.of({'a': values}).fingerprint())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 64


def test_plain_values_are_adopted_from_the_plan_and_others_stay_this_processs_own():
    mine = [len, (1, 2), np.float64(0.5), b"x", {1}, float("inf")]
    planned = Domain.of({"lr": [0.25, 0.5, {"k": [1]}], "fn": list(mine)})
    here = Domain.of({"lr": [secrets.randbelow(9), secrets.randbelow(9), {"k": [2]}], "fn": mine})
    adopted = here.adopt(through_json(planned.describe()))
    assert adopted.values[0] == (0.25, 0.5, {"k": [1]})
    assert all(one is other for one, other in zip(adopted.values[1], mine, strict=True))
    assert adopted.fingerprint() == planned.fingerprint()


@pytest.mark.parametrize(
    ("here", "key", "words"),
    [
        ({"a": [1, 2]}, "'f'", "missing"),
        ({"a": [1, 2], "f": [len], "z": [1]}, "'z'", "not in the plan"),
        ({"f": [len], "a": [1, 2]}, "'a'", "order"),
        ({"a": [1, 2, 3], "f": [len]}, "'a'", "2 candidates in the plan and 3"),
        ({"a": [1, 2], "f": [max]}, "'f'", "len in the plan and max"),
        ({"a": [1, 2], "f": [5]}, "'f'", "candidate 0"),
        ({"a": [1, np.int64(2)], "f": [len]}, "'a'", "candidate 1"),
    ],
)
def test_another_space_is_refused_by_the_name_of_the_key(here, key, words):
    planned = through_json(Domain.of({"a": [1, 2], "f": [len]}).describe())
    with pytest.raises(SpaceMismatchError) as caught:
        Domain.of(here).adopt(planned)
    assert key in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_full_grid_of_lists_needs_only_the_standard_library():
    code = (
        "import sys\nbefore = set(sys.modules)\n"
        "from orchestrator.space import DistributeParamSpace, param_hash\n"
        "shards = DistributeParamSpace({'a': [1, 2], 'b': ['x', len]}, seed=1).param_spaces\n"
        "print([param_hash(row) for shard in shards.values() for row in shard.rows()])\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "sys.exit(str(sorted(new - sys.stdlib_module_names - {'orchestrator'})) if new - sys.stdlib_module_names - {'orchestrator'} else 0)\n"
    )
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=True)


def test_the_package_is_written_for_python_3_9_in_small_files():
    for path in sorted(Path(orchestrator.space.__file__).parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, feature_version=(3, 9))
        assert "from __future__ import annotations" in text
        assert len(text.splitlines()) < 250, path
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        assert [f"{path.name}:{node.name}" for node in functions if node.end_lineno - node.lineno >= 40] == []
