"""What a recalibrator says now, as a table of knots: to be read without truecast."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check
from truecast.errors import StateError
from truecast.recalibrate.tracing import interpolated, trace

__all__ = ["ScoreTable"]

FORMAT = "truecast score table"
VERSION = 1
_FARTHEST = 6460.0  # log-odds from which on hints tell none apart
_ENTRIES = {"scale", "group", "rounds", "tolerance", "error", "scores", "probabilities"}


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """A map from scores to probabilities, frozen: what `Recalibrator.to_table` returns.

    Between neighbouring knots the map is a straight line, beyond the outermost it is constant.
    Where the map jumps, two knots are neighbouring doubles: keep scores in doubles, and read JSON
    without rounding.

    It learns nothing, and nothing is proved of it: the certificate is that of the recalibrator. As
    what scores mean changes, make a new one.

    Attributes
    ----------
    scores : array
        The knots, increasing.
    probabilities : array
        What the recalibrator said there.
    scale : str
        "probability" or "logit": what scores are.
    group : str, int, tuple or None
        For whom this is: a group, several at once, or None for rounds that are of no group.
    rounds : int
        Outcomes that the recalibrator had learned.
    tolerance : float
        How far from the recalibrator the table may be.
    error : float
        The largest difference found, at every knot that was considered and at several scores
        between any two. Not a proof for all others.

    Examples
    --------
    >>> import truecast as tc
    >>> r = tc.Recalibrator()
    >>> said = r.forecast_many([0.9] * 100, [1, 0] * 50)
    >>> table = r.to_table()
    >>> bool(abs(table(0.7) - r.predict(0.7)) < 1e-6), table.error < 1e-6
    (True, True)
    >>> tc.ScoreTable.from_json(table.to_json())(0.7) == table(0.7)
    True
    """

    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    scale: str = "probability"
    group: Any = None
    rounds: int = 0
    tolerance: float = 0.0
    error: float = 0.0

    def __call__(self, scores: ArrayLike) -> Any:
        """Return the probability for each score, or for one.

        Raises
        ------
        InputError
            If a score is not in [0, 1], or not finite where they are log-odds.
        """
        given = np.asarray(scores)
        x = _check.scores("scores", given.reshape(-1), scale=self.scale)
        found = interpolated(self.scores, self.probabilities, x)
        return float(found[0]) if given.ndim == 0 else found.reshape(given.shape)

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        return f"ScoreTable of {len(self):,} knots, within {self.error:.1e} of the recalibrator"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "scale": self.scale,
            "group": list(self.group) if isinstance(self.group, tuple) else self.group,
            "rounds": self.rounds,
            "tolerance": self.tolerance,
            "error": self.error,
            "scores": self.scores.tolist(),
            "probabilities": self.probabilities.tolist(),
        }

    def to_json(self) -> str:
        """Return it as JSON that any language can read; numbers have all their digits."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the table that `to_json` saved.

        Raises
        ------
        StateError
            If this is not a saved table.
        """
        try:
            saved = json.loads(text)
        except (TypeError, ValueError) as error:
            raise StateError(f"this is not a saved table: {error}") from error
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            raise StateError("this is not a saved table: it has another format")
        if saved.get("version") != VERSION:
            raise StateError(f"the saved table must have version {VERSION}")
        if not set(saved) >= _ENTRIES:
            raise StateError("the saved table must have all of its entries")
        x, p = _columns(saved["scores"], saved["probabilities"], saved["scale"])
        group = saved["group"]
        named = tuple(group) if isinstance(group, list) else group
        rest = (saved[name] for name in ("rounds", "tolerance", "error"))
        return cls(x, p, saved["scale"], named, *rest)


def table_of(
    predict: Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.int64]]],
    scale: str,
    group: Any,
    rounds: int,
    tolerance: float,
) -> ScoreTable:
    """Return the table of what is predicted, with the pieces of the map that this lies on."""
    scores, probabilities, error = trace(predict, _start(scale), tolerance)
    for column in (scores, probabilities):
        column.setflags(write=False)
    return ScoreTable(scores, probabilities, scale, group, rounds, tolerance, error)


def _start(scale: str) -> NDArray[np.float64]:
    """Return scores to begin with: fine enough for all that hints tell apart."""
    if scale == "logit":
        fine = np.linspace(-48, 48, 96 * 64 + 1)
        far = np.geomspace(48, _FARTHEST, 512)
        return np.concatenate((-far, fine, far))
    even = np.linspace(0, 1, (1 << 13) + 1)
    small = 2.0 ** -np.arange(13, 1074.5, 0.25)
    return np.concatenate((even, small, 1 - small[small > 2.0**-53]))


def _columns(
    scores: Any, probabilities: Any, scale: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return saved knots, if they are some."""
    if scale not in ("probability", "logit"):
        raise StateError(f"the saved scale must be 'probability' or 'logit', got {scale!r:.80}")
    columns = []
    for name, values in (("scores", scores), ("probabilities", probabilities)):
        if not isinstance(values, list) or not all(type(each) is float for each in values):
            raise StateError(f"the saved {name} must be floats")
        columns.append(np.array(values))
    x, p = columns
    if len(x) != len(p) or len(x) < 2 or not (np.diff(x) > 0).all() or not np.isfinite(x).all():
        raise StateError("the saved scores must increase, one for each probability, at least two")
    if not ((p >= 0) & (p <= 1)).all() or (scale == "probability" and not (0 <= x[0] < x[-1] <= 1)):
        raise StateError("the saved probabilities, and scores that are such, must be from 0 to 1")
    for column in columns:
        column.setflags(write=False)
    return x, p
