# %% [markdown]
"""Several models on one data set: which is best, which is calibrated, which can be improved.

The task: is a handwritten digit odd? 1,797 of them come with scikit-learn. Every model forecasts
only digits that it has not seen.

As a script, or in cells (`# %%`), which editors and jupytext open as a notebook:
`pip install ".[plot,sklearn]"`, then `python examples/compare_models.py`.
"""

# %%
# ruff: noqa: T201  it prints
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import truecast as tc

X, digits = load_digits(return_X_y=True)
y = digits % 2
models = {
    "the mean outcome": DummyClassifier(strategy="prior"),
    "naive Bayes": GaussianNB(),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
    "random forest": RandomForestClassifier(40, random_state=0),
    "ten neighbours": KNeighborsClassifier(10),
}
forecasts = {
    name: cross_val_predict(model, X, y, method="predict_proba")[:, 1]
    for name, model in models.items()
}

# %% [markdown]
# ## Scores first
#
# The Brier score and the log loss decide which model to use. One forecast of 0 that comes true
# makes the log loss infinite: nearest neighbours say 0 if they all agree, and are sometimes wrong.

# %%
print(f"{'':<22}{'Brier':>8}{'log loss':>10}{'miscalibration':>16}{'discrimination':>16}")
for name, p in forecasts.items():
    brier = tc.reliability_curve(y, p).brier
    parts = f"{brier.miscalibration:>16.4f}{brier.discrimination:>16.4f}"
    print(f"{name:<22}{brier.score:>8.4f}{tc.log_loss(y, p):>10.4f}{parts}")

# %% [markdown]
# ## Then calibration
#
# The mean outcome is calibrated and knows nothing. Logistic regression shows no error beyond chance
# on these few digits. The forest knows much more, but is underconfident: its error is beyond
# chance, and can be repaired.

# %%
print(f"\n{'':<22}{'smCE':>8}{'if calibrated':>15}{'p-value':>9}")
for name, p in forecasts.items():
    found = tc.uncertainty(tc.smooth_calibration_error, y, p, resamples=200)
    print(f"{name:<22}{found.estimate:>8.4f}{found.if_calibrated:>15.4f}{found.p_value:>9.3f}")

# %% [markdown]
# ## A picture of each

# %%
diagrams = {name: tc.plot.reliability_diagram(y, p) for name, p in forecasts.items()}
for diagram in diagrams.values():
    diagram.draw()
