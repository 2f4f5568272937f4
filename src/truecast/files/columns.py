"""Which columns of a file are meant."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from truecast._names import cut_in_the_middle
from truecast.errors import FileError, shown
from truecast.files.cells import CellFormat

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Names", "brief", "check_there", "guess"]

Sample = Callable[[Sequence[str]], "pl.DataFrame"]

_PARTS = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SCORES = _words(
    "prob probs proba probas probability probabilities yprob yproba yscore ypred yhat phat hat "
    "score scores forecast forecasts forecasted prediction predictions predict predicted pred "
    "preds confidence conf likelihood chance"
)
_OUTCOMES = _words(
    "outcome outcomes label labels target targets actual actuals observed observation event "
    "truth ytrue happened occurred won win winner result success response class"
)
_EVENTS = _words(  # what outcomes of practice are called, if they are 0 and 1 and the only such
    "fraud fraudulent churn churned default defaulted click clicked conversion converted "
    "purchase purchased bought spam subscribed cancelled canceled returned readmitted survived "
    "died disease failed failure approved accepted attrition correct late delayed"
)
_LETTERS = {"score": _words("p"), "outcome": _words("y")}  # names by themselves
# what may stand beside such a letter
_BESIDE = {
    "score": _words("y true yes pos positive 1 model"),
    "outcome": _words("true test obs bin binary"),
}
_ABOUT = _words(  # a score or an outcome, rather than the thing itself
    "id ids key uuid name names date time timestamp day month year hour at ts version type kind "
    "text error errors loss brier std stderr se var variance low high lower upper ci min max "
    "rank count threshold cutoff weight weights 0 neg negative no false"
)

_SHOWN = 20
_SHOWN_VALUES = 6
_LONGEST = 1000
_ROOM = 60  # letters of a name in a message


@dataclass(frozen=True)
class Names:
    """The columns of the rounds.

    Attributes
    ----------
    outcome : str
    scores : tuple of str
    weight, group : str or None
    cells : CellFormat
        How to read what is in them.
    also : tuple of str
        Others that are read beside them.
    repeated : bool
        Whether rows may be about a forecast made before, and have no score of their own.
    overlapping : tuple of str
        Further columns of groups: a row is then of a group for each of its columns.
    event : str or None
        Of events; it is the last of `also`.
    labels : tuple of str
        Of several classes, one for each of the scores, which sum to 1; the outcome is one of them.
        Empty if outcomes are 0 or 1.
    normalize : bool
        Whether to divide the scores of several classes by their sum.
    """

    outcome: str
    scores: tuple[str, ...] = ()
    weight: str | None = None
    group: str | None = None
    cells: CellFormat = field(default_factory=CellFormat)
    also: tuple[str, ...] = ()
    repeated: bool = False
    overlapping: tuple[str, ...] = ()
    event: str | None = None
    labels: tuple[str, ...] = ()
    normalize: bool = False

    @property
    def all(self) -> tuple[str, ...]:
        """Every column once, in order."""
        given = self.outcome, *self.scores, self.weight, self.group, *self.overlapping, *self.also
        return tuple(dict.fromkeys(column for column in given if column is not None))

    def members(self, group: pl.Series | None) -> list[Any] | None:
        """Return the groups of some rows, from `Rounds.group`, as a recalibrator takes them.

        With several columns a group is called by its column, too: "airport=JFK". A row that has
        nothing in a column is of no group of that.
        """
        if group is None or not self.overlapping:
            return None if group is None else group.to_list()
        named = {
            text: tuple(f"{name}={cell}" for name, cell in _cells(text) if cell is not None)
            for text in set(group)
        }
        return [named[text] for text in group]


def guess(
    name: str,
    columns: Sequence[str],
    *,
    outcome: str | None = None,
    scores: Sequence[str] | None = (),
    weight: str | None = None,
    group: str | None = None,
    overlapping: Sequence[str] = (),
    sample: Sample | None = None,
    class_scores: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    several: bool = False,
    normalize: bool = False,
    **cells: Any,
) -> Names:
    """Return the columns that were given; guess the others by their names.

    A name suggests itself if one of its words does, in any case and with any separators:
    ``model_proba``, ``Y-Score``, ``predictedProbability``. Where several do, and there is a sample,
    what is in them decides: scores are rather probabilities than decisions, which are 0 or 1, and
    outcomes are 0 or 1.

    Parameters
    ----------
    name
        Of the file, for messages.
    columns
        What it has.
    outcome, scores, weight, group, overlapping
        What was given. An outcome and a score are looked for if they were not; None for scores that
        are not needed.
    sample
        Gives the first rows of some columns, called by their numbers: `OpenTable.sample`.
    class_scores, classes
        The columns of several classes, and their names: either, or both in the same order.
    several
        Whether several classes may be guessed: where outcomes are words or numbers that columns are
        called like, with or without a common beginning or end such as ``p_``.
    normalize
        Whether to divide the scores of several classes by their sum.
    cells
        How to read them, as for `CellFormat`.

    Raises
    ------
    FileError
        If a column that was given is not there, or none or several suggest themselves.

    Examples
    --------
    >>> guess("f.csv", ["day", "Y_True", "model-proba"])
    Names(outcome='Y_True', scores=('model-proba',), weight=None, group=None, ...)
    """
    how = CellFormat(**cells)
    if not columns:
        raise FileError(name, "has no columns")
    longest = max(map(len, columns))
    if longest > _LONGEST:
        raise FileError(name, f"is not a table: the name of a column has {longest:,} letters")
    groups = (group, *overlapping)
    given = [
        ("outcome", outcome),
        *(("score", score) for score in scores or ()),
        *(("scores", score) for score in class_scores or ()),
        ("weight", weight),
    ]
    for option, column in [*given, *(("by", each) for each in groups)]:
        check_there(name, columns, column, how.spelled(option))
    if outcome is None:
        outcome = _likely(name, columns, "outcome", {weight, *groups}, sample, how)
    labels: tuple[str, ...] = ()
    taken = {outcome, weight, *groups}
    if class_scores is not None or classes is not None:
        if how.positive is not None:
            both = how.spelled("positive"), how.spelled("scores")
            reason = f"cannot be read with {both[0]} and {both[1]}: of several classes, the outcome"
            raise FileError(name, f"{reason} is the name of one. Leave one of them out")
        from truecast.files.class_columns import class_columns, labels_in  # needs NumPy, as below

        outcomes = [] if sample is None else labels_in(_sampled(outcome, columns, sample))
        scores, labels = class_columns(
            name, columns, class_scores, classes, how.spelled, outcomes=outcomes
        )
    elif several and not scores and sample is not None and how.positive is None:
        from truecast.files.class_columns import guessed_classes

        guessed = guessed_classes(name, columns, outcome, taken, sample, how.spelled)
        scores, labels = guessed or ((), ())
    if scores is not None and not scores:
        try:
            scores = (_likely(name, columns, "score", taken, sample, how),)
        except FileError as error:
            remedy = _remedy_of_classes(outcome, columns, sample, how, several)
            raise FileError(name, error.reason + remedy) from None
        if several and sample is not None and how.positive is None:
            from truecast.files.class_columns import are_classes

            together = are_classes(scores[0], columns, taken, sample)
            _refuse_one_of_classes(name, scores[0], together, how)
    if normalize and not labels:
        reason = f"has one score a row, and {how.spelled('normalize')} is for several classes"
        raise FileError(
            name, f"{reason}: leave it out, or name their columns by {how.spelled('scores')}"
        )
    if outcome in (scores or ()):
        raise FileError(
            name,
            f"cannot have outcome and score in one column: got {brief(repr(outcome))} for both",
        )
    return Names(
        outcome,
        tuple(scores or ()),
        weight,
        group,
        how,
        overlapping=tuple(overlapping),
        labels=labels,
        normalize=normalize,
    )


def _sampled(column: str, columns: Sequence[str], sample: Sample) -> pl.Series:
    return sample([column])[str(columns.index(column))]


def _refuse_one_of_classes(name: str, score: str, together: Sequence[str], how: CellFormat) -> None:
    """Refuse to guess a score that sums to 1 with others: these may be several classes."""
    if not together:
        return
    scores, classes = how.spelled("scores"), how.spelled("classes")
    reason = (
        f"has {len(together)} columns that sum to 1 ({_listed(together)}): if they are of several "
        f"classes, name them with {scores} and, in the same order, the classes with {classes}; if "
        f"outcomes are 0 or 1, name one with {how.spelled('score', score)}"
    )
    raise FileError(name, reason)


def _remedy_of_classes(
    outcome: str, columns: Sequence[str], sample: Sample | None, how: CellFormat, several: bool
) -> str:
    """Return what to do about several classes, if the outcomes may be such."""
    if sample is None or how.positive is not None or len(columns) < 3:
        return ""
    from truecast.files.class_columns import outcomes_in

    found_values = outcomes_in(_sampled(outcome, columns, sample))
    if found_values.keys() <= {"0", "1", "true", "false"} and (found_values or not several):
        return ""
    values = [*found_values.values()]
    shown_values = ", ".join(map(repr, values[:_SHOWN_VALUES]))
    found = f" ({shown_values}{', ...' * (len(values) > _SHOWN_VALUES)})" if values else ""
    remedy = (
        f"name their columns with {how.spelled('scores')} and, in the same order, the classes with "
        f"{how.spelled('classes')}"
        if several
        else "this needs a column of 0 and 1 for one of them; `truecast measure`, `report`, "
        "`recalibrate` and `watch` take them all"
    )
    return f". If {brief(repr(outcome))} has several classes{found}, {remedy}"


def _cells(text: str | None) -> list[tuple[str, str | None]]:
    """What `Rounds.group` has of a row, column by column."""
    return [] if text is None else list(json.loads(text).items())


def check_there(name: str, columns: Sequence[str], column: str | None, option: str) -> None:
    """Refuse a column that was given by an option and is not there, or several times."""
    if column is not None and columns.count(column) != 1:
        called = f"{brief(repr(column))} ({option})"
        if column in columns:
            times = columns.count(column)
            raise FileError(name, f"has {times} columns {called}: rename all but one of them")
        raise FileError(name, f"has no column {called}; it has {_listed(columns)}")


def _likely(
    name: str,
    columns: Sequence[str],
    option: str,
    taken: set[str | None],
    sample: Sample | None,
    how: CellFormat,
) -> str:
    """Return the one column, or the one that is likely by its name, and by what is in it."""
    others = [column for column in columns if column not in taken]
    if not others:
        one = f"has one column, {brief(repr(columns[0]))}, and so none"
        raise FileError(
            name, f"{one if len(columns) == 1 else 'has no column left'} for the {option}"
        )
    if len(others) == 1:
        unlikely = option == "score" and not _suggests(others[0], option)
        if (
            unlikely
            and sample is not None
            and not _numbers(sample(others)[str(columns.index(others[0]))])
        ):
            reason = f"has no column of probabilities: name one with {how.spelled(option)}"
            raise FileError(
                name,
                f"{reason}; it has {_listed(columns)}. For outcomes alone, see `truecast forecast`"
                f"{_inside(columns, sample)}",
            )
        return others[0]
    found = [column for column in others if _suggests(column, option)]
    if 1 < len(found) == len(set(found)) and sample is not None:
        found = _by_content(
            found, [columns.index(column) for column in found], option, sample(found)
        )
    if len(found) == 1:
        return found[0]
    if found:
        reason = (
            f"has several columns that may be the {option} ({_listed(found)}): name one with "
            f"{how.spelled(option)}"
        )
        if len(set(found)) == 1:
            reason = f"has {len(found)} columns {brief(repr(found[0]))}: rename all but one of them"
        raise FileError(name, reason)
    only = None
    if option == "outcome" and sample is not None and len(others) == len(set(others)):
        only = _only_zeros_and_ones(
            others, [columns.index(column) for column in others], sample(others)
        )
    if only is not None and _is_event(only):
        return only
    reason = f"has no column whose name suggests the {option}: name it with {how.spelled(option)}"
    perhaps = "" if only is None else f", perhaps {brief(shown(only))}"
    raise FileError(name, f"{reason}{perhaps}; it has {_listed(others)}{_inside(others, sample)}")


def _inside(columns: Sequence[str], sample: Sample | None) -> str:
    """Say which columns hold objects, as in JSON: what is asked for may be inside one."""
    if sample is None or len(columns) != len(set(columns)):
        return ""
    frame = sample(columns)
    nested = [column for column, values in zip(columns, frame, strict=True) if _nested(values)]
    if not nested:
        return ""
    return f". Only fields at the top of a row are read, not those inside {_listed(nested)}"


def _nested(values: pl.Series) -> bool:
    import polars as pl

    if values.dtype != pl.String:  # Parquet
        return values.dtype.is_nested()
    text = values.drop_nulls()
    return len(text) > 0 and text.str.starts_with("{").all()


def _only_zeros_and_ones(others: list[str], at: list[int], frame: pl.DataFrame) -> str | None:
    """Return the one column that has zeros and ones only, and both; None if there are others."""
    found = [
        column
        for column, i in zip(others, at, strict=True)
        if _kind(frame[str(i)]) == "decisions" and frame[str(i)].drop_nulls().n_unique() > 1
    ]
    return found[0] if len(found) == 1 else None


def _is_event(column: str) -> bool:
    words = _parts(column)
    return bool(words & _EVENTS) and not words & (_ABOUT | _SCORES)


def _parts(column: str) -> set[str]:
    return {part.lower() for part in _PARTS.findall(column)}


def _suggests(column: str, option: str) -> bool:
    """Return whether a name may be that of a score, or of an outcome."""
    words = _parts(column)
    if words & _ABOUT:
        return False
    score = bool(words & _SCORES) or _alone(words, "score")
    return (
        score
        if option == "score"
        else not score and (bool(words & _OUTCOMES) or _alone(words, "outcome"))
    )


def _alone(words: set[str], option: str) -> bool:
    letters = _LETTERS[option]
    return bool(words & letters) and words <= letters | _BESIDE[option]


def _by_content(found: list[str], at: list[int], option: str, frame: pl.DataFrame) -> list[str]:
    """Return those of several candidates that hold what they should; all if none does."""
    kinds = dict(zip(found, (_kind(frame[str(i)]) for i in at), strict=True))
    wanted = ("probabilities", "other") if option == "score" else ("decisions", "other")
    matching = ([column for column in found if kinds[column] == kind] for kind in wanted)
    return next(filter(None, matching), found)


def _kind(values: pl.Series) -> str:
    """Return what a column holds.

    "decisions" are 0 or 1 throughout, "probabilities" have some between; else it is "other".
    """
    import polars as pl

    try:
        text = values.cast(pl.String).drop_nulls().str.strip_chars().str.to_lowercase()
    except pl.exceptions.PolarsError:  # lists, say
        return "other"
    text = text.filter(text != "")
    numbers = text.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)
    if not len(text) or numbers.null_count() or not numbers.is_between(0, 1).all():
        return "other"
    return "decisions" if numbers.is_in([0.0, 1.0]).all() else "probabilities"


def _numbers(values: pl.Series) -> bool:
    """Return whether a column begins with any number: not with dates, say, or names."""
    import polars as pl

    if values.dtype != pl.String:
        return values.dtype.is_numeric() or values.dtype in (pl.Boolean, pl.Null)
    text = values.str.strip_chars().str.strip_suffix("%").str.replace(",", ".", literal=True)
    return (
        not len(text) or text.str.strip_chars().cast(pl.Float64, strict=False).is_not_null().any()
    )


def _listed(columns: Sequence[str]) -> str:
    listed = ", ".join(brief(shown(column)) for column in columns[:_SHOWN])
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    return f"{listed:.500}{more}"


def brief(text: str) -> str:
    """Return a name as there is room for it in a message."""
    return cut_in_the_middle(text, lambda text: len(text) <= _ROOM)
