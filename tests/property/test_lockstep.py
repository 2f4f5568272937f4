"""The compiled core and the plain-Python reference, driven together through everything a user can
do."""

from __future__ import annotations

import copy
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import truecast as tc
from truecast.ladder import CELL_RULES
from truecast.reference import PlainLadder, bent_points, uniform_points

bits = st.lists(st.integers(0, 1), max_size=40)
runs = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 60)), max_size=6).map(
    lambda parts: [bit for bit, length in parts for _ in range(length)]
)


class Lockstep(RuleBasedStateMachine):
    @initialize(
        kind=st.sampled_from(["lower", "upper", "middle", "outer"]),
        cell=st.sampled_from(list(CELL_RULES)),
        size=st.integers(1, 12),
    )
    def build(self, kind: str, cell: str, size: int) -> None:
        if kind == "outer":
            self.core = tc.BentGrid(grid=2 * size, cell=cell)
            self.plain = PlainLadder(bent_points(size - 1)[0], kind, cell)
        else:
            self.core = tc.AlmostOneStepAhead(grid=size, at=kind, cell=cell)
            self.plain = PlainLadder(uniform_points(size), kind, cell)
        self.issued = False

    @rule()
    def predict(self) -> None:
        assert self.core.predict() == float(self.plain.predict())
        self.issued = True

    @rule(y=st.integers(0, 1), kind=st.sampled_from([int, bool, float, np.int8, np.bool_]))
    def observe(self, y: int, kind: type) -> None:
        if not self.issued:
            with pytest.raises(tc.OrderError, match="predict"):
                self.core.observe(kind(y))
        else:
            self.core.observe(kind(y))
            self.plain.observe(y)
            self.issued = False

    @rule(outcomes=bits | runs, kind=st.sampled_from(["list", "bool", "uint8", "int64", "float32"]))
    def batch(self, outcomes: list[int], kind: str) -> None:
        said = []
        for y in outcomes:
            said.append(float(self.plain.predict()))
            self.plain.observe(y)
        given = outcomes if kind == "list" else np.array(outcomes, kind)
        assert self.core.forecast_many(given).tolist() == said
        self.issued = self.issued and not outcomes

    @rule(bad=st.sampled_from([2, -1, 0.5, float("nan"), "1", None]), good=bits)
    def refuse(self, bad: object, good: list[int]) -> None:
        with pytest.raises(tc.InputError):
            self.core.observe(bad)
        with pytest.raises(tc.InputError):
            self.core.forecast_many([*good, bad])

    @rule(how=st.sampled_from(["json", "bytes", "copy"]))
    def save_and_load(self, how: str) -> None:
        kind = type(self.core)
        if how == "json":
            self.core = kind.from_json(self.core.to_json())
        elif how == "bytes":
            self.core = kind.from_bytes(self.core.to_bytes())
        else:
            self.core = copy.deepcopy(self.core)

    @rule(outcomes=bits)
    def in_streams(self, outcomes: list[int]) -> None:
        """A stream continues from here as a copy would, and leaves the forecaster alone."""
        twin = copy.copy(self.core)
        streams = tc.forecast_streams(self.core, [outcomes, outcomes, outcomes], threads=2)
        said = twin.forecast_many(outcomes).tolist()
        for k in range(3):
            assert streams.forecasts[k].tolist() == said
            end = streams.forecaster(k)
            assert end.to_json() == twin.to_json()

    @invariant()
    def same_state(self) -> None:
        core, plain = self.core, self.plain
        assert core.rounds == plain.rounds
        assert core.issued == self.issued
        assert core.open_cell == plain.cell
        assert [Fraction(a, core.denominator) for a in core.biases.tolist()] == plain.alpha
        assert core.deviation == plain.deviation
        assert core.bias_sums == (plain.bias(), plain.pooled())
        _, _, rest, count = core._sums()
        assert 0 <= rest < count
        assert core.squared_error == plain.squared_error
        exact = plain.certificate()
        bound = core.certificate.bound
        assert exact <= Fraction(bound) <= exact * (1 + Fraction(1, 1 << 52))
        assert exact <= core.a_priori(core.rounds)


Lockstep.TestCase.settings = settings(max_examples=150, stateful_step_count=30)
TestLockstep = pytest.mark.slow("plays many games in lockstep")(Lockstep.TestCase)
