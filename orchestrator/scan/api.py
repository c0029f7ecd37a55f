"""``Scan``: Talos's class, with Talos's arguments, run by whatever role this process has."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

from orchestrator.errors import EmptySpaceError, InputError, ParamsTypeError, ParamsValueError
from orchestrator.scan.arguments import check_options
from orchestrator.scan.call import ScanCall
from orchestrator.scan.reduction import Reducer
from orchestrator.scan.result import ScanResult
from orchestrator.scan.rules import Reduction, Target, read_deadline
from orchestrator.scan.session import current_session
from orchestrator.scan.split import split_data
from orchestrator.scan.trial import Trials
from orchestrator.space import ParamSpace


class Scan(ScanResult):
    """Run ``model`` on every row of ``params`` and hold the merged result.

    The arguments are those of ``talos.Scan`` 2.0.10, in its order. Outside a sweep the trials run in this process, one
    after another; in a sweep's driver they run on the workers, and the constructor returns when all are done. A trial that
    raises costs that trial: it is in ``failures``, not in ``data``. Raises ParamsTypeError, ParamsValueError (also
    TypeError and ValueError), ContractError, all before or at the first trial.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        params: Any,
        model: Callable[..., Any],
        experiment_name: Optional[str] = None,
        x_val: Any = None,
        y_val: Any = None,
        val_split: float = 0.3,
        multi_input: bool = False,
        random_method: str = "uniform_mersenne",
        seed: Optional[int] = None,
        performance_target: Any = None,
        fraction_limit: Any = None,
        round_limit: Any = None,
        time_limit: Optional[str] = None,
        boolean_limit: Optional[Callable[[dict[str, Any]], bool]] = None,
        reduction_method: Any = None,
        reduction_interval: int = 50,
        reduction_window: int = 20,
        reduction_threshold: float = 0.2,
        reduction_metric: str = "val_acc",
        minimize_loss: bool = False,
        disable_progress_bar: bool = False,
        print_params: bool = False,
        clear_session: bool = True,
        save_weights: bool = True,
        save_models: bool = False,
        **options: Any,
    ) -> None:
        arguments = {key: value for key, value in locals().items() if key not in ("self", "options", "__class__")}
        check_options(options, arguments)
        self.__dict__.update(arguments)
        if not callable(model):
            raise ParamsTypeError(f"model is a {type(model).__name__}: give the function that trains one model")
        session = current_session()
        self.seed = _checked_seed(seed)
        base_seed = self.seed if self.seed is not None else session.seed
        self.custom_val_split = x_val is not None or y_val is not None
        self.first_round = False
        data = _data(self, base_seed)
        self.x_train, self.y_train, self.x_val, self.y_val = data
        try:
            space = _space(self, base_seed)
        except EmptySpaceError as error:
            raise _as_talos_has_it(error) from None
        self.param_object = space
        trials = Trials(
            model=model,
            data=data,
            domain=space.domain,
            selection=space.selection,
            base_seed=base_seed,
            clear_session=clear_session,
            print_params=print_params,
            shard_namespace=space.shard_namespace,
        )
        reduction = Reduction.read(arguments["reduction_method"], arguments["reduction_interval"])
        call = ScanCall(
            experiment_name=str(arguments["experiment_name"]),
            trials=trials,
            seed=self.seed,
            objective=arguments["reduction_metric"],
            minimize=arguments["minimize_loss"],
            keep=save_weights or save_models,
            progress=not disable_progress_bar,
            target=Target.read(performance_target),
            deadline=read_deadline(time_limit),
            reduction=reduction,
            reducer=Reducer(trials, arguments) if reduction is not None else None,
        )
        self._settle(call, session.run(call))


def _as_talos_has_it(error: EmptySpaceError) -> EmptySpaceError:
    """Give an error that scripts catch as Talos's own too: some skip an empty Scan that way."""
    module = sys.modules.get("talos.utils.exceptions")
    theirs = getattr(module, "TalosDataError", None)
    return error if theirs is None else type(theirs.__name__, (EmptySpaceError, theirs), {})(str(error))


def _space(scan: Any, seed: Optional[int]) -> ParamSpace:
    """Read ``params``: a dictionary, or a ParamSpace (which brings its own limits)."""
    if isinstance(scan.params, ParamSpace):
        for name in ("fraction_limit", "round_limit", "boolean_limit"):
            if getattr(scan, name) is not None:
                raise ParamsValueError(f"{name} is given beside a ParamSpace: give it to the ParamSpace instead")
        return scan.params
    return ParamSpace(
        scan.params,
        random_method=scan.random_method,
        fraction_limit=scan.fraction_limit,
        round_limit=scan.round_limit,
        boolean_limit=scan.boolean_limit,
        seed=seed,
    )


def _data(scan: Any, seed: Optional[int]) -> tuple[Any, Any, Any, Any]:
    if (scan.x_val is None) != (scan.y_val is None):
        given, missing = ("x_val", "y_val") if scan.y_val is None else ("y_val", "x_val")
        raise ParamsValueError(f"{given} is given without {missing}: give both, or neither for val_split")
    if isinstance(scan.x, list) and not scan.multi_input:
        raise ParamsTypeError("x is a list: for a model with several inputs set multi_input=True, else give one array")
    if scan.x_val is not None:
        return scan.x, scan.y, scan.x_val, scan.y_val
    return split_data(scan.x, scan.y, scan.val_split, scan.multi_input, seed)


def _checked_seed(seed: Any) -> Optional[int]:
    try:
        return None if seed is None else int(seed)
    except (TypeError, ValueError):
        raise InputError(f"seed is {seed!r}: give a whole number, or None") from None
