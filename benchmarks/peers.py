"""Other ways to recalibrate a stream of scores; each forecasts before it sees the outcome."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression


class Method(Protocol):
    """Says a forecast with a ticket, and hears the outcome by the ticket.

    It has a ``certificate`` if it has a proof.
    """

    certificate: float | None

    def issue(self, score: float) -> tuple[float, Any]: ...
    def resolve(self, ticket: Any, outcome: int) -> None: ...


class Peer:
    """Predicts from a score and learns from the score and its outcome, whenever that comes."""

    certificate = None

    def predict(self, score: float) -> float:
        raise NotImplementedError

    def learn(self, score: float, outcome: int) -> None:
        raise NotImplementedError

    def issue(self, score: float) -> tuple[float, float]:
        return self.predict(score), score

    def resolve(self, ticket: float, outcome: int) -> None:
        self.learn(ticket, outcome)


class Raw(Peer):
    """The score as it is."""

    def predict(self, score: float) -> float:
        return score

    def learn(self, score: float, outcome: int) -> None:
        pass

    def many(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x


class RunningMean(Peer):
    """The share of ones so far, whatever the score; half a one and half a zero to begin with."""

    def __init__(self) -> None:
        self._ones, self._rounds = 0.5, 1.0

    def predict(self, score: float) -> float:
        return self._ones / self._rounds

    def learn(self, score: float, outcome: int) -> None:
        self._ones += outcome
        self._rounds += 1


def logit(p: float) -> float:
    p = min(max(p, 1e-6), 1 - 1e-6)
    return math.log(p / (1 - p))


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z)) if z > 0 else 1 - 1 / (1 + math.exp(z))


class OnlinePlatt(Peer):
    """Slope and offset on the score's logit by online Newton steps (Gupta & Ramdas, 2023).

    Theirs are rate 0.1, ridge 100 and the ball of radius 100; a lower rate means longer steps. With
    ``bins`` the forecast is the share of ones in its bin so far (their calibeating by tracking;
    they have ten bins).
    """

    def __init__(
        self, rate: float = 0.1, ridge: float = 100, bins: int = 0, radius: float = 100
    ) -> None:
        self._rate, self._radius = rate, radius
        self._slope, self._offset = 1.0, 0.0
        self._aa, self._ab, self._bb = float(ridge), 0.0, float(ridge)
        self._ones = [(i + 0.5) / bins for i in range(bins)]
        self._rounds = [1.0] * bins

    def _platt(self, score: float) -> float:
        return sigmoid(self._slope * logit(score) + self._offset)

    def _bin(self, said: float) -> int:
        return min(int(said * len(self._ones)), len(self._ones) - 1)

    def predict(self, score: float) -> float:
        said = self._platt(score)
        if not self._ones:
            return said
        i = self._bin(said)
        return self._ones[i] / self._rounds[i]

    def learn(self, score: float, outcome: int) -> None:
        said = self._platt(score)
        if self._ones:
            i = self._bin(said)
            self._ones[i] += outcome
            self._rounds[i] += 1
        self._newton((said - outcome) * logit(score), said - outcome)

    def _newton(self, a: float, b: float) -> None:
        self._aa += a * a
        self._ab += a * b
        self._bb += b * b
        scale = 1 / (self._rate * (self._aa * self._bb - self._ab * self._ab))
        self._slope -= scale * (self._bb * a - self._ab * b)
        self._offset -= scale * (self._aa * b - self._ab * a)
        if math.hypot(self._slope, self._offset) > self._radius:
            self._project()

    def _project(self) -> None:
        """Go to the nearest point of the ball, in the matrix's norm: its multiplier by bisection."""
        matrix = np.array([[self._aa, self._ab], [self._ab, self._bb]])
        far = matrix @ [self._slope, self._offset]

        def point(multiplier: float) -> np.ndarray:
            return np.linalg.solve(matrix + multiplier * np.eye(2), far)

        low, high = 0.0, float(np.linalg.norm(far)) / self._radius
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if np.linalg.norm(point(middle)) > self._radius else (low, middle)
            )
        self._slope, self._offset = map(float, point(high))


