"""Probabilities to rely on from a scikit-learn classifier: tumours, benign or not.

Naive Bayes tells them apart well and is far too sure of itself. Recalibrated, its probabilities are
better in both ways that are measured here: Brier score, for sharpness and calibration together, and
smCE, for calibration alone (0 is perfect). Then the model goes to work: each new case is forecast
before its outcome is known, and the proof goes on.
"""
# ruff: noqa: T201  it prints

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import truecast as tc
from truecast.adapters.sklearn import RecalibratedClassifier

X, y = load_breast_cancer(return_X_y=True)
X_old, X_new, y_old, y_new = train_test_split(X, y, test_size=0.5, random_state=0)


def show(name, y, p):
    """Print how good the forecasts `p` of the outcomes `y` are."""
    print(
        f"{name:<34} Brier {tc.brier_score(y, p):.4f}   smCE "
        f"{tc.smooth_calibration_error(y, p):.4f}"
    )


# Fitted once. The recalibrator learns from rows that the classifier it hears had not seen.
raw = GaussianNB().fit(X_old, y_old)
model = RecalibratedClassifier(GaussianNB()).fit(X_old, y_old)
print("New cases, all at once")
show("  naive Bayes", y_new, raw.predict_proba(X_new)[:, 1])
show("  recalibrated", y_new, model.predict_proba(X_new)[:, 1])

# Learning on, a case at a time: what is said here is what the certificate is about.
said, unaided = [], []
for case, outcome in zip(X_new, y_new, strict=True):
    unaided.append(raw.predict_proba([case])[0, 1])
    said.append(model.predict_proba([case])[0, 1])
    raw.partial_fit([case], [outcome])
    model.partial_fit([case], [outcome])
print("New cases, each learned before the next")
show("  naive Bayes", y_new, unaided)
show("  recalibrated", y_new, said)

print(
    f"\nThe forecasts in all rounds, {len(y_old)} of fit (out of fold) and {len(y_new)} of "
    "partial_fit,"
)
print(model.certificate_)
