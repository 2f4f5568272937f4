# %% [markdown]
"""A classifier before and after recalibration, with a report to send to someone.

A random forest separates odd digits from even ones very well, but is underconfident: its trees
disagree, so its probabilities stay away from 0 and 1. It was fitted once and must not change. New
digits come one after another: the forest scores each, the recalibrator forecasts it, and then
learns the outcome.

As a script, or in cells (`# %%`), which editors and jupytext open as a notebook:
`pip install ".[plot,sklearn]"`, then `python examples/digits_report.py [REPORT.html]`.
"""

# %%
# ruff: noqa: T201  it prints
import sys

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

import truecast as tc
from truecast.adapters.sklearn import RecalibratedClassifier

X, digits = load_digits(return_X_y=True)
X_old, X_new, y_old, y_new = train_test_split(X, digits % 2, test_size=0.5, random_state=0)
forest = RandomForestClassifier(40, random_state=0).fit(X_old, y_old)
scores = forest.predict_proba(X_new)[:, 1]

# %% [markdown]
# ## After
#
# `FrozenEstimator` keeps the forest unchanged. `forecasts_` are the forecasts of each row, made
# before its outcome was used.

# %%
model = RecalibratedClassifier(FrozenEstimator(forest)).partial_fit(X_new, y_new)
for name, p in {"the forest": scores, "recalibrated": model.forecasts_}.items():
    print(
        f"  {name:<14} Brier {tc.brier_score(y_new, p):.4f}   smCE "
        f"{tc.smooth_calibration_error(y_new, p):.4f}"
    )
print(model.certificate_)

# %% [markdown]
# ## The report
#
# One file, which loads nothing: what was measured, is it calibrated, where not, before and after,
# and what is proved.

# %%
report = tc.html_report(
    y_new,
    scores,
    after=model.forecasts_,
    certificate=model.certificate_,
    title="Odd digits",
    score="the forest",
)
print(report)
report.save(sys.argv[1] if len(sys.argv) == 2 else "digits.html")
