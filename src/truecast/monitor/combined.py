"""One number for several monitors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

from truecast.errors import InputError
from truecast.monitor.monitor import Monitor

__all__ = ["combined_evidence"]


def combined_evidence(monitors: Iterable[Monitor]) -> float:
    """Return one number of evidence for several monitors with `alpha`: the mean of theirs.

    For shards of one stream, or several models. If all forecasts are right, given all that was
    known in any of them, and outcomes come at once, the chance that it ever reaches 1/alpha is at
    most alpha (docs/monitor.md, section 3). For late outcomes that is not proved: monitors do not
    wait for each other. States cannot be merged: evidence of one stream does not tell in which
    order it would have come with another's.

    Raises
    ------
    InputError
        If there are none, or one has a `mean_time` or the order "chains".

    Warns
    -----
    UserWarning
        If one has had late outcomes: nothing is proved of the mean then. Each monitor's own
        promise holds; divide alpha between them and look at each.

    Examples
    --------
    >>> a, b = Monitor(), Monitor()
    >>> a.update(0.5, 1)
    >>> 0.9 < combined_evidence([a, b]) < 1.1
    True
    """
    several = list(monitors)
    if not several or any(
        not isinstance(each, Monitor) or each.config["mean_time"] is not None for each in several
    ):
        raise InputError("monitors", "must be monitors with alpha, at least one", several)
    if any(each.config["order"] == "chains" for each in several):
        rule = "must not be in chains, whose evidence cannot be averaged: look at each"
        raise InputError("monitors", rule, several)
    if any(each._late for each in several):
        warnings.warn(
            "outcomes were late, and monitors do not wait for each other: nothing is proved of "
            "their mean; divide alpha between the monitors and look at each",
            UserWarning,
            stacklevel=2,
        )
    return math.fsum(each.evidence for each in several) / len(several)
