"""KServe's Open Inference Protocol, version 2: a stream is a model.

Inputs: `score` (FP64, [n], or [n, K] for K classes), and if you like `id` and `group` (BYTES, [n]).
Outputs: `p`, of the same shape as `score`, and `id`, to send outcomes with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

import truecast
from truecast.errors import InputError
from truecast.serve.http.bodies import decoded, rows_of
from truecast.serve.http.exchange import Answer, Request, json_answer
from truecast.serve.http.routes import Route
from truecast.serve.http.system import Alive, Ready, alive, ready
from truecast.serve.rows import ForecastRow

__all__ = ["ROUTES"]

_NUMBERS = {"FP64", "FP32"}
_MOST_DIMENSIONS = 2


class Tensor(msgspec.Struct, frozen=True, omit_defaults=True):
    """A named array: its data row by row, flat or nested."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]
    parameters: dict[str, Any] | None = None


class Asked(msgspec.Struct, frozen=True):
    """The name of an output."""

    name: str
    parameters: dict[str, Any] | None = None


class InferenceRequest(msgspec.Struct, frozen=True):
    """Scores to be answered."""

    inputs: list[Tensor]
    id: str | None = None
    parameters: dict[str, Any] | None = None
    outputs: list[Asked] | None = None


class InferenceAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answers."""

    model_name: str
    model_version: str
    outputs: list[Tensor]
    id: str | None = None


class TensorInfo(msgspec.Struct, frozen=True):
    """What a tensor looks like; -1 stands for any number of rows."""

    name: str
    datatype: str
    shape: list[int]


class ModelInfo(msgspec.Struct, frozen=True):
    """What a stream takes and gives."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]


class ServerInfo(msgspec.Struct, frozen=True):
    """Which server this is."""

    name: str
    version: str
    extensions: list[str]


_decoder = msgspec.json.Decoder(InferenceRequest)


async def server(request: Request) -> Answer:
    """Say which server this is."""
    return json_answer(ServerInfo("truecast", truecast.__version__, []))


async def model(request: Request) -> Answer:
    """Say what a stream takes and gives."""
    classes = (await request.app.service.sight(request.name)).view.classes
    shape = [-1] if classes is None else [-1, len(classes)]
    ids = TensorInfo("id", "BYTES", [-1])
    inputs = [TensorInfo("score", "FP64", shape), ids, TensorInfo("group", "BYTES", [-1])]
    outputs = [TensorInfo("p", "FP64", shape), ids]
    return json_answer(ModelInfo(request.name, ["1"], "truecast", inputs, outputs))


async def model_ready(request: Request) -> Answer:
    """Say whether a stream can answer."""
    await request.app.service.sight(request.name)  # or a problem
    return json_answer(Ready(True))


async def infer(request: Request) -> Answer:
    """Answer scores."""
    body = decoded(_decoder, request.body)
    inputs = {tensor.name: tensor for tensor in body.inputs}
    for name in inputs:
        if name not in ("score", "id", "group"):
            raise InputError("inputs", "must be named score, id or group", name)
    if "score" not in inputs or len(inputs) < len(body.inputs):
        raise InputError("inputs", "must have `score`, each name once", sorted(inputs))
    scores = _scores(inputs["score"])
    rows_of("inputs", scores, request.app.limits.rows)
    ids, groups = (_texts(inputs.get(name), name, len(scores)) for name in ("id", "group"))
    wanted = [asked.name for asked in body.outputs or ()] or ["p", "id"]
    for name in wanted:
        if name not in ("p", "id"):
            raise InputError("outputs", "must be named p or id", name)
    rows = [ForecastRow(*row) for row in zip(scores, ids, groups, strict=True)]
    answers = await request.app.service.forecasts(request.name, rows)
    p = list(_flat([answer.p for answer in answers]))
    tensors = {
        "p": Tensor("p", inputs["score"].shape, "FP64", p),
        "id": Tensor("id", [len(answers)], "BYTES", [answer.id for answer in answers]),
    }
    chosen = [tensors[name] for name in wanted]
    return json_answer(InferenceAnswer(request.name, "1", chosen, body.id))


def _scores(tensor: Tensor) -> list[float | list[float]]:
    """Return a tensor's rows."""
    if tensor.datatype not in _NUMBERS:
        raise InputError("datatype", "of score must be FP64 or FP32", tensor.datatype)
    floats = [_float(number, position) for position, number in enumerate(_data(tensor))]
    if len(tensor.shape) == 1:
        return list(floats)
    width = tensor.shape[1]
    return [floats[start : start + width] for start in range(0, len(floats), width)]


def _texts(tensor: Tensor | None, name: str, count: int) -> list[str | None]:
    """Return a column of names, None where there are none."""
    if tensor is None:
        return [None] * count
    if tensor.datatype != "BYTES" or tensor.shape != [count]:
        raise InputError(name, f"must be BYTES of shape [{count}]", tensor.shape)
    texts = _data(tensor)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(name, "must be text", text, position)
    return texts


def _data(tensor: Tensor) -> list[Any]:
    """Return the data in a row, if it fills the shape."""
    shape = tensor.shape
    if not 1 <= len(shape) <= _MOST_DIMENSIONS or min(shape) < 1:
        rule = "must be one or two whole numbers above 0"
        raise InputError("shape", rule, shape)
    data = list(_flat(tensor.data))
    if len(data) != math.prod(shape):
        raise InputError("data", f"must fill the shape {shape}", f"{len(data)} entries")
    return data


def _flat(data: list[Any]) -> Iterator[Any]:
    for each in data:
        if isinstance(each, list):
            yield from each
        else:
            yield each


def _float(number: Any, position: int) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InputError("data", "must be numbers", number, position)
    try:
        return float(number)
    except OverflowError:
        raise InputError("data", "must be numbers of double precision", number, position) from None


_MODEL = "/v2/models/{name}"

ROUTES = [
    Route("GET", "/v2", server, "read", "Open Inference Protocol: the server", gives=ServerInfo),
    Route("GET", "/v2/health/live", alive, None, "Open Inference Protocol: alive",
          gives=Alive),
    Route("GET", "/v2/health/ready", ready, None, "Open Inference Protocol: ready",
          gives=Ready, also={503: Ready}),
    Route("GET", _MODEL, model, "read", "Open Inference Protocol: what a stream takes and gives",
          gives=ModelInfo, refuses=(404, 503)),
    Route("GET", f"{_MODEL}/ready", model_ready, "read",
          "Open Inference Protocol: whether a stream is ready", gives=Ready, refuses=(404, 503)),
    Route("POST", f"{_MODEL}/infer", infer, "forecast", "Open Inference Protocol: forecasts",
          takes=InferenceRequest, gives=InferenceAnswer, refuses=(404, 409, 503)),
]  # fmt: skip
