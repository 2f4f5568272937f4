"""What `truecast measure` prints about several classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truecast._names import aligned, cut_in_the_middle, terminal_width
from truecast.cli.terminal import WIDTH, echo, echo_json, fitted
from truecast.errors import shown

if TYPE_CHECKING:
    from truecast.files import ClassTallies
    from truecast.report.class_findings import ClassFinding
    from truecast.report.class_groups import ClassGroups

_MOST = 50  # classes in the table; all are in the JSON
_LONGEST = 24  # letters of a name
_SHORTEST = 8  # room for the name of a group


def print_classes(found: ClassTallies, resamples: int | None, as_json: bool) -> None:
    """Print all that was measured."""
    from truecast.report.class_findings import find_classes

    finding = find_classes(found.tally, resamples, groups=found.groups)
    if as_json:
        echo_json(_as_json(found, finding))
        return
    from truecast.measures.class_report import NOT_PROMISED
    from truecast.measures.classes import NOTIONS

    if finding.kind != "weighted":
        echo(fitted(f"{finding.headline}."))
        for sentence in finding.sentences:
            echo(fitted(sentence, indent="  "))
        echo("")
    echo(_figures(finding))
    echo("\n" + _by_class(finding))
    if finding.groups is not None:
        echo("\n" + _by_group(finding.groups, found.names.group or "group") + "\n")
    for notion, meaning in NOTIONS.items():
        echo(fitted(f"{notion}: an error of 0 means that {meaning}.", indent="  "))
    echo(fitted(f"{NOT_PROMISED[0].upper()}{NOT_PROMISED[1:]}.", indent="  "))


def _figures(finding: ClassFinding) -> str:
    figures = finding.figures
    lines: list[Sequence[str]] = [
        ["rounds" if type(figures.total) is int else "weight", f"{figures.total:,}"],
        ["classes", f"{len(figures.labels):,}"],
    ]
    for about, some in figures.figures.items():
        lines += [[about], *([f"  {name}", f"{figure:.6f}"] for name, figure in some.items())]
    for kind, name in (("brier", "Brier score"), ("log", "log loss")):
        lines.append([f"{name} = miscalibration - discrimination + uncertainty"])
        for part in ("miscalibration", "discrimination", "uncertainty"):
            lines.append([f"  {part}", f"{getattr(getattr(figures, kind), part):.6f}"])
    return aligned(lines, [False, True])


def _by_class(finding: ClassFinding) -> str:
    figures, sure = finding.figures, finding.sure
    head = ["class", "came", "forecast", "predicted", "Brier", "error"]
    lines: list[Sequence[str]] = [[*head, *([] if sure is None else ["chance", "p-value"])]]
    adjusted = None if sure is None else sure.adjusted
    for k, label in enumerate(figures.labels[:_MOST]):
        numbers = [
            figures.rate[k],
            figures.mean_forecast[k],
            float(figures.top_label.share[k]),
            figures.parts.brier[k].score,
            float(figures.classwise.each[k]),
        ]
        chance = (
            []
            if sure is None or adjusted is None
            else [f"{sure.chance[k]:.4f}", _p_value(float(adjusted[k]))]
        )
        lines.append([_name(label), *(f"{number:.4f}" for number in numbers), *chance])
    table = aligned(lines, [False] + [True] * (len(lines[0]) - 1))
    more = len(figures.labels) - _MOST
    rest = f"\n{more:,} more classes: see --json" if more > 0 else ""
    about = [
        "came, forecast, predicted: how often it came, its mean forecast, how often it was the",
        "most probable; error: the smooth calibration error, classwise",
    ]
    if sure is not None:
        about[-1] += "; chance: what that would be"
        about.append(f"if calibrated; p-value adjusted for {len(figures.labels):,} classes (Holm)")
    return table + rest + "\n" + fitted(" ".join(about))


def _by_group(groups: ClassGroups, column: str) -> str:
    counted = "rounds" if type(groups.figures[0].total) is int else "weight"
    head = counted, "Brier", "log", "sum", "worst", "top", "conf.", "p-value"
    lines: list[Sequence[str]] = [head]
    for figures, p in zip(groups.figures, groups.adjusted.tolist(), strict=True):
        numbers = (
            figures.brier.score,
            figures.log.score,
            figures.classwise.sum,
            figures.classwise.worst,
            figures.top_label.sum,
            figures.confidence,
        )
        total = figures.total
        rounds = f"{total:,}" if isinstance(total, int) else f"{total:,.6g}"
        lines.append([rounds, *(f"{number:.4f}" for number in numbers), _p_value(p)])
    widest = (max(map(len, cells)) for cells in zip(*lines, strict=True))
    room = max(_SHORTEST, WIDTH - 2 * len(head) - sum(widest))
    names = ["group", *(_name(name, room) for name in groups.names)]
    table = aligned(
        [[name, *line] for name, line in zip(names, lines, strict=True)],
        [False] + [True] * len(head),
    )
    tested = any(p == p for p in groups.p_value.tolist())
    order = "most evidence against them" if tested else "largest errors for their size"
    title = f"by {_name(column)}, those with the {order} first"
    about = (
        "Brier, log: proper scores. sum, worst: the classwise smooth errors, summed, and the "
        "largest; top: top-label, summed; conf.: of the confidence. p-value: that some class is "
        f"off, adjusted for {len(groups.names):,} groups and {len(groups.figures[0].labels):,} "
        "classes; nan where chance was not simulated"
    )
    return f"{title}\n{table}\n{fitted(about)}"


def _p_value(value: float) -> str:
    return "<0.0001" if value < 1e-4 else f"{value:.3g}"


def _name(label: object, most: int = _LONGEST) -> str:
    text = "(none)" if label is None else repr(label) if label == "(none)" else shown(str(label))
    return cut_in_the_middle(text, lambda text: terminal_width(text) <= most)


def _as_json(found: ClassTallies, finding: ClassFinding) -> dict[str, Any]:
    data = finding.figures.to_dict()
    for sure, prefix in ((finding.sure, ""), (finding.sure_top, "top_label_")):
        if sure is not None:
            for k, row in enumerate(data["classes"]):
                row[f"{prefix}if_calibrated"] = float(sure.chance[k])
                row[f"{prefix}p_value"] = float(sure.p_value[k])
                row[f"{prefix}adjusted_p_value"] = float(sure.adjusted[k])
    verdict = None
    if finding.kind != "weighted":
        verdict = {
            "kind": finding.kind,
            "headline": finding.headline,
            "p_value": finding.p_value,
            "sentences": finding.sentences,
            "off": list(finding.off),
            "off_where_predicted": list(finding.off_top),
            "confidence_off": finding.confidence_off,
        }
    counts = {"rows": found.rows, "skipped": found.skipped, "pooled": found.pooled}
    more: dict[str, Any] = {"confusion": found.tally.confusion.tolist()}
    if finding.groups is not None:
        more["groups"] = finding.groups.to_dicts()
    return counts | {"scores": list(found.names.scores), "verdict": verdict} | data | more
