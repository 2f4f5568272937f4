"""Groups of forecasts of several classes: which of them are off by more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast._check_classes import class_rounds
from truecast.class_tally import ClassTally, TopK
from truecast.errors import InputError
from truecast.measures.class_report import ClassReport, measure_classes
from truecast.measures.families import chance_of, holm
from truecast.measures.finder import SIGNIFICANT

__all__ = ["ClassGroups", "class_tallies_of", "find_class_groups"]

Group = str | int | None

_LEVEL = 0.9
_RESAMPLES = 200  # of a class in a group
_TESTED = 1000  # classes in groups for which chance is simulated


@dataclass(frozen=True, eq=False)
class ClassGroups:
    """Groups, sorted by the evidence against them.

    Attributes
    ----------
    names : tuple of str, int or None
    figures : tuple of ClassReport
        All measures of each group.
    chance : array
        What the sum of the classwise smooth errors would be on average if all classes of the group
        were calibrated; nan if that was not simulated.
    p_value : array
        At most how often some class of the group would then be as far off: allows for its classes,
        not for the number of groups. nan if nothing was simulated.
    """

    names: tuple[Group, ...]
    figures: tuple[ClassReport, ...]
    chance: NDArray[np.float64]
    p_value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def rounds(self) -> NDArray[Any]:
        """How many, or their weight."""
        return np.array([figures.total for figures in self.figures])

    @property
    def adjusted(self) -> NDArray[np.float64]:
        """The p-values, adjusted for the number of groups (Holm, 1979); nan if there is none."""
        return holm(self.p_value)

    @property
    def off(self) -> tuple[Group, ...]:
        """The groups that are off beyond chance, allowing for all groups and classes."""
        pairs = zip(self.names, self.adjusted.tolist(), strict=True)
        return tuple(name for name, p in pairs if p < SIGNIFICANT)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row of figures for each group, as plain data."""
        sure = zip(self.chance.tolist(), self.p_value.tolist(), self.adjusted.tolist(), strict=True)
        rows = []
        for name, figures, chance in zip(self.names, self.figures, sure, strict=True):
            plain = {key: value for key, value in figures.to_dict().items() if key != "notions"}
            named = zip(("if_calibrated", "p_value", "adjusted_p_value"), chance, strict=True)
            rows.append({"group": name} | plain | dict(named))
        return rows


def find_class_groups(
    tallies: Mapping[Any, ClassTally], resamples: int | None = None
) -> ClassGroups:
    """Measure each group that has rounds, and test those that look worst for their size.

    With 0 resamples, or real weights, chance is not simulated.
    """
    rows = [_Row(name, tally) for name, tally in tallies.items() if tally.total]
    rows.sort(key=_Row.size_of_error, reverse=True)
    rng = np.random.default_rng(0)
    family = sum(len(row.tally.labels) for row in rows)
    for row in rows[: _TESTED // max(1, len(rows[0].tally.labels))]:
        if resamples != 0 and not row.tally.weighted:
            row.test(resamples or _RESAMPLES, rng, family)
    rows.sort(key=lambda row: row.p_value if row.p_value == row.p_value else 2.0)
    return ClassGroups(
        tuple(row.name for row in rows),
        tuple(row.figures for row in rows),
        np.array([row.chance for row in rows]),
        np.array([row.p_value for row in rows]),
    )


class _Row:
    """A group while its figures are being computed."""

    def __init__(self, name: Group, tally: ClassTally) -> None:
        self.name = name
        self.tally = tally
        self.figures = measure_classes(tally)
        self.chance = self.p_value = nan

    def size_of_error(self) -> float:
        """How large the errors are for the number of rounds, roughly."""
        return self.figures.classwise.sum * sqrt(self.tally.total)

    def test(self, resamples: int, rng: np.random.Generator, family: int) -> None:
        times = max(20, resamples)
        found = [chance_of(one, times, _LEVEL, rng, family) for one in self.tally.classes]
        self.chance = fsum(one.mean for one in found)
        self.p_value = min(1.0, len(found) * min(one.p_value for one in found))


def class_tallies_of(
    groups: Any, y_true: Any, y_prob: Any, labels: Any, sample_weight: Any, normalize: bool
) -> Mapping[Any, ClassTally]:
    """Return the tally of each group: from rounds, or those that were given."""
    if isinstance(y_true, ClassTally):
        if not isinstance(groups, Mapping) or not all(
            isinstance(tally, ClassTally) and tally.labels == y_true.labels
            for tally in groups.values()
        ):
            rule = "must be a mapping from groups to ClassTally of the same classes beside one"
            raise InputError("groups", rule, groups)
        return {_check.label(name): tally for name, tally in groups.items()}
    if isinstance(y_prob, TopK):
        rule = "must be left out beside a TopK: pass a ClassTally, and a mapping to those of groups"
        raise InputError("groups", rule, groups)
    known, y, rows = class_rounds(y_true, y_prob, labels, normalize)
    each = _check.labels(groups, len(y), y_prob)
    places: dict[Group, list[int]] = {}
    for place, name in enumerate(each):
        places.setdefault(name, []).append(place)
    weight = None
    if sample_weight is not None:
        weight = _check.sample_weight(sample_weight, y_true, None, len(y))
    named = np.array(known, dtype=object)[y]
    return {
        name: ClassTally.from_predictions(
            named[at],
            rows[at],
            labels=known,
            sample_weight=None if weight is None else weight[at],
        )
        for name, at in places.items()
    }