class Windowed(Peer):
    """A map fitted by scikit-learn to the last ``window`` rounds, every ``every`` rounds.

    The score as it is until the first fit; while the window has one kind of outcome only, the last
    map stays.
    """

    def __init__(self, window: int, every: int = 100) -> None:
        self._window, self._every = window, every
        self._scores: list[float] = []
        self._outcomes: list[int] = []
        self._new = 0
        self._fitted = False

    def predict(self, score: float) -> float:
        return self._map(score) if self._fitted else score

    def learn(self, score: float, outcome: int) -> None:
        self._scores.append(score)
        self._outcomes.append(outcome)
        self._new += 1
        if self._new == self._every:
            self._new = 0
            del self._scores[: -self._window], self._outcomes[: -self._window]
            if 0 < sum(self._outcomes) < len(self._outcomes):
                self._fit(np.array(self._scores), np.array(self._outcomes))
                self._fitted = True

    def _map(self, score: float) -> float:
        raise NotImplementedError

    def _fit(self, x: np.ndarray, y: np.ndarray) -> None:
        raise NotImplementedError


class WindowedIsotonic(Windowed):
    """IsotonicRegression.

    Its map is looked up here: calling its predict for one score costs forty times as much.
    """

    def _fit(self, x: np.ndarray, y: np.ndarray) -> None:
        fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(x, y)
        self._at, self._values = fitted.X_thresholds_.tolist(), fitted.y_thresholds_.tolist()

    def _map(self, score: float) -> float:
        at, values = self._at, self._values
        right = bisect_right(at, score)
        if right in (0, len(at)):
            return values[min(right, len(at) - 1)]
        share = (score - at[right - 1]) / (at[right] - at[right - 1])
        return values[right - 1] + share * (values[right] - values[right - 1])


class WindowedSigmoid(Windowed):
    """LogisticRegression on the logit of the score, with its default ridge."""

    def _fit(self, x: np.ndarray, y: np.ndarray) -> None:
        fitted = LogisticRegression().fit(np.array([[logit(score)] for score in x]), y)
        self._slope, self._offset = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])

    def _map(self, score: float) -> float:
        return sigmoid(self._slope * logit(score) + self._offset)


class Streamcal(Peer):
    """StreamingIsotonicCalibrator, given outcomes in batches: its decay is meant for a batch."""

    def __init__(self, decay: float, every: int = 100, n_bins: int = 100) -> None:
        import streamcal

        self._calibrator = streamcal.StreamingIsotonicCalibrator(n_bins=n_bins, decay=decay)
        self._every = every
        self._scores: list[float] = []
        self._outcomes: list[int] = []

    def predict(self, score: float) -> float:
        return float(self._calibrator.calibrate([score])[0])

    def learn(self, score: float, outcome: int) -> None:
        self._scores.append(score)
        self._outcomes.append(outcome)
        if len(self._scores) == self._every:
            self._calibrator.update(self._scores, self._outcomes)
            self._scores, self._outcomes = [], []


RAW, MEAN, PLATT = "raw", "running mean", "online Platt"
PEERS: dict[str, Callable[[], Method]] = {
    RAW: Raw,
    MEAN: RunningMean,
    PLATT: OnlinePlatt,
    "online Platt, long steps": partial(OnlinePlatt, rate=0.03),
    "online Platt, tracked": partial(OnlinePlatt, rate=0.03, bins=10),
    "isotonic, window": partial(WindowedIsotonic, 2_500),
    "sigmoid, window": partial(WindowedSigmoid, 1_000),
    "streamcal": partial(Streamcal, 0.9),
}
TRIED: dict[str, list[partial[Method]]] = {
    PLATT: [partial(OnlinePlatt, rate=r, ridge=w) for r in (0.03, 0.1, 0.3, 1.0) for w in (1, 100)],
    "online Platt, tracked": [
        partial(OnlinePlatt, rate=r, bins=b) for r in (0.03, 0.1) for b in (10, 30)
    ],
    "isotonic, window": [
        partial(WindowedIsotonic, window) for window in (1_000, 2_500, 5_000, 10_000)
    ],
    "sigmoid, window": [
        partial(WindowedSigmoid, window) for window in (1_000, 2_500, 5_000, 10_000)
    ],
    "streamcal": [
        partial(Streamcal, d, n_bins=b) for d in (0.9, 0.95, 0.98, 0.99, 1.0) for b in (20, 100)
    ],
}
