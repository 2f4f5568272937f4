"""Which columns of a file are meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truecast.errors import FileError

__all__ = ["Names", "guess", "shown"]

_OUTCOMES = ("y", "outcome", "outcomes", "y_true", "label", "target", "actual", "observed", "event", "truth")
_SCORES = ("p", "prob", "probability", "score", "y_prob", "y_score", "y_pred", "forecast", "prediction", "p_hat")

_SHOWN = 20
_LONGEST = 1000


@dataclass(frozen=True)
class Names:
    """The columns of the rounds.

    Attributes
    ----------
    outcome : str
    scores : tuple of str
    weight, group : str or None
    also : tuple of str
        Others that are to be read along.
    repeated : bool
        Whether rows may be about a forecast made before, and have no score of their own.
    """

    outcome: str
    scores: tuple[str, ...] = ()
    weight: str | None = None
    group: str | None = None
    also: tuple[str, ...] = ()
    repeated: bool = False

    @property
    def all(self) -> tuple[str, ...]:
        """Every column once, in order."""
        return tuple(dict.fromkeys([self.outcome, *self.scores, *filter(None, (self.weight, self.group)), *self.also]))


def guess(
    name: str,
    columns: Sequence[str],
    *,
    outcome: str | None = None,
    scores: Sequence[str] | None = (),
    weight: str | None = None,
    group: str | None = None,
) -> Names:
    """Return the columns that were given, and for what was not those whose names suggest themselves.

    Parameters
    ----------
    name
        Of the file, for messages.
    columns
        What it has.
    outcome, scores, weight, group
        What was given. An outcome and a score are looked for if they were not; None for scores that are not needed.
    """
    if not columns:
        raise FileError(name, "has no columns")
    longest = max(map(len, columns))
    if longest > _LONGEST:
        raise FileError(name, f"is no table: the name of a column has {longest:,} letters")
    given = [("outcome", outcome), *(("score", score) for score in scores or ()), ("weight", weight), ("by", group)]
    for option, column in given:
        if column is not None and columns.count(column) != 1:
            how_many = f"has {columns.count(column)} columns" if column in columns else "has no column"
            raise FileError(name, f"{how_many} {column!r} (--{option}); it has {_listed(columns)}")
    outcome = outcome or _likely(name, columns, "outcome", _OUTCOMES)
    if scores is not None and not scores:
        others = [column for column in columns if column != outcome]
        if not others:
            raise FileError(name, f"has one column, {outcome!r}, and so none for the score")
        scores = (_likely(name, others, "score", _SCORES),)
    if outcome in (scores or ()):
        raise FileError(name, f"cannot have outcome and score in one column: got {outcome!r} for both")
    return Names(outcome, tuple(scores or ()), weight, group)


def _likely(name: str, columns: Sequence[str], option: str, likely: Sequence[str]) -> str:
    """Return the one column, or the one whose name is likely."""
    if len(columns) == 1:
        return columns[0]
    found = [column for column in columns if column.lower() in likely]
    if len(found) != 1:
        how_many = "several columns that may be" if found else "no column that is called like"
        raise FileError(name, f"has {how_many} the {option}: name it by --{option}; it has {_listed(columns)}")
    return found[0]


def _listed(columns: Sequence[str]) -> str:
    listed = ", ".join(map(shown, columns[:_SHOWN]))
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    return f"{listed:.500}{more}"


def shown(name: str) -> str:
    """Return a name as it can stand in a message, which is a line: quoted if it is not plain."""
    return name if name.isprintable() and name.strip() == name != "" else repr(name)
