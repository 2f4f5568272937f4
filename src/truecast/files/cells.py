"""From cells to numbers: the only place where cells become outcomes and probabilities."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from truecast.errors import InputError

if TYPE_CHECKING:  # not needed to open a file
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CellFormat",
    "ClassOutcomes",
    "Outcomes",
    "as_argument",
    "as_option",
    "hint",
    "missing",
    "numbers",
    "probabilities",
    "with_sign",
]

_TRUE = {"true": 1.0, "false": 0.0}
_OPPOSITES = {  # of two words, which likely counts as 1
    "no": "yes",
    "n": "y",
    "f": "t",
    "off": "on",
    "negative": "positive",
    "neg": "pos",
    "lost": "won",
    "loss": "win",
    "nein": "ja",
    "falsch": "wahr",
    "non": "oui",
    "faux": "vrai",
    "não": "sim",
    "nao": "sim",
    "nie": "tak",
}
_POSITIVE = {*_OPPOSITES.values(), "sí", "si"}
# how files say that there is no value, as `_keys` has it
_MISSING = ("", "NaN", "na", "n/a", "#n/a", "null", "none")
_MOST_WORDS = 20  # ways to write the two outcomes
_LONGEST_WORD = 30  # letters
_SHOWN = 12  # classes in a message
_SEVERAL = (
    ": if these are several classes, `truecast measure`, `report`, `recalibrate` and `watch` take "
    "the columns of all by --scores"
)
_POINT = re.compile(r"\s*[-+]?\d*\.\d+\s*%?\s*")
_COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*%?\s*")


def as_option(option: str, value: object = None) -> str:
    """Return an option as the command takes it."""
    flag = f"--{option.replace('_', '-')}"
    if value is None or value is True:
        return flag
    return (
        " ".join([flag] * value) if isinstance(value, int) else f"{flag} {shlex.quote(str(value))}"
    )


def as_argument(option: str, value: object = None) -> str:
    """Return an option as `truecast.read_rounds` takes it."""
    argument = f"{'group' if option == 'by' else option}="
    return argument if value is None else f"read_rounds(..., {argument}{value!r})"


@dataclass(frozen=True)
class CellFormat:
    """How to read the cells of a file.

    Attributes
    ----------
    positive : str or None
        The outcome that counts as 1; then one other may occur, which counts as 0.
    percent : bool
        Whether scores go from 0 to 100, with or without a sign.
    decimal : str
        What stands before the decimals in text: a point or a comma.
    points : bool
        Whether a decimal point is understood beside a comma: numbers of JSON have one.
    spelled : function
        How messages write an option.
    """

    positive: str | None = None
    percent: bool = False
    decimal: str = "."
    points: bool = False
    spelled: Callable[..., str] = as_option

    @property
    def of_text(self) -> bool:
        """Whether numbers are said to be text."""
        return self.percent or self.decimal != "."

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise InputError("decimal", "must be '.' or ','", self.decimal)
        if self.positive is not None and _key(self.positive) in _MISSING:
            raise InputError("positive", "must be an outcome, such as 'yes'", self.positive)


class Outcomes:
    """Cells to outcomes, in the order of the file.

    Which value is the other one shows when it first occurs.
    """

    def __init__(self, cells: CellFormat) -> None:
        self._cells = cells
        self.other: str | None = None

    def __call__(self, column: pl.Series) -> NDArray[np.float64]:
        """Return a column as outcomes, nan where there are none."""
        if self._cells.positive is None:
            return numbers(column, self._cells, words=_TRUE)
        keys = _keys(column)
        positive = _key(self._cells.positive)
        if self.other is None:
            others = column.filter((keys != positive) & ~keys.is_in(_MISSING))
            self.other = str(others[0]).strip() if len(others) else None
        values = {positive: 1.0} | ({} if self.other is None else {_key(self.other): 0.0})
        return keys.replace_strict(values, default=None, return_dtype=pl.Float64).to_numpy()

    @property
    def rule(self) -> str:
        """What an outcome must be."""
        if self._cells.positive is None:
            return "an outcome, 0 or 1"
        other = "another value" if self.other is None else f"{self.other!r}, the other value so far"
        return f"{self._cells.positive!r} ({self._cells.spelled('positive')}) or {other}"


class ClassOutcomes:
    """Cells to the numbers of classes; case, and blanks around a word, do not matter."""

    def __init__(self, cells: CellFormat, labels: Sequence[str]) -> None:
        self._cells = cells
        self._labels = labels
        self._numbers = {key: float(number) for number, key in enumerate(class_keys(labels))}

    def __call__(self, column: pl.Series) -> NDArray[np.float64]:
        """Return a column as numbers of classes, nan where there are none."""
        keys = _keys(column)
        return keys.replace_strict(self._numbers, default=None, return_dtype=pl.Float64).to_numpy()

    @property
    def rule(self) -> str:
        """What an outcome must be."""
        shown = ", ".join(self._labels[:_SHOWN]) + ", ..." * (len(self._labels) > _SHOWN)
        return f"one of the classes {shown} ({self._cells.spelled('classes')})"


def missing(column: pl.Series) -> pl.Series:
    """Return which cells have no value: nothing, or a word that says so."""
    return column.is_null() | _keys(column).is_in(_MISSING).fill_null(value=True)


def probabilities(column: pl.Series, cells: CellFormat) -> NDArray[np.float64]:
    """Return a column as probabilities, nan where there are no numbers."""
    if not cells.percent:
        return numbers(column, cells)
    if column.dtype == pl.String:
        column = column.str.strip_chars().str.strip_suffix("%").str.strip_chars_end()
    return numbers(column, cells) / 100


def with_sign(column: pl.Series) -> pl.Series:
    """Return which cells have a sign of percent; null where there is no number."""
    if column.dtype != pl.String:
        return pl.Series([False]).new_from_index(0, len(column)).set(column.is_null(), None)
    text = column.str.strip_chars()
    number = text.str.contains(r"^[-+]?[0-9.,]+\s*%?$")
    return text.str.ends_with("%").set(~number, None)


def numbers(
    column: pl.Series, cells: CellFormat, *, words: dict[str, float] | None = None
) -> NDArray[np.float64]:
    """Return the numbers in a column, nan elsewhere; words may stand for some."""
    if column.dtype != pl.String:
        return column.cast(pl.Float64).to_numpy()
    text = column if cells.decimal == "." else _with_points(column, cells.points)
    found = text.cast(pl.Float64, strict=False)
    if found.null_count() > column.null_count():
        trimmed = text.str.strip_chars()
        found = found.fill_null(trimmed.cast(pl.Float64, strict=False))
        if words:
            values = trimmed.str.to_lowercase().replace_strict(
                words, default=None, return_dtype=pl.Float64
            )
            found = found.fill_null(values)
    return found.to_numpy()


def _with_points(text: pl.Series, points: bool) -> pl.Series:
    """Return numbers with a decimal comma as the engine knows them.

    A point makes a cell invalid: it may separate thousands.
    """
    if not points:
        text = text.str.replace_all(".", "?", literal=True)
    return text.str.replace(",", ".", literal=True)


def hint(value: object, column: pl.Series, cells: CellFormat, *, outcome: bool) -> str:
    """Return which option would accept a refused value, judged by it and the rest of its column."""
    text = str(value)
    if _COMMA.fullmatch(text) and cells.decimal == ".":
        percent = f" {cells.spelled('percent', True)}" if "%" in text and not cells.percent else ""
        return f": if that is a decimal comma, use {cells.spelled('decimal', ',')}{percent}"
    if cells.decimal == "," and _POINT.fullmatch(text):
        return f": by {cells.spelled('decimal', ',')} decimals come after a comma"
    if outcome:
        return _hint_of_words(column, cells) or _hint_of_two_numbers(column, cells)
    if not cells.percent and ("%" in text or _mostly_percent(column, cells)):
        return f": if these are percentages, use {cells.spelled('percent', True)}"
    return _hint_of_log_odds(column, cells)


def _hint_of_words(column: pl.Series, cells: CellFormat) -> str:
    """Return the option for outcomes that are two words; of more, what takes them."""
    if cells.positive is not None or column.dtype != pl.String:
        return ""
    column = column.drop_nulls().unique(maintain_order=True)
    values = (
        dict(reversed([*zip(_keys(column), column, strict=True)]))
        if len(column) <= _MOST_WORDS
        else {}
    )
    values = {key: value for key, value in values.items() if key not in _MISSING}
    words = {key: value.strip() for key, value in values.items() if _is_word(key)}
    if len(words) != len(values) or not words:
        return ""
    if len(words) > 2:
        return _SEVERAL
    likely = _likely_positive(words)
    if likely is None:
        either = " or ".join(cells.spelled("positive", word) for word in reversed(words.values()))
        return f": use {either}, whichever counts as 1"
    return f": if {likely!r} counts as 1, use {cells.spelled('positive', likely)}"


def _likely_positive(words: dict[str, str]) -> str | None:
    """Return which of one or two words likely counts as 1; None if that cannot be told."""
    if len(words) == 1:
        ((key, written),) = words.items()
        return _OPPOSITES.get(key, written)
    for likely in ([*(words.keys() & _POSITIVE)], [*(words.keys() - _OPPOSITES.keys())]):
        if len(likely) == 1:
            return words[likely[0]]
    return None


def _hint_of_two_numbers(column: pl.Series, cells: CellFormat) -> str:
    """Return the option for outcomes that are -1 and 1, or 1 and 2; of more, what takes them."""
    if cells.positive is not None or not (column.dtype == pl.String or column.dtype.is_numeric()):
        return ""
    import numpy as np

    found = tuple(np.unique(numbers(column.drop_nulls(), cells)))
    if 2 < len(found) <= _MOST_WORDS and found[0] in (0, 1) and (np.diff(found) == 1).all():
        return _SEVERAL
    if found not in ((-1, 1), (1, 2)):
        return ""
    positive = f"{found[1]:.0f}"
    return f": if {positive} counts as 1, use {cells.spelled('positive', positive)}"


def _hint_of_log_odds(column: pl.Series, cells: CellFormat) -> str:
    """Return what to do with scores that have no bounds."""
    found = numbers(column, cells)
    if not ((found < 0).any() and (abs(found) > 1).any()):
        return ""
    return ": if these are log-odds, write 1 / (1 + exp(-score)) instead"


def _is_word(key: str) -> bool:
    return key[0].isalpha() and key.isprintable() and len(key) <= _LONGEST_WORD and key not in _TRUE


def _mostly_percent(column: pl.Series, cells: CellFormat) -> bool:
    """Whether numbers look like percentages.

    None beyond 100, most above 1, and that not by a single slip.
    """
    import numpy as np

    found = numbers(column, cells)
    found = found[~np.isnan(found)]
    above = found[found > 1]
    sure = len(above) > 1 or bool((above >= 10).any())
    return bool(
        sure and (found >= 0).all() and (found <= 100).all() and len(above) > len(found) / 2
    )


def class_keys(labels: Sequence[str]) -> list[str]:
    """Return what tells the outcomes apart that are called like these labels."""
    return _keys(pl.Series(labels, dtype=pl.String)).to_list()


def _key(value: str) -> str:
    return str(_keys(pl.Series([value]))[0])


def _keys(column: pl.Series) -> pl.Series:
    """Return what tells values apart: the value of numbers, words without case and blanks."""
    text = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    return text.cast(pl.Float64, strict=False).cast(pl.String).fill_null(text)
