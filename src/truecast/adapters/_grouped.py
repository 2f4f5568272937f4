"""From the groups of a GROUP BY to a tally: what the adapters of tables and files share."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.errors import InputError
from truecast.reading import read_rounds
from truecast.tally import Tally

Groups = Mapping[str, "np.ma.MaskedArray[Any, np.dtype[Any]]"]


class Columns(NamedTuple):
    """The names of the columns."""

    outcome: str
    score: str
    weight: str | None

    @property
    def given(self) -> dict[str, str]:
        """The column of each argument that was not left out."""
        return {argument: name for argument, name in self._asdict().items() if name is not None}

    @property
    def letters(self) -> dict[str, str]:
        """The columns by their letters: y, p, and w if there are weights."""
        return {letter: name for letter, name in zip("ypw", self, strict=True) if name is not None}

    def check(self, available: Sequence[str]) -> None:
        """Refuse a column that does not exist."""
        for argument, name in self.given.items():
            if name not in available:
                rule = "must be a column of the data, which has " + (
                    ", ".join(map(repr, available)) or "none"
                )
                raise InputError(argument, rule, name)


def refuse_type(name: str, kind: object) -> NoReturn:
    """Raise the error of a column whose type is not a number's."""
    raise InputError(name, "must be a column of bool, integers or floats", str(kind))


def of_files(data: str | Path, columns: Columns, by_engine: Callable[[], Tally]) -> Tally:
    """Return the tally of files, by the reader that the command has, too.

    Parquet is counted by an engine, which is faster, as long as it finds nothing wrong; what is
    wrong with it, and where, the reader says.

    Parameters
    ----------
    data
        A path; `*` and `?` match names.
    columns
        What to read.
    by_engine
        Counts Parquet.
    """
    path = str(data)
    refusal: InputError | None = None
    if path.lower().endswith((".parquet", ".pq")) and columns.outcome != columns.score:
        try:
            tally = by_engine()
        except InputError as error:
            refusal = error
        else:
            if tally.total:
                return tally
    outcome, score, weight = columns
    try:
        files = (
            read_rounds(file, outcome=outcome, score=score, weight=weight)
            for file in _matching(path)
        )
        return Tally.merge(file.tally() for file in files)
    except ImportError as error:
        raise refusal or error from None


def _matching(path: str) -> list[str]:
    """Return the files of a path; itself if there are none, to be refused by who reads it."""
    return [path] if Path(path).exists() else sorted(glob.glob(path)) or [path]


@contextmanager
def refusing(data: object, *errors: type[Exception]) -> Iterator[None]:
    """Turn the errors of a framework into an InputError that says why."""
    try:
        yield
    except errors as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError("data", f"must be readable ({reason})", data) from error


def tally(columns: Columns, groups: Groups) -> Tally:
    """Return the tally of rounds that were grouped by forecast and outcome.

    Parameters
    ----------
    columns
        How messages call the columns.
    groups
        For each group `y`, `p` (masked if missing) and `rows`. With weights also how many are
        `missing`, the `low` one that is not 0 (masked if all are) and the `high` one, their
        `total`, and whether all are `whole` numbers that count.
    """
    if not len(groups["rows"]):
        return Tally()
    rows = np.asarray(groups["rows"], np.int64)
    y = _values(columns.outcome, groups["y"], rows)
    p = _values(columns.score, groups["p"], rows)
    _refuse_any(columns.outcome, "must be 0 or 1", y, (y != 0) & (y != 1))
    _refuse_any(columns.score, "must be between 0 and 1", p, ~((p >= 0) & (p <= 1)))
    weights = rows if columns.weight is None else _weights(columns.weight, groups, rows)
    # merges what the framework held to be different
    return Tally.from_predictions(y, p, sample_weight=weights)


def _values(name: str, values: Any, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    _refuse_missing(name, int(rows[np.ma.getmaskarray(values)].sum()), rows)
    return np.asarray(values, np.float64)


def _weights(name: str, groups: Groups, rows: NDArray[np.int64]) -> NDArray[Any]:
    _refuse_missing(name, int(groups["missing"].sum()), rows)
    low, high, total = (
        np.asarray(np.ma.filled(groups[key], 0), np.float64) for key in ("low", "high", "total")
    )
    nan = np.where(np.isnan(total) & (high < np.inf), total, high)  # a maximum may pass over nan
    rule = "must be finite and not negative"
    _refuse_any(name, rule, low, ~(low >= 0))
    _refuse_any(name, rule, nan, ~(nan < np.inf))
    least, most = _check.WEIGHTS
    rule = f"must be 0, or from {least:g} to {most:g}"
    _refuse_any(name, rule, low, (low > 0) & (low < least))
    _refuse_any(name, rule, high, high > most)
    if not groups["whole"].all():
        return total
    if total.sum() >= _check.MOST_ROUNDS:  # below, sums of whole doubles are exact
        raise InputError(name, f"must sum to less than {_check.MOST_ROUNDS}", total.sum().item())
    return total.astype(np.int64)


def _refuse_missing(name: str, missing: int, rows: NDArray[np.int64]) -> None:
    if missing:
        raise InputError(name, f"must not be missing ({missing} of {rows.sum()} are)", None)


def _refuse_any(name: str, rule: str, values: NDArray[np.float64], bad: NDArray[np.bool_]) -> None:
    if bad.any():
        raise InputError(name, rule, values[bad].min().item())  # whatever the order of the groups
