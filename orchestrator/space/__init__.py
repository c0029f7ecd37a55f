"""The space of a sweep: what its parameters are, which rows are visited, and what identifies each.

Standard library only at import, on Python 3.9: it runs in any image that can serve as a worker.
"""

from __future__ import annotations

from orchestrator.space.callables import TAG
from orchestrator.space.domain import Domain
from orchestrator.space.identity import decode, encode, is_plain, label, param_hash, trial_id
from orchestrator.space.params import ParamSpace
from orchestrator.space.ranges import expand_range
from orchestrator.space.selection import Selection, select
from orchestrator.space.shards import DistributeParamSpace

__all__ = [
    "TAG",
    "DistributeParamSpace",
    "Domain",
    "ParamSpace",
    "Selection",
    "decode",
    "encode",
    "expand_range",
    "is_plain",
    "label",
    "param_hash",
    "select",
    "trial_id",
]
