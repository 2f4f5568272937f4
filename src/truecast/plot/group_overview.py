"""Groups side by side: which of them are off by more than chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast._names import counted, short_names
from truecast.errors import InputError
from truecast.measures.families import chance_of, holm
from truecast.measures.scores import brier_score
from truecast.measures.smooth import smooth_calibration_error
from truecast.plot.spread import frozen
from truecast.plot.style import (
    BLUE,
    GREY,
    few_ticks,
    fitting,
    new_figure,
    quiet,
    room,
    tidy,
    width_of,
)
from truecast.tally import Tally

__all__ = ["GroupOverview", "group_overview"]

_AROUND = 65.0  # points that stand above and below the groups
_LINE = 11.5  # points for a group
_NAMES = 95.0  # points that names may take of a narrow picture, if that is not more than half of it
_LONGEST = 60  # letters of a name, however wide the picture is


@dataclass(frozen=True, eq=False)
class GroupOverview:
    """What `group_overview` returns: groups, sorted by the evidence against them.

    Attributes
    ----------
    names : tuple of str, int or None
    rounds : array
        How many, or their weight.
    mean_outcome, mean_forecast : arrays
    error : array
        The smooth calibration error, per round.
    chance, chance_high : arrays
        The mean of the error if the group's forecasts were calibrated, and what it would not exceed
        in `level` of all cases. nan if that was not simulated.
    p_value : array
        How often, at most, it would then be at least this large. By simulation, with as many draws
        as needed; or by Bernstein's inequality for all stretches of forecasts, if no number of
        draws would be enough. For one group by itself: see `adjusted`. nan if nothing was
        simulated.
    brier : array
        The Brier score, which also measures sharpness.
    level : float
    """

    names: tuple[str | int | None, ...]
    rounds: NDArray[Any] = field(repr=False)
    mean_outcome: NDArray[np.float64] = field(repr=False)
    mean_forecast: NDArray[np.float64] = field(repr=False)
    error: NDArray[np.float64] = field(repr=False)
    chance: NDArray[np.float64] = field(repr=False)
    chance_high: NDArray[np.float64] = field(repr=False)
    p_value: NDArray[np.float64] = field(repr=False)
    brier: NDArray[np.float64] = field(repr=False)
    level: float

    def draw(self, axes: Any = None, *, most: int = 30) -> Any:
        """Draw the first groups on matplotlib axes, or on those of a new figure; return the figure.

        Dots are the errors, filled if the adjusted p-value is below 0.05. If a group were
        calibrated, its error would lie within its bar in `level` of all cases; the line is the
        mean. It draws as many groups as fit, at most `most`, and says how many more there are.
        """
        shown = min(_check.whole_number("most", most, least=1, most=10_000), len(self))
        axes = new_figure(5.2, 1.2 + 0.2 * shown).add_subplot() if axes is None else axes
        width, height = room(axes)
        shown = max(1, min(shown, int((1.25 * height - _AROUND) / _LINE)))
        at, error, high = np.arange(shown), self.error[:shown], self.chance_high[:shown]
        axes.barh(at, high, min(0.62, 9 * shown / height), color=GREY, alpha=0.4, lw=0, zorder=2)
        axes.plot(self.chance[:shown], at, ls="", marker="|", ms=6, color=GREY, zorder=3)
        off = self.adjusted[:shown] < 0.05
        for chosen, fill in ((off, BLUE), (~off, "none")):
            style = {"ls": "", "marker": "o", "ms": 5, "mfc": fill, "mec": BLUE, "mew": 1.3}
            axes.plot(error[chosen], at[chosen], zorder=4, **style)
        axes.set_xlim(0, 1.06 * float(np.nanmax(np.append(error, high))) or 1.0)
        axes.set_ylim(shown - 0.4, -0.6)
        self._label(axes, at, width)
        few_ticks(axes)
        quiet(axes)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0, labelsize="small")
        tidy(axes)
        return axes.figure

    def _label(self, axes: Any, at: NDArray[np.int64], width: float) -> None:
        counts = [
            f"{count:,}" if count < 10_000 else _short(count)
            for count in self.rounds[: len(at)].tolist()
        ]
        axes.set_yticks(
            at, _labels(self.names[: len(at)], counts, max(0.36 * width, min(0.5 * width, _NAMES)))
        )
        right = axes.secondary_yaxis("right")
        least = min((score for score in self.brier[: len(at)].tolist() if score > 0), default=1.0)
        digits = min(6, max(3, 1 - math.floor(math.log10(least))))
        right.set_yticks(at, [f"{score:.{digits}f}" for score in self.brier[: len(at)]])
        right.tick_params(length=0, labelsize="small")
        right.set_ylabel("Brier score", fontsize="small", rotation=270, va="bottom")
        more = len(self) - len(at)
        rests = [f"\nand {counted(more, 'more group')}", f"\n+ {more:,} groups", f"\n+ {more:,}"]
        rest = fitting(rests, 0.6 * width, "medium") if more else ""
        axes.set_xlabel(
            fitting(["smooth calibration error", "smooth cal. error", "smCE"], width, "medium")
            + rest
        )
        share = f"{100 * self.level:.3g} %"
        titles = [
            f"bar: {share} of errors if calibrated; filled: stands out among all groups",
            f"bar: {share} if calibrated; filled: stands out",
            f"bar: {share} if calibrated",
        ]
        axes.set_title(fitting(titles, width, "small"), fontsize="small")

    def __len__(self) -> int:
        """The number of groups."""
        return len(self.names)

    @property
    def adjusted(self) -> NDArray[np.float64]:
        """The p-values, adjusted for the number of groups (Holm, 1979); nan if there is none.

        If all groups are calibrated and their rounds independent, the chance that any is below 0.05
        here is at most 0.05.
        """
        return holm(self.p_value)


def group_overview(
    y_true: Any | Mapping[Any, Tally],
    y_prob: Any = None,
    groups: Any = None,
    *,
    sample_weight: Any = None,
    level: float = 0.9,
    resamples: int = 100,
    tested: int = 50,
    random_state: int | np.random.Generator | None = 0,
) -> GroupOverview:
    """Return how calibrated each group is, and how large its error would be by chance.

    Small groups have large errors by chance, and among many groups some have small p-values. So
    read `chance_high` beside `error`, and `adjusted` before you blame a group. A group without
    evidence need not be calibrated: it may be small.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a mapping from groups to their tallies, alone.
    groups
        The group of each round: str, int or None.
    level
        Of `chance_high`.
    resamples
        How often chance is simulated for a group.
    tested
        For how many groups chance is simulated: those with the largest errors for their size.
    random_state
        A seed, a generator, or None.

    Examples
    --------
    >>> y, p = [0, 1] * 400, [0.5] * 400 + [0.25] * 400
    >>> overview = group_overview(y, p, ["a"] * 400 + ["b"] * 400)
    >>> overview.names, overview.error
    (('b', 'a'), array([0.25, 0.  ]))
    >>> overview.adjusted < 0.05
    array([ True, False])

    Notes
    -----
    After the tallies, about 2 ms for each group that is tested, more if many draws are needed, and
    30 µs for each other group. The tallies of a million rounds take about a second. Chance is
    simulated with forecasts pooled in 64 cells. With real weights it is not simulated, and groups
    are sorted by error.
    """
    level = _check.between("level", level, 0, 1)
    resamples = _check.resamples(resamples)
    tested = _check.whole_number("tested", tested, least=0, most=10**9)
    rng = _check.generator("random_state", random_state)
    tallies = _tallies(y_true, y_prob, groups, sample_weight)
    rows = sorted(
        (_GroupFigures(name, tally) for name, tally in tallies.items()),
        key=_GroupFigures.standardized_error,
        reverse=True,
    )
    for row in rows[:tested]:
        row.test(resamples, level, rng, len(rows))
    # the untested keep their order, behind
    rows.sort(key=lambda row: row.p_value if row.p_value == row.p_value else 2.0)
    columns = {
        column.name: frozen(np.array([getattr(row, column.name) for row in rows]))
        for column in fields(GroupOverview)
        if column.name not in ("names", "level")
    }
    return GroupOverview(tuple(row.name for row in rows), level=level, **columns)


class _GroupFigures:
    """A group while its figures are being computed."""

    def __init__(self, name: str | int | None, tally: Tally) -> None:
        self.name = name
        self.tally = tally
        self.rounds = tally.total
        self.mean_outcome = tally.rate
        self.mean_forecast = float(tally.p @ tally.weights / tally.total)
        self.error = smooth_calibration_error(tally)
        self.brier = brier_score(tally)
        self.chance = self.chance_high = self.p_value = math.nan

    def standardized_error(self) -> float:
        """The error in standard deviations of the mean gap; with real weights, as it is."""
        if self.tally.weighted or not self.error:
            return self.error
        variance = float((self.tally.weights * self.tally.p) @ (1 - self.tally.p))
        return self.error * self.tally.total / math.sqrt(variance) if variance else math.inf

    def test(self, resamples: int, level: float, rng: np.random.Generator, groups: int) -> None:
        if self.tally.weighted:
            return
        chance = chance_of(self.tally, resamples, level, rng, groups)
        self.chance, self.chance_high, self.p_value = chance


def _tallies(
    y_true: Any, y_prob: Any, groups: Any, sample_weight: Any
) -> dict[str | int | None, Tally]:
    """Return the groups that have rounds."""
    if isinstance(y_true, Mapping):
        if not (y_prob is None and groups is None and sample_weight is None):
            rule = "groups and sample_weight must be left out beside a mapping of tallies"
            raise InputError("y_prob", rule, y_prob)
        tallies = {_check.label(name): tally for name, tally in y_true.items()}
        for tally in tallies.values():
            if not isinstance(tally, Tally):
                raise InputError(
                    "y_true", "must be a mapping from groups to tallies, or outcomes", tally
                )
    elif y_prob is None or groups is None:
        rule = "and y_prob are needed unless the first argument is a mapping of tallies"
        raise InputError("groups", rule, groups)
    else:
        tallies = _split(y_true, y_prob, groups, sample_weight)
    found = {name: tally for name, tally in tallies.items() if tally.total}
    if not found:
        raise InputError("y_true", "must have at least one round, of positive weight", y_true)
    return found


def _split(
    y_true: Any, y_prob: Any, groups: Any, sample_weight: Any
) -> dict[str | int | None, Tally]:
    """Return the tally of each group, in order of appearance."""
    y, p = _check.predictions(y_true, y_prob)
    weights = None
    if sample_weight is not None:
        weights = _check.sample_weight(sample_weight, y_true, y_prob, len(y))
    labels = _check.labels(groups, len(y), y_prob)
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    codes = np.fromiter(map(numbers.__getitem__, labels), np.int64, len(y))
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(numbers)))
    parts = np.split(order, ends[:-1]) if len(y) else []
    return {
        name: Tally.from_predictions(
            y[part], p[part], sample_weight=None if weights is None else weights[part]
        )
        for name, part in zip(numbers, parts, strict=True)
    }


def _short(count: float) -> str:
    """Return a large number in few characters."""
    power = min((len(f"{count:.0f}") - 1) // 3, 6)
    return f"{count / 10 ** (3 * power):.3g}" + ("", "k", "M", "G", "T", "P", "E")[power]


def _labels(names: Sequence[str | int | None], counts: Sequence[str], width: float) -> list[str]:
    """Return the names of groups with their rounds, cut to this width in points, all different."""
    longest = max((f" ({count})" for count in counts), key=lambda text: width_of(text, "small"))
    texts = ["(none)" if name is None else " ".join(str(name).split()) for name in names]
    short = short_names(
        texts, lambda text: len(text) <= _LONGEST and width_of(text + longest, "small") <= width
    )
    plain = [name.replace("$", r"\$") for name in short]  # not to be read as mathematics
    return [f"{name} ({count})" for name, count in zip(plain, counts, strict=True)]
