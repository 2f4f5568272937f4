"""A frozen recalibrator as an ONNX model: to be run wherever ONNX runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from truecast import _check
from truecast.errors import InputError
from truecast.recalibrate import ScoreTable

__all__ = ["to_onnx"]

_TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
_OPSET = 13


def to_onnx(table: ScoreTable, *, dtype: str = "float32") -> onnx.ModelProto:
    """Return an ONNX model that maps `score` to `probability`, both vectors.

    The knots of the table, a search for the score among them, and a straight line between the two
    around it: operators of the standard set (opset 13), all in doubles whatever the type of the
    tensors. So the model says what the table says; in float32 it is rounded to that in the end, by
    less than 3e-8.

    ONNX has no errors for bad input: scores beyond the outermost knots get what is said there (0
    for -3, say), and nan gives nan. Check scores before.

    Parameters
    ----------
    table
        What `Recalibrator.to_table` returned.
    dtype
        Of scores and probabilities: "float32" or "float64". Scores that your model has as float32
        are the same numbers as float64; rounding doubles to float32 first can cross a jump of the
        map.

    Raises
    ------
    InputError
        If an argument breaks its rule.

    Examples
    --------
    >>> import truecast as tc
    >>> from truecast.adapters.onnx import to_onnx
    >>> model = to_onnx(tc.Recalibrator().to_table())
    >>> [node.name for node in model.graph.input], [node.name for node in model.graph.output]
    (['score'], ['probability'])

    Notes
    -----
    A score takes log2(knots) steps. The model has 24 to 32 bytes for each knot: 305 kB at 10,684.
    """
    if not isinstance(table, ScoreTable):
        raise InputError("table", "must be a ScoreTable, as Recalibrator.to_table gives it", table)
    kind = _TYPES[_check.choice("dtype", dtype, tuple(_TYPES))]
    graph = _Graph()
    steps = max(1, int(len(table) - 1).bit_length())
    inner = np.full(1 << steps, np.inf)  # a knot beyond the last is above every score
    inner[: len(table) - 1] = table.scores[:-1]  # and in the last gap one stays left of its end
    graph.constant("starts", inner)
    graph.constant("scores", np.asarray(table.scores))
    graph.constant("probabilities", np.asarray(table.probabilities))
    graph.constant("low", np.asarray(table.scores[0]))
    graph.constant("high", np.asarray(table.scores[-1]))
    graph.node("Cast", ["score"], "given", to=TensorProto.DOUBLE)
    graph.node("Clip", ["given", "low", "high"], "at")
    left = _search(graph, steps)
    graph.constant("one", np.array(1))
    graph.node("Add", [left, "one"], "right")
    _line(graph, left)
    graph.node("Cast", ["found"], "probability", to=kind)
    return _model(graph, kind, table)


def _search(graph: _Graph, steps: int) -> str:
    """Find the last knot at or below the score, bit by bit: invariant, starts[left] <= score."""
    graph.node("Shape", ["at"], "shape")
    first = numpy_helper.from_array(np.zeros(1, np.int64))
    graph.node("ConstantOfShape", ["shape"], "left_0", value=first)
    left = "left_0"
    for step in range(steps):
        graph.constant(f"step_{step}", np.array(1 << (steps - 1 - step)))
        graph.node("Add", [left, f"step_{step}"], f"next_{step}")
        graph.node("Gather", ["starts", f"next_{step}"], f"start_{step}")
        graph.node("GreaterOrEqual", ["at", f"start_{step}"], f"beyond_{step}")
        graph.node("Where", [f"beyond_{step}", f"next_{step}", left], f"left_{step + 1}")
        left = f"left_{step + 1}"
    return left


def _line(graph: _Graph, left: str) -> None:
    """Go straight from the knot on the left to that on the right."""
    for column in ("scores", "probabilities"):
        graph.node("Gather", [column, left], f"{column}_left")
        graph.node("Gather", [column, "right"], f"{column}_right")
        graph.node("Sub", [f"{column}_right", f"{column}_left"], f"{column}_gap")
    graph.node("Sub", ["at", "scores_left"], "run")
    graph.node("Div", ["run", "scores_gap"], "share")
    graph.node("Mul", ["share", "probabilities_gap"], "rise")
    graph.node("Add", ["probabilities_left", "rise"], "found")


class _Graph:
    """Nodes and constants, in the order in which they were added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, kind: str, inputs: list[str], output: str, **options: Any) -> None:
        self.nodes.append(helper.make_node(kind, inputs, [output], **options))

    def constant(self, name: str, value: np.ndarray[Any, Any]) -> None:
        self.constants.append(numpy_helper.from_array(value, name))


def _model(graph: _Graph, kind: int, table: ScoreTable) -> onnx.ModelProto:
    ends = [
        helper.make_tensor_value_info(name, kind, ["rounds"]) for name in ("score", "probability")
    ]
    made = helper.make_graph(graph.nodes, "recalibrated", ends[:1], ends[1:], graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    model.producer_name = "truecast"
    told = {name: table.to_dict()[name] for name in ("scale", "group", "rounds", "error")}
    helper.set_model_props(model, {name: str(value) for name, value in told.items()})
    onnx.checker.check_model(model)
    return model
