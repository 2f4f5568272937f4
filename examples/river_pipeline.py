"""Probabilities to rely on in a river pipeline: web pages, phishing or not.

Logistic regression learns as the pages come in. Recalibrated, its probabilities are better in both
ways that are measured here: Brier score, for sharpness and calibration together, and smCE, for
calibration alone (0 is perfect). Then the same with labels that come fifty pages late.
"""
# ruff: noqa: T201  it prints

from river import datasets, stream
from river.linear_model import LogisticRegression
from river.preprocessing import StandardScaler

import truecast as tc
from truecast.adapters.river import Recalibrated


def show(name, y, p):
    """Print how good the forecasts `p` of the outcomes `y` are."""
    print(
        f"{name:<34} Brier {tc.brier_score(y, p):.4f}   smCE "
        f"{tc.smooth_calibration_error(y, p):.4f}"
    )


def follow(model):
    """Return the outcomes and what the model said before each."""
    rounds = []
    for x, y in datasets.Phishing():
        rounds.append((y, model.predict_proba_one(x)[True]))
        model.learn_one(x, y)
    return zip(*rounds, strict=True)


print("Labels at once")
show("  logistic regression", *follow(StandardScaler() | LogisticRegression()))
model = StandardScaler() | Recalibrated(LogisticRegression())
show("  recalibrated", *follow(model))
print(model["Recalibrated"].certificate)

# Around the whole pipeline, to issue forecasts: the certificate is about what was said in time.
plain = StandardScaler() | LogisticRegression()
model = Recalibrated(StandardScaler() | LogisticRegression())
tickets, unaided, rounds = {}, {}, []
for number, x, y in stream.simulate_qa(datasets.Phishing(), moment=None, delay=50):
    if y is None:  # a page: say something
        tickets[number] = model.issue_one(x)
        unaided[number] = plain.predict_proba_one(x)[True]
    else:  # its label
        ticket = tickets.pop(number)
        model.resolve_one(ticket, x, y)
        plain.learn_one(x, y)
        rounds.append((y, unaided.pop(number), ticket.p))
outcomes, raw, said = zip(*rounds, strict=True)
print("\nLabels fifty pages late")
show("  logistic regression", outcomes, raw)
show("  recalibrated", outcomes, said)
print(model.certificate)
