"""Every error that this program raises on purpose.

Each class carries the exit code of the command line (see ``docs/architecture.md``). A message is one line:
what, on what, and what to do next.

    OrchestratorError                  1   something of ours is wrong
    ├── InputError                     2   what the user asked for cannot be done
    │   ├── ParamsTypeError            2   a parameter value has the wrong type (also a TypeError)
    │   ├── ParamsValueError           2   a parameter value is malformed (also a ValueError)
    │   ├── SpaceMismatchError         2   a worker's parameter space is not the planned one
    │   ├── ContractError              2   the model function returned something else (also a TypeError)
    │   ├── ScriptError                2   the script is missing, not Python, or never calls Scan
    │   └── SettingsError              2   a flag, variable or configuration key
    ├── RecordError                    1   a file of a sweep is damaged: names file and line
    ├── StoppedError                   4   the sweep was stopped before its end
    └── EnvironmentNotReadyError       5   Docker, a GPU, an image, the disk
        ├── EngineError                5   the engine does not answer, or refused
        │   └── ViewRefusedError       5   it cannot give a copy-on-write view; caught, a copy is made instead
        └── ImageError                 5   an image is missing or cannot be built

Standard library only: it is imported in the container, on Python 3.9.
"""

from __future__ import annotations


class OrchestratorError(Exception):
    """The root of all of them; ``exit_code`` is what the command line ends with."""

    exit_code = 1


class InputError(OrchestratorError):
    """What was asked for cannot be done as asked."""

    exit_code = 2


class ParamsTypeError(InputError, TypeError):
    """A parameter dictionary or one of its values has the wrong type."""


class ParamsValueError(InputError, ValueError):
    """A parameter value, range or limit is malformed."""


class EmptySpaceError(ParamsValueError):
    """The limits leave no row."""


class SpaceMismatchError(InputError):
    """The space that the script built here is not the one that was planned; the message names the key."""


class ContractError(InputError, TypeError):
    """The model function returned something that is not a result."""


class ScriptError(InputError):
    """The script cannot be run as a sweep."""


class SettingsError(InputError):
    """A flag, an environment variable or a configuration key is unknown or malformed."""


class RecordError(OrchestratorError):
    """A file of a sweep is damaged; the message names the file and the line."""


class StoppedError(OrchestratorError):
    """The sweep ended before all of its trials were run."""

    exit_code = 4


class EnvironmentNotReadyError(OrchestratorError):
    """Something outside this program has to be set up first."""

    exit_code = 5


class EngineError(EnvironmentNotReadyError):
    """The engine does not answer, or refused what it was asked."""


class ViewRefusedError(EngineError):
    """The engine cannot give a copy-on-write view of the project; a copy made beforehand is the way out."""


class ImageError(EnvironmentNotReadyError):
    """An image is missing or cannot be built."""
