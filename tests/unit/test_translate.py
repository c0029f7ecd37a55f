"""docker-py's errors become ours, each with what to do."""

from __future__ import annotations

import gc

import docker
import pytest
import requests.exceptions
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from orchestrator.engine.translate import engine_errors
from orchestrator.errors import EngineError, ImageError, InputError


def connection_error(cause):
    return requests.exceptions.ConnectionError(ProtocolError("Connection aborted.", cause))


@pytest.mark.parametrize(
    ("cause", "advice"),
    [
        (FileNotFoundError(2, "No such file"), "no Docker Engine answers: start Docker"),
        (PermissionError(13, "Permission denied"), "join the docker group"),
        (ConnectionRefusedError(111, "refused"), "refuses connections"),
        (OSError(32, "Broken pipe"), "broke off"),
    ],
)
def test_an_engine_that_cannot_be_reached_says_why_and_what_to_do(cause, advice):
    with pytest.raises(EngineError, match=advice) as caught, engine_errors("list containers"):
        raise connection_error(cause)
    assert str(caught.value).startswith("cannot list containers: ")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value.__cause__, requests.exceptions.ConnectionError)


def test_the_reason_is_found_behind_a_docker_exception():
    def construct():
        try:
            raise connection_error(FileNotFoundError(2, "No such file"))
        except requests.exceptions.ConnectionError as error:
            raise docker.errors.DockerException("Error while fetching server API version") from error

    with pytest.raises(EngineError, match="no Docker Engine answers"), engine_errors("start"):
        construct()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_real_client_without_a_socket_is_translated(tmp_path):
    with pytest.raises(EngineError, match="no Docker Engine answers"), engine_errors("reach the engine"):
        docker.DockerClient(base_url=f"unix://{tmp_path}/none.sock")
    # docker-py leaves the socket that could not connect to the collector: let that be here, not in another test.
    gc.collect()


@pytest.mark.parametrize(
    "error",
    [
        requests.exceptions.ReadTimeout("read timed out"),
        requests.exceptions.ConnectionError(ReadTimeoutError(None, "", "Read timed out.")),
    ],
)
def test_both_forms_of_a_timeout_are_one(error):
    with pytest.raises(EngineError, match="did not answer in time"), engine_errors("wait"):
        raise error


def test_a_missing_image_is_an_image_error_with_the_next_command():
    with pytest.raises(ImageError, match=r"No such image: x:1 \(`talos-orch build`"), engine_errors("create"):
        raise docker.errors.ImageNotFound("404", explanation="No such image: x:1")


@pytest.mark.parametrize("kind", [docker.errors.APIError, docker.errors.NotFound])
def test_a_refusal_is_told_in_the_engines_words_on_one_line(kind):
    with pytest.raises(EngineError, match=r"cannot start: no space left on device$"), engine_errors("start"):
        raise kind("500", explanation=b"no space\n left on device")


@pytest.mark.parametrize(
    "error",
    [
        docker.errors.StreamParseError("bad"),
        docker.errors.InvalidVersion("old"),
        docker.errors.NullResource("none"),
        requests.exceptions.ChunkedEncodingError("cut"),
    ],
)
def test_every_family_is_translated(error):
    with pytest.raises(EngineError), engine_errors("follow the log"):
        raise error


def test_errors_of_our_own_and_of_python_pass_through():
    with pytest.raises(InputError, match="mine"), engine_errors("x"):
        raise InputError("mine")
    with pytest.raises(KeyError), engine_errors("x"):
        raise KeyError("y")
