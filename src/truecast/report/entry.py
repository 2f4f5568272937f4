"""The public edge of the report: what users pass, and what they get."""

from __future__ import annotations

import datetime
import html
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from truecast import _check
from truecast._atomic import replaced
from truecast.certificate import ArcCertificate, Certificate
from truecast.class_tally import ClassTally, as_class_tally, of_classes
from truecast.errors import InputError
from truecast.plot import GroupOverview, group_overview
from truecast.recalibrate import ClassCertificate
from truecast.report.class_findings import find_classes
from truecast.report.class_groups import class_tallies_of
from truecast.report.context import Context
from truecast.report.course import RunningCourse, TimeCourse, course_of
from truecast.report.findings import find
from truecast.report.markup import different
from truecast.report.page import class_page, page
from truecast.report.verdict import headline
from truecast.tally import Tally, as_tally

__all__ = ["HtmlReport", "html_report"]

_BINS = 50, 25  # of the pictures: of one score, and of several, to keep the page small


@dataclass(frozen=True)
class HtmlReport:
    """What `html_report` returns: a page, to show in a notebook or to save.

    Attributes
    ----------
    html : str
        The whole document. It loads nothing from the network.
    title : str
    verdicts : mapping
        For each score, the verdict in one line; with `after`, before and after.
    """

    html: str = field(repr=False)
    title: str
    verdicts: Mapping[str, str]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, completely or not at all; return its path."""
        target = Path(path)
        with replaced(target) as place:
            place.write_bytes(self.html.encode())
        return target

    def __str__(self) -> str:
        lines = [f"  {score}: {verdict}" for score, verdict in self.verdicts.items()]
        size = f"  {len(self.html.encode()):,} bytes of HTML: save(path), or show in a notebook"
        return "\n".join([self.title, *lines, size])

    def _repr_html_(self) -> str:
        style = "width:100%;height:80vh;border:1px solid #8886;border-radius:6px"
        document, title = html.escape(self.html), html.escape(self.title)
        about = f'title="{title}" sandbox="allow-scripts" style="{style}"'
        return f'<iframe srcdoc="{document}" {about}></iframe>'


def html_report(
    y_true: Any | Tally | ClassTally | Mapping[str, Tally],
    y_prob: Any = None,
    *,
    labels: Any = None,
    normalize: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
    after: Any = None,
    groups_after: Any = None,
    times: Any = None,
    certificate: Certificate | ArcCertificate | ClassCertificate | None = None,
    title: str | None = None,
    source: str | None = None,
    outcome: str | None = None,
    score: str | None = None,
    group: str | None = None,
    options: Sequence[str] = (),
    skipped: int = 0,
    date: str | datetime.date | None = None,
    level: float = 0.9,
    resamples: int | None = None,
    random_state: int = 0,
) -> HtmlReport:
    """Make a page about forecasts: are they calibrated, how sure is that, where not, what to do.

    One HTML file for readers who do not use Python: it loads nothing, works on a phone and on
    paper, in light and dark. The verdict compares the smooth calibration error and all stretches of
    neighbouring forecasts with chance (`stretches`), and stands beside proper scores. It never says
    that forecasts *are* calibrated: no sample can prove that. It assumes independent rounds: if
    outcomes come in clusters, p-values are too small.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone. For several scores of the same outcomes,
        `y_prob` is a mapping from their names to forecasts, or `y_true` one from their names to
        tallies.
    labels, normalize
        For several classes, with `y_prob` of shape (rounds, classes) or a ClassTally alone: as in
        `ClassTally.from_predictions`. The page then has a picture for each class and the table of
        predicted and actual classes; it takes no times.
    groups
        The group of each round. With tallies, or a ClassTally, a mapping from groups to theirs (for
        several scores, one mapping for each).
    after
        Recalibrated forecasts of the same rounds, or their tally, to compare before and after. For
        one score, or for the rows of several classes. With `groups`, each is compared, too.
    groups_after
        With tallies in `after` and in `groups`: a mapping from the same groups to the tallies of
        their recalibrated forecasts. Otherwise it is found from `after`.
    times
        The time of each round, as dates, ISO 8601 texts or numbers, in any order: adds mean
        forecasts and outcomes over time. With a tally, a `truecast.report.RunningCourse` of the
        same rounds.
    certificate
        Of the recalibrator or forecaster: adds what is proved so far and at worst.
    title, source, outcome, score, group
        Names of the page, the file and the columns (of several classes, with commas between them).
        They are shown unchanged, never as markup.
    options
        More options of the command with which the file was read, such as ("--positive", "yes"):
        for the command that the page suggests.
    skipped
        How many rows could not be read.
    date
        Shown on the page. Without it, the same input gives the same page, byte for byte.
    level
        Of intervals and bands.
    resamples
        How often chance is simulated. None: 999 times, or 499 if there are more than 512 distinct
        forecasts.
    random_state
        The seed of the simulation.

    Raises
    ------
    InputError
        If rounds or options break a rule, or `after` has other rounds.

    Examples
    --------
    >>> import truecast as tc
    >>> report = tc.html_report([0, 0, 0, 1] * 50, [0.25, 0.5, 0.5, 0.75] * 50, title="Rain")
    >>> print(report)
    Rain
      forecast: Not calibrated: forecasts are not extreme enough (underconfident)
      ... bytes of HTML: save(path), or show in a notebook
    >>> report.save("rain.html")  # doctest: +SKIP

    Notes
    -----
    About two seconds for a million rounds at a million distinct forecasts, after the tally; 60 KB,
    and 30 KB more for each further score. Resamples are of forecasts pooled in at most 2,048 cells.
    """
    several = not isinstance(y_true, Mapping) and of_classes(y_true, y_prob, labels)
    chosen: dict[str, Any] = {
        "level": _check.between("level", level, 0, 1),
        "random_state": _check.whole_number("random_state", random_state, least=0, most=2**63 - 1),
    }
    if resamples is not None:
        resamples = _check.resamples(resamples)
    context = Context(
        title=_text("title", title) or _title(source, after is not None),
        source=_text("source", source),
        outcome=_text("outcome", outcome),
        score_known=score is not None or isinstance(y_true, Mapping) or isinstance(y_prob, Mapping),
        group=_text("group", group),
        skipped=_check.whole_number("skipped", skipped, least=0, most=_check.MOST_ROUNDS),
        date=date.isoformat() if isinstance(date, datetime.date) else _text("date", date),
        certificate=_certificate(certificate),
        score=_text("score", score),
        options=tuple(options),
    )
    if several:
        given = _ClassRounds(y_true, y_prob, labels, sample_weight, normalize)
        return _of_classes(given, context, (groups, groups_after), after, times, resamples)
    if isinstance(certificate, ClassCertificate):
        raise InputError("certificate", "must be of outcomes 0 or 1, as the forecasts", certificate)
    tallies = _tallies(y_true, y_prob, sample_weight, _text("score", score) or "forecast")
    overviews = _overviews(groups, tallies, (y_true, y_prob, sample_weight), chosen)
    later = None if after is None else _after(after, tallies, y_true, sample_weight)
    if groups_after is None and not isinstance(after, Tally) and later is not None:
        overviews_after = _overviews(groups, tallies, (y_true, after, sample_weight), chosen)
    else:
        _check_groups_after(groups_after, groups, after)
        overviews_after = _overviews(groups_after, tallies, (later, None, None), chosen)
    chosen |= {"after": later, "resamples": resamples, "bins": _BINS[len(tallies) > 1]}
    courses = _courses(times, tallies, (y_true, y_prob, sample_weight), after)
    findings = [
        find(
            name,
            tally,
            groups=overviews.get(name),
            groups_after=overviews_after.get(name),
            course=courses.get(name),
            label=label,
            **chosen,
        )
        for (name, tally), label in zip(tallies.items(), different(tallies), strict=True)
    ]
    verdicts = {finding.name: headline(finding) for finding in findings}
    return HtmlReport(page(findings, context), context.title, verdicts)


class _ClassRounds(NamedTuple):
    """Rounds of several classes as they were given."""

    y_true: Any
    y_prob: Any
    labels: Any
    sample_weight: Any
    normalize: bool

    def tally(self) -> ClassTally:
        return as_class_tally(**self._asdict())

    def tally_after(self, after: Any, before: ClassTally) -> ClassTally:
        """Return the tally of recalibrated forecasts, which must be of the same rounds."""
        if isinstance(after, ClassTally):
            found = after
        elif isinstance(self.y_true, ClassTally):
            raise InputError("after", "must be a ClassTally beside a ClassTally", after)
        else:
            known = before.labels if self.labels is None else self.labels
            given = self._replace(y_prob=after, labels=known, normalize=False)
            found = given.tally()
        same = found.labels == before.labels and found.weighted == before.weighted
        if not same or [*_came(found)] != [*_came(before)]:
            rule = f"must have the {before.total:,} rounds of the forecasts, of the same classes"
            raise InputError("after", rule, found)
        return found


def _came(tally: ClassTally) -> Iterator[float]:
    """Yield how often each class came."""
    for one in tally.classes:
        yield float(f"{one.ones.sum():.12g}")  # weights may be added in another order


def _of_classes(
    given: _ClassRounds,
    context: Context,
    groups: tuple[Any, Any],
    after: Any,
    times: Any,
    resamples: int | None,
) -> HtmlReport:
    """Return the page about several classes."""
    if times is not None:
        raise InputError("times", "must be left out beside several classes", times)
    if isinstance(context.certificate, Certificate | ArcCertificate):
        rule = "must be that of a recalibrator of several classes, as the forecasts"
        raise InputError("certificate", rule, context.certificate)
    tally = given.tally()
    later = None if after is None else given.tally_after(after, tally)
    before_groups, after_groups = groups
    rounds_after: _ClassRounds | None = None
    if after_groups is not None:
        _check_groups_after(after_groups, before_groups, after)
        rounds_after = given._replace(y_true=later, y_prob=None)
    elif later is not None and not isinstance(after, ClassTally):
        known, after_groups = tally.labels, before_groups
        rounds_after = given._replace(y_prob=after, labels=known, normalize=False)
    finding = find_classes(
        tally,
        resamples,
        groups=None if before_groups is None else class_tallies_of(before_groups, *given),
        after=later,
        groups_after=None
        if rounds_after is None or after_groups is None
        else class_tallies_of(after_groups, *rounds_after),
    )
    verdicts = {context.title: finding.headline}
    return HtmlReport(class_page(finding, context), context.title, verdicts)


def _check_groups_after(groups_after: Any, groups: Any, after: Any) -> None:
    """Refuse groups of recalibrated forecasts that are not those of the forecasts."""
    if groups_after is None:
        return
    if after is None or not isinstance(groups, Mapping) or not isinstance(groups_after, Mapping):
        rule = "must be a mapping from groups to tallies, beside `groups` and `after` of tallies"
        raise InputError("groups_after", rule, groups_after)
    if set(groups_after) != set(groups):
        raise InputError("groups_after", "must have the same groups as `groups`", groups_after)


def _title(source: str | None, after: bool) -> str:
    if after:
        file = "" if source is None else f": {PurePath(source).name}"
        return f"Before and after recalibration{file}"
    return "Calibration report" if source is None else f"Calibration of {PurePath(source).name}"


def _text(name: str, value: object) -> str | None:
    return None if value is None else _check.text(name, value)


def _tallies(y_true: Any, y_prob: Any, sample_weight: Any, score: str) -> dict[str, Tally]:
    """Return the tally of each score."""
    if isinstance(y_true, Mapping):
        if y_prob is not None or sample_weight is not None:
            raise InputError("y_prob", "and sample_weight must be left out beside tallies", y_prob)
        for tally in y_true.values():
            if not isinstance(tally, Tally):
                raise InputError("y_true", "must be a Tally", tally)
        found = {_check.text("y_true", name): as_tally(tally) for name, tally in y_true.items()}
    elif isinstance(y_prob, Mapping):
        found = {
            _check.text("y_prob", name): as_tally(y_true, p, sample_weight)
            for name, p in y_prob.items()
        }
    else:
        return {score: as_tally(y_true, y_prob, sample_weight)}
    if not found:
        raise InputError("y_prob", "must have at least one score", {})
    return found


def _overviews(
    groups: Any, tallies: dict[str, Tally], rounds: tuple[Any, Any, Any], options: dict[str, Any]
) -> dict[str, GroupOverview]:
    """Return how each group does under each score."""
    y_true, y_prob, sample_weight = rounds
    if groups is None:
        return {}
    if not isinstance(y_true, Tally | Mapping):
        scores = y_prob if isinstance(y_prob, Mapping) else dict.fromkeys(tallies, y_prob)
        weights = {"sample_weight": sample_weight}
        return {
            name: group_overview(y_true, p, groups, **weights, **options)
            for name, p in scores.items()
        }
    if not isinstance(groups, Mapping):
        raise InputError(
            "groups", "must be a mapping from groups to tallies beside a Tally", groups
        )
    if len(tallies) == 1 and not any(isinstance(part, Mapping) for part in groups.values()):
        groups = dict.fromkeys(tallies, groups)
    if set(groups) != set(tallies) or not all(
        isinstance(part, Mapping) for part in groups.values()
    ):
        raise InputError(
            "groups", "must have a mapping from groups to tallies for each score", list(groups)
        )
    return {name: group_overview(groups[name], **options) for name in tallies}


def _after(after: Any, tallies: dict[str, Tally], y_true: Any, sample_weight: Any) -> Tally:
    if len(tallies) > 1:
        raise InputError("after", "must be left out beside several scores", after)
    if not isinstance(after, Tally) and isinstance(y_true, Tally | Mapping):
        raise InputError("after", "must be a Tally beside a Tally", after)
    found = as_tally(after) if isinstance(after, Tally) else as_tally(y_true, after, sample_weight)
    (before,) = tallies.values()
    counts = [(tally.total, tally.ones.sum()) for tally in (before, found)]
    if not before.weighted and counts[0] != counts[1]:
        rule = f"must have the {before.total:,} rounds and {counts[0][1]:,} ones of the forecasts"
        raise InputError("after", rule, found)
    return found


def _courses(
    times: Any, tallies: dict[str, Tally], rounds: tuple[Any, Any, Any], after: Any
) -> dict[str, TimeCourse | None]:
    """Return what each score did over time."""
    y_true, y_prob, sample_weight = rounds
    if times is None:
        return {}
    if sample_weight is not None:
        raise InputError("times", "must be left out beside sample_weight", times)
    if isinstance(times, RunningCourse):
        if len(tallies) > 1:
            raise InputError("times", "must be the time of each round beside several scores", times)
        return dict.fromkeys(tallies, times.course(recalibrated=after is not None))
    if isinstance(y_true, Tally | Mapping):
        raise InputError("times", "must be a RunningCourse beside a Tally", times)
    scores = y_prob if isinstance(y_prob, Mapping) else dict.fromkeys(tallies, y_prob)
    later = None if isinstance(after, Tally) else after
    return {name: course_of(times, y_true, p, later) for name, p in scores.items()}


def _certificate(value: object) -> Certificate | ArcCertificate | ClassCertificate | None:
    if value is not None and not isinstance(value, Certificate | ArcCertificate | ClassCertificate):
        raise InputError(
            "certificate", "must be what a forecaster's or recalibrator's certificate is", value
        )
    return value
