"""Several models at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truecast import _check
from truecast.errors import InputError
from truecast.recalibrate.hints.base import MAX_MODELS, Hint
from truecast.recalibrate.hints.mix import built
from truecast.recalibrate.hints.single import Identity, Isotonic, Platt

__all__ = ["Experts"]

MAX_MEMBERS = 128


class Experts(Hint):
    """A mix for several models: nearly as good as the best, better if each knows something.

    A score is a sequence of numbers, one for each model: ``hint.predict([0.3, 0.45])``. Every model
    has the given hints for its own score. All of them are members of one `Mix`, whose stack is a
    logistic regression on the logits of all members: if the models know different things, it beats
    each of them. The first hints of all models share three fifths of the starting weight equally;
    the second hints share three twentieths.

    The bound of `Mix` holds for the n members of all models together: if any member has a log loss
    of L nats, the mix has at most L + ln(4n) + 0.00031 T after T rounds. It promises nothing beyond
    what its members say, and proves nothing about calibration. If a model is missing in a round,
    fill in the mean of the others, or its own average.

    Parameters
    ----------
    models
        How many models: 1 to 32.
    hints
        The hints of each model, copied; at most 128 for all models together, none of them a mix. Or
        their description from `config`. None uses `Identity`, `Platt` with two memories and
        `Isotonic`.

    Raises
    ------
    InputError
        If the number of models or the hints break a rule.

    Notes
    -----
    A round costs O(n**2) for n members in total.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5000, 2))  # what each model knows
    >>> y = rng.random(5000) < 1 / (1 + np.exp(-z.sum(axis=1)))
    >>> scores = 1 / (1 + np.exp(-z))
    >>> said = Experts(2).forecast_many(scores, y)
    >>> [round(float(np.mean((p - y)[1000:] ** 2)), 2) for p in (scores[:, 0], scores[:, 1], said)]
    [0.21, 0.22, 0.18]
    """

    def __init__(self, models: int, hints: Sequence[Hint | dict[str, Any]] | None = None) -> None:
        count = _check.whole_number("models", models, least=1, most=MAX_MODELS)
        each, self._configs = built(
            [Identity(), Platt(), Platt(200), Isotonic(prior=0.1)] if hints is None else hints
        )
        self._members = count * len(each)
        if self._members > MAX_MEMBERS:
            raise InputError(
                "hints",
                f"must be at most {MAX_MEMBERS // count} for each of {count} models",
                len(each),
            )
        super().__init__("Mix", members=each * count, models=count)

    @property
    def models(self) -> int:
        """How many numbers a score is."""
        return self._models

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this hint."""
        return {"models": self.models, "hints": [dict(config) for config in self._configs]}
