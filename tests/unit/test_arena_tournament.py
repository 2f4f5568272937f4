"""Tournaments: which games are played, that they are measured right, and that nothing is lost when
one is stopped."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truecast as tc
from players import DeafFromTheStart, Own, aosa, broken, deadly, deaf, dice, own
from truecast.arena import Coins, Constant, GreedyCertificate, Periodic, Threshold, play
from truecast.arena.results import Results
from truecast.arena.roster import ADVERSARIES, FORECASTERS
from truecast.arena.rows import COLUMNS
from truecast.arena.tournament import tournament
from truecast.arena.workers import in_processes

FEW = {"aosa": aosa, "dice": dice, "own": own}
SOME = {
    "constant": Constant(),
    "coins": Coins(),
    "threshold": Threshold(),
    "certificate": GreedyCertificate(),
}
small = partial(tournament, FEW, SOME, [4, 25], 2, rtol=0.0)


def same(one: Results, other: Results) -> bool:
    """Whether all is equal, the bounds on the distance up to rounding."""
    rounded = [
        [
            dataclasses.replace(row, lower=round(row.lower, 9), upper=round(row.upper, 9))
            for row in results.rows
        ]
        for results in (one, other)
    ]
    return rounded[0] == rounded[1]


def test_which_games_there_are() -> None:
    games = [(row.forecaster, row.adversary, row.rounds, row.seed) for row in small(workers=1).rows]
    coins = {"constant": False, "coins": True, "threshold": False, "certificate": False}
    expected = [
        (name, adversary, rounds, seed)
        for name in FEW
        for adversary, tossed in coins.items()
        if name == "aosa" or adversary != "certificate"  # which plays against ladders only
        for rounds in (4, 25)
        for seed in ([0, 1] if tossed or name == "dice" else [None])  # else one game says it all
    ]
    assert games == expected


def test_rows_say_what_the_measures_say() -> None:
    for row in small(workers=1).rows:
        forecaster = FEW[row.forecaster](row.rounds, row.seed or 0)
        game = play(forecaster, SOME[row.adversary], row.rounds, seed=row.seed or 0)
        assert row.lower <= game.distance().totals[1] + 1e-9
        assert row.upper >= game.distance().totals[0] - 1e-9
        assert row.upper - row.lower <= 1e-6
        assert row.by_value == tc.calibration_error_by_value(game.y, game.p, total=True)
        assert row.smooth == tc.smooth_calibration_error(game.y, game.p, total=True)
        assert row.brier == tc.brier_score(game.y, game.p)
        assert row.sees == SOME[row.adversary].sees
        assert row.certificate == (game.certificate.bound if row.forecaster == "aosa" else None)
        if row.forecaster == "aosa":
            assert (row.bound, row.bounds) == (game.certificate.a_priori, "distance")
        elif row.forecaster == "dice" and row.adversary != "threshold":  # who sees what was drawn
            assert (row.bound, row.bounds) == (row.rounds, "by value")
        else:
            assert (row.bound, row.bounds) == (None, None)


def test_seeds_reach_both_players_and_may_be_named() -> None:
    results = tournament(
        {"dice": dice}, {"constant": Constant(), "coins": Coins()}, [30], [7, 3, 5], workers=1
    )
    assert [row.seed for row in results.rows] == [7, 3, 5, 7, 3, 5]
    assert len({row.upper for row in results.rows if row.adversary == "constant"}) > 1
    alone = tournament({"dice": dice}, {"coins": Coins()}, [30], [3], workers=1)
    assert same(
        alone,
        Results(
            tuple(row for row in results.rows if (row.adversary, row.seed) == ("coins", 3)), 0.01
        ),
    )


@pytest.mark.slow("starts processes")
def test_processes_change_nothing() -> None:
    once = small(workers=1)
    assert same(once, small(workers=1))
    assert same(once, small(workers=2))
    assert same(once, small(workers=3, progress=lambda done, total: None))


def test_progress_counts_the_games() -> None:
    told: list[tuple[int, int]] = []
    results = small(workers=1, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, len(results)) for done in range(len(results) + 1)]


# what happens to files


def tiny(path: Path | None, **options: Any) -> Results:
    players = {"coins": Coins(), "constant": Constant()}
    return tournament({"aosa": aosa}, players, [3], 2, path=path, **{"workers": 1, **options})


@pytest.mark.slow("plays a tournament many times")
def test_stopped_at_any_byte_it_goes_on(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    results = tiny(whole)
    content = whole.read_bytes()
    assert content.count(b"\n") == 1 + len(results) == 4
    for size in range(len(content) + 1):
        cut.write_bytes(content[:size])
        told: list[int] = []
        assert tiny(cut, progress=lambda done, total, told=told: told.append(done)) == results
        # what is there is not played again
        assert told[0] == max(0, content[:size].count(b"\n") - 1)
        assert cut.read_bytes() == content


def test_a_file_grows_and_what_is_not_asked_for_stays(tmp_path: Path) -> None:
    path = tmp_path / "games"
    tiny(path)
    before = path.read_bytes()
    more = tournament({"own": own}, {"constant": Constant()}, [3, 4], path=path, workers=1)
    assert [row.forecaster for row in more.rows] == ["own"] * 2
    assert path.read_bytes().startswith(before)
    told: list[int] = []
    again = tournament({"own": own}, {"constant": Constant()}, [3, 4], path=path, workers=1,
                       progress=lambda done, total: told.append(done))  # fmt: skip
    assert again == more
    assert told == [2]  # although the forecaster is printed with its address
    assert tiny(path, progress=lambda done, total: told.append(done)) == tiny(None)
    assert told == [2, 3]


def test_two_tournaments_at_a_time_do_not_spoil_their_file(tmp_path: Path) -> None:
    path = tmp_path / "games"
    told: list[int] = []

    def another(done: int, total: int) -> None:
        if done == 1 and not told:
            told.append(
                tournament({"own": own}, {"constant": Constant()}, [3, 4], path=path, workers=1)
                .rows[0]
                .rounds
            )

    results = tiny(path, progress=another)
    assert told == [3]
    assert path.read_bytes().count(b"\n") == 1 + 3 + 2
    first: list[int] = []
    assert tiny(path, progress=lambda done, total: first.append(done)) == results
    assert first == [3]


def test_another_option_is_another_game(tmp_path: Path) -> None:
    path = tmp_path / "games"
    players = {"coins": Coins()}
    for change in ({}, {"grid": 1}, {"grid": 2}):
        told: list[int] = []
        found = tournament({"aosa": partial(aosa, **change)}, players, [50], 1,
                           path=path, workers=1,
                           progress=lambda done, total, told=told: told.append(done))  # fmt: skip
        assert told == [0, 1]
        assert found == tournament({"aosa": partial(aosa, **change)}, players, [50], 1, workers=1)
    tournament({"aosa": aosa}, {"coins": Coins(rate=0.4)}, [50], 1, path=path, workers=1)
    assert path.read_bytes().count(b"\n") == 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"precious", "must be a file of a tournament, or not exist yet"),
        (b"forecaster,adversary\n", "must be a file of a tournament"),
        (b'["truecast"]\n', "must be a file of a tournament"),
        (b"\xff\xfe\n", "must be a file of a tournament"),
        (
            b'{"truecast": "tournament", "format": 2}\n',
            "must be of format 1, which this truecast reads; its is 2",
        ),
    ],
)
def test_other_files_are_refused_and_left_alone(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "games"
    path.write_bytes(content)
    with pytest.raises(tc.InputError, match=message):
        tiny(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "change",
    [{"rtol": 0.02}, {"time_limit": 5.0}, {"rtol": 0.0}],
    ids=["rtol", "time_limit", "exact"],
)
def test_files_of_other_settings_are_refused(tmp_path: Path, change: dict[str, float]) -> None:
    path = tmp_path / "games"
    tiny(path)
    before = path.read_bytes()
    [(name, value)] = change.items()
    with pytest.raises(
        tc.InputError, match=f"{name} {value}.*it was made with version {tc.__version__}, rtol 0.01"
    ):
        tiny(path, **change)
    assert path.read_bytes() == before


def test_files_of_another_version_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "games"
    tiny(path)
    monkeypatch.setattr(tc, "__version__", "9.9")
    with pytest.raises(tc.InputError, match=r"with version 9\.9"):
        tiny(path)


@pytest.mark.parametrize(
    "line", [b"", b"null", b"{}", b'{"options": ["a", "b"], "rounds": 3}', b"{", b"\xff"]
)
def test_a_damaged_line_is_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "games"
    tiny(path)
    lines = path.read_bytes().split(b"\n")
    lines[2] = line
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(tc.InputError, match="line 3 has none"):
        tiny(path)
    assert path.read_bytes() == b"\n".join(lines)


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere" / "games", Path(os.devnull)):
        with pytest.raises(tc.InputError, match="must be a file to read and write"):
            tiny(path)
    for path in (3, b"games"):
        with pytest.raises(tc.InputError, match="path must be a path"):
            tiny(path)


# what goes wrong


@pytest.mark.slow("starts processes")
@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_players_come_through_and_finished_games_are_kept(
    tmp_path: Path, workers: int
) -> None:
    path = tmp_path / "games"
    players = {"own": own}
    opponents = {"constant": Constant(), "given": tc.arena.Given([1, 0, 1])}
    with pytest.raises(tc.InputError, match="at most the 3 outcomes given") as caught:
        tournament(players, opponents, [3, 8], path=path, workers=workers)
    assert any("own against given, 8 rounds" in note for note in caught.value.__notes__)
    assert any("In another process" in note for note in caught.value.__notes__) == (workers > 1)
    if workers == 1:
        kept = [json.loads(line) for line in path.read_bytes().splitlines()[1:]]
        # long games come first
        assert [(row["adversary"], row["rounds"]) for row in kept] == [("constant", 8)]
    assert len(tournament(players, opponents, [3], path=path, workers=workers)) == 2


def test_errors_while_building_come_at_once() -> None:
    with pytest.raises(ZeroDivisionError):
        tournament({"broken": broken}, SOME, [3, 8], workers=1)
    with pytest.raises(
        tc.InputError, match="must build what can predict and observe, and 'int' does not, got 8"
    ):
        tournament({"int": lambda rounds, seed: rounds}, SOME, [8], workers=1)


@pytest.mark.slow("starts processes")
def test_a_process_that_dies_is_an_error_and_no_wait_for_ever() -> None:
    with pytest.raises(RuntimeError, match="a process has died.*__main__.*workers=1"):
        tournament({"deadly": deadly, "own": own}, SOME, [3], workers=2)


@pytest.mark.slow("starts processes")
def test_processes_never_hear_ctrl_c() -> None:
    """Neither while they start nor later, and later also if a thread has started them."""
    work = partial(deaf, DeafFromTheStart())
    assert list(in_processes(work, [0], 1)) == [(True, True)]
    with ThreadPoolExecutor(1) as thread:
        ((_, later),) = thread.submit(lambda: list(in_processes(work, [0], 1))).result()
    assert later


def test_what_cannot_travel_is_refused_unless_it_need_not() -> None:
    local = {"own": lambda rounds, seed: Own()}
    with pytest.raises(
        tc.InputError, match="forecasters must be defined at the top of a file.*'own' is not"
    ):
        tournament(local, SOME, [3], workers=2)
    assert len(tournament(local, {"constant": Constant()}, [3], workers=1)) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"forecasters": [aosa]}, "forecasters must map names to functions"),
        (
            {"forecasters": {"aosa": tc.AlmostOneStepAhead(grid=3)}},
            "functions of rounds and seed, and 'aosa' is none",
        ),
        ({"forecasters": {3: aosa}}, "forecasters must map names"),
        ({"adversaries": {"coins": Coins}}, "adversaries must map names to .* and 'coins' is none"),
        ({"horizons": []}, "horizons must be one number or more"),
        ({"horizons": [10, 10]}, "horizons must be one number or more, none of them twice"),
        ({"horizons": [0]}, "horizons must be a whole number from 1"),
        ({"horizons": [2.0]}, "horizons must be a whole number from 1"),
        ({"horizons": 10}, "horizons must be whole numbers, one after the other"),
        ({"horizons": "10"}, "horizons must be whole numbers, one after the other"),
        ({"seeds": 0}, "seeds must be a whole number from 1"),
        ({"seeds": True}, "seeds must be a whole number from 1"),
        ({"seeds": [-1]}, "seeds must be a whole number from 0"),
        ({"seeds": [1, 1]}, "none of them twice"),
        ({"workers": 0}, "workers must be a whole number from 1"),
        ({"rtol": -0.1}, "rtol must be a number above 0"),
        ({"rtol": 1.0}, "rtol must be a number above 0 and below 1"),
        ({"time_limit": 0}, "time_limit must be a number above 0"),
        ({"progress": True}, "progress must be a function"),
    ],
)
def test_arguments_are_checked_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    asked: dict[str, Any] = {
        "forecasters": FEW,
        "adversaries": SOME,
        "horizons": [3],
        "workers": 1,
    } | change
    with pytest.raises(tc.InputError, match=message):
        tournament(**asked, path=tmp_path / "games")
    assert not (tmp_path / "games").exists()


def test_ctrl_c_during_a_distance_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from truecast.arena import yardstick

    measured: list[int] = []

    def interrupted(*data: Any, **options: Any) -> Any:
        found = tc.calibration_distance(*data, **options)
        measured.append(1)
        return found if len(measured) < 3 else dataclasses.replace(found, ended="interrupted")

    monkeypatch.setattr(yardstick, "calibration_distance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tiny(tmp_path / "games")
    assert (tmp_path / "games").read_bytes().count(b"\n") == 1 + 2


SCRIPT = """
import signal, sys
from truecast.arena.roster import ADVERSARIES
from truecast.arena.tournament import tournament
from players import aosa

if __name__ == "__main__":
    # the tests may run where Ctrl-C is ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    opponents = {name: ADVERSARIES[name] for name in ("coins", "early-stop", "drift", "threshold")}
    tournament({"aosa": aosa}, opponents, [1500], 60, path=sys.argv[1], workers=int(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def opponents() -> dict[str, Any]:
    return {name: ADVERSARIES[name] for name in ("coins", "early-stop", "drift", "threshold")}


@pytest.fixture(scope="module")
def uninterrupted(opponents: dict[str, Any]) -> Results:
    """What SCRIPT plays."""
    return tournament({"aosa": aosa}, opponents, [1500], 60, workers=1)


def children(pid: int) -> list[int]:
    """The processes that this one has started, and theirs."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found += [int(stat.parent.name), *children(int(stat.parent.name))]
    return found


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow("starts processes and stops them")
@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes as Linux keeps them"
)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_stopped_in_the_middle_it_goes_on(
    tmp_path: Path, opponents: dict[str, Any], uninterrupted: Results, workers: int, how: str
) -> None:
    path, script = tmp_path / "games", tmp_path / "script.py"
    script.write_text(SCRIPT)
    places = [str(Path(__file__).parents[1]), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    process = subprocess.Popen(
        [sys.executable, script, path, str(workers)],
        env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while lines_in(path) < 3 and process.poll() is None:
        time.sleep(0.01)
    started = children(process.pid)
    if how == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    else:
        process.kill()
    _, errors = process.communicate(timeout=60)
    kept = lines_in(path)
    assert 3 <= kept < 182, errors
    if how == "SIGINT":
        assert process.returncode == -signal.SIGINT
        assert errors.count("Traceback") == 1  # of the interrupted call, and none of its processes
        assert errors.rstrip().endswith("KeyboardInterrupt")
    else:
        assert errors == ""  # its processes go without a word when nobody listens any more
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    told: list[int] = []
    resumed = tournament({"aosa": aosa}, opponents, [1500], 60, path=path, workers=1,
                         progress=lambda done, total: told.append(done))  # fmt: skip
    assert told == list(range(lines_in(path) - len(told), 182))
    assert told[0] >= kept - 1
    for one, other in zip(resumed.rows, uninterrupted.rows, strict=True):
        assert dataclasses.replace(one, lower=0, upper=0) == dataclasses.replace(
            other, lower=0, upper=0
        )
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        assert one.upper - one.lower <= 0.01 * one.upper + 1e-9


# what can be done with the results


@pytest.fixture(scope="module")
def results() -> Results:
    return tournament(FEW, SOME, [25, 100, 400], 2, workers=1)


def test_columns_make_data_frames(results: Results) -> None:
    import pandas as pd
    import polars as pl

    columns = results.columns()
    assert tuple(columns) == COLUMNS
    for frame in (pl.DataFrame(columns), pd.DataFrame(columns)):
        assert frame.shape == (len(results), len(COLUMNS))
        assert frame["upper"].to_list() == [row.upper for row in results.rows]
    assert (
        pl.DataFrame(columns)["seed"].null_count()
        == sum(row.seed is None for row in results.rows)
        > 0
    )


def test_csv_has_everything(results: Results, tmp_path: Path) -> None:
    results.to_csv(tmp_path / "games.csv")
    with (tmp_path / "games.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(results)
    for written, row in zip(rows, results.rows, strict=True):
        for name in COLUMNS:
            value = getattr(row, name)
            assert written[name] == ("" if value is None else str(value))


def test_summary(results: Results) -> None:
    for one in results.summary():
        rows = [
            row
            for row in results.rows
            if (row.forecaster, row.rounds) == (one.forecaster, one.rounds)
        ]
        assert one.games == len(rows)
        assert one.worst == max(row.upper for row in rows)
        assert one.at_least == max(row.lower for row in rows)
        assert one.worst in [row.upper for row in rows if row.adversary == one.against]
        games = [
            [row for row in rows if row.adversary == adversary]
            for adversary in {row.adversary for row in rows}
        ]
        assert one.mean == pytest.approx(
            np.mean([np.mean([row.upper for row in played]) for played in games])
        )
        assert one.brier == pytest.approx(
            np.mean([np.mean([row.brier for row in played]) for played in games])
        )
        certificates = [row.certificate for row in rows if row.certificate is not None]
        assert one.certificate == (max(certificates) if certificates else None)
    assert [(one.forecaster, one.rounds) for one in results.summary()] == [
        (name, rounds) for name in FEW for rounds in (25, 100, 400)
    ]


def test_printed(results: Results) -> None:
    lines = str(results).splitlines()
    assert repr(results) == str(results)
    assert max(map(len, lines)) <= 120
    names = next(line for line in lines if line.startswith("forecaster")).split()
    assert names[:5] == ["forecaster", "T=25", "T=100", "T=400", "exponent"]
    rows = {
        line.split()[0]: line.split() for line in lines if line.split() and line.split()[0] in FEW
    }
    worst = {(one.forecaster, one.rounds): one.worst for one in results.summary()}
    for name, cells in rows.items():
        assert [float(cell) for cell in cells[1:4]] == pytest.approx(
            [worst[name, t] for t in (25, 100, 400)], rel=1e-3
        )
        exponent = np.log(worst[name, 400] / worst[name, 100]) / np.log(4)
        assert float(cells[4]) == pytest.approx(exponent, abs=0.006)
    assert rows["aosa"][-1] == "distance"
    assert rows["dice"][-2:] == ["by", "value"]
    assert str(Results((), 0.01)) == "no games"


def test_markdown_has_the_same_cells(results: Results) -> None:
    lines = [line for line in results.markdown().splitlines() if line.startswith("|")]
    assert [line.count("|") for line in lines] == [lines[0].count("|")] * (2 + len(FEW))
    table = results.table()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == list(table.rows[0])
    assert set(lines[1]) == set("|-: ")


def test_distances_that_are_not_close_are_marked(results: Results) -> None:
    wide = [dataclasses.replace(row, lower=row.upper / 2) for row in results.rows]
    cells = [cell for row in Results(tuple(wide), 0.01).table().rows for cell in row[1:4]]
    assert all(cell.startswith("<=") for cell in cells)
    assert "<=" not in "".join(cell for row in results.table().rows for cell in row)
    rounded = tuple(dataclasses.replace(row, lower=row.upper - 1e-12) for row in results.rows)
    assert "<=" not in str(Results(rounded, 0.0)).split("\n\n")[1]
    assert all(
        cell.startswith("<=") or not cell
        for row in Results(tuple(wide), 0.01).against(25).rows
        for cell in row[1:]
    )


def test_means_against_each_adversary(results: Results) -> None:
    table = results.against(100)
    assert table.names == ("forecaster", *SOME)
    for name, *cells in table.rows:
        for adversary, cell in zip(SOME, cells, strict=True):
            rows = [
                row
                for row in results.rows
                if (row.forecaster, row.adversary, row.rounds) == (name, adversary, 100)
            ]
            if rows:
                assert float(cell) == pytest.approx(np.mean([row.upper for row in rows]), rel=1e-3)
            else:
                assert cell == ""
    with pytest.raises(tc.InputError, match="rounds must be one of 25, 100, 400, got 99"):
        results.against(99)


def test_tables_too_wide_come_in_parts() -> None:
    from truecast.arena.tables import Table

    assert Table(("a", "b", "c"), (("1", "2", "3"),)).text(1) == "a  b\n1  2\n\na  c\n1  3"
    table = Table(
        ("name", *(f"some-adversary-{at}" for at in range(30))), (("a", *map(str, range(30))),)
    )
    lines = table.text(60).splitlines()
    assert max(map(len, lines)) <= 60
    parts = table.text(60).split("\n\n")
    assert all(part.splitlines()[-1].startswith("a ") for part in parts)
    assert [cell for part in parts for cell in part.splitlines()[-1].split()[1:]] == list(
        map(str, range(30))
    )


# who plays by default


@pytest.mark.slow("everybody plays everybody")
def test_everybody_of_the_roster_can_play_and_travel() -> None:
    results = tournament(horizons=[8], seeds=1, workers=2)
    assert results.forecasters == tuple(FORECASTERS)
    assert results.adversaries == tuple(ADVERSARIES)
    for row in results.rows:
        measure = {"distance": row.lower, "by value": row.by_value, "smooth": row.smooth}
        if row.bounds in measure and row.seed is None:  # proved for every game
            assert measure[row.bounds] <= row.bound * (1 + 1e-12)


def test_the_roster_cannot_be_changed_by_accident() -> None:
    with pytest.raises(TypeError):
        FORECASTERS["mine"] = own  # type: ignore[index]


# pictures


def test_curves_have_the_worst_of_the_seeds_and_the_bounds_on_the_distance(
    results: Results,
) -> None:
    curves = results.curves()
    assert [panel.forecaster for panel in curves.panels] == list(FEW)
    worst = {(one.forecaster, one.rounds): one for one in results.summary()}
    for panel in curves.panels:
        assert panel.worst.rounds == (25, 100, 400)
        assert panel.worst.values == tuple(
            worst[panel.forecaster, rounds].worst for rounds in (25, 100, 400)
        )
        assert panel.against == worst[panel.forecaster, 400].against
        for adversary, curve in panel.adversaries.items():
            for rounds, value in zip(curve.rounds, curve.values, strict=True):
                key = panel.forecaster, adversary, rounds
                rows = [
                    row
                    for row in results.rows
                    if (row.forecaster, row.adversary, row.rounds) == key
                ]
                assert value == max(row.upper for row in rows)
    aosa_panel, dice_panel, own_panel = curves.panels
    assert aosa_panel.bound.values == tuple(float(aosa(t, 0).a_priori(t)) for t in (25, 100, 400))
    assert dice_panel.bound is None  # it is about another measure
    assert own_panel.bound is None


@pytest.mark.slow("draws pictures")
def test_pictures_are_drawn_where_they_are_told_and_nowhere_else(
    results: Results, tmp_path: Path
) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    before = dict(mpl.rcParams)
    figure = results.draw()
    assert len(figure.axes) == 1 + len(FEW)  # with the overview
    figure.savefig(tmp_path / "arena.svg")
    assert (tmp_path / "arena.svg").stat().st_size > 10_000
    theirs = Figure((16, 5), layout="constrained")
    left, _ = theirs.subfigures(1, 2)
    assert results.draw(left) is left
    axes = Figure().subplots()
    results.curves().draw_overview(axes)
    drawn = {line.get_label(): line for line in axes.lines}
    assert set(drawn) == {*FEW, "2 sqrt(T) + 1"}
    for panel in results.curves().panels:
        assert tuple(drawn[panel.forecaster].get_ydata()) == panel.worst.values
    assert tuple(drawn["2 sqrt(T) + 1"].get_ydata()) == (11.0, 21.0, 41.0)
    assert len({(line.get_color(), line.get_marker()) for line in drawn.values()}) == len(drawn)
    assert dict(mpl.rcParams) == before
    Results((), 0.01).draw()


def test_bounds_are_seen_also_if_all_games_are_of_one_length() -> None:
    from matplotlib.figure import Figure

    curves = tournament({"aosa": aosa}, {"constant": Constant()}, [25], workers=1).curves()
    axes = Figure().subplots()
    curves.draw_panel(axes, curves.panels[0])
    drawn = {line.get_label(): line for line in axes.lines}
    for name, height in (
        ("proved bound", float(aosa(25, 0).a_priori(25))),
        ("2 sqrt(T) + 1", 11.0),
    ):
        assert tuple(drawn[name].get_ydata()) == (height,)
        assert drawn[name].get_marker() == "_"  # a line has no length


def test_each_player_has_a_look_of_its_own() -> None:
    from matplotlib.figure import Figure

    many = tournament(
        {f"own {at}": own for at in range(16)}, {"constant": Constant()}, [3], workers=1
    )
    axes = Figure().subplots()
    many.curves().draw_overview(axes)
    looks = [(line.get_color(), line.get_marker()) for line in axes.lines]
    assert len(set(looks)) == 17


def test_the_course_of_a_game() -> None:
    game = play(tc.AlmostOneStepAhead(horizon=400), Periodic((0, 0, 1)), 400)
    course = game.course(points=8)
    assert course.rounds.tolist() == list(range(50, 401, 50))
    for rounds, lower, upper in zip(course.rounds, course.lower, course.upper, strict=True):
        found = tc.calibration_distance(game.y[:rounds], game.p[:rounds], total=True)
        assert lower - 1e-9 <= found.upper
        assert found.lower <= upper + 1e-9
        assert upper - lower <= 0.01 * upper + 1e-9
        assert abs(course.signed[rounds - 1]) <= upper + 1e-9
        assert course.signed[rounds - 1] == pytest.approx((game.p[:rounds] - game.y[:rounds]).sum())
    assert course.window == 20
    for t in (0, 5, 200, 399):
        start = min(max(t - 10, 0), 380)
        assert course.rate[t] == pytest.approx(game.y[start : start + 20].mean())
    assert course.certificate == game.certificate.bound


@pytest.mark.slow("draws pictures")
def test_games_are_drawn(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    for rounds in (0, 1, 2, 50):
        game = play(Own(), Coins(), rounds)
        assert len(game.draw().axes) == 2
        figure = Figure()
        assert game.draw(figure, points=3) is figure
        figure.savefig(tmp_path / "game.png")
    above, below = Figure().subplots(2)
    course = play(tc.BentGrid(horizon=30), Coins(), 30).course()
    course.draw_forecasts(above)
    course.draw_distance(below)
    assert {"forecast", "share of ones in the 5 rounds around"} == {
        line.get_label() for line in above.lines
    }
    assert {"certificate", "distance to calibration"} <= {line.get_label() for line in below.lines}


def test_without_matplotlib_the_error_says_what_to_install(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'truecast\[plot\]'"):
        results.draw()
    with pytest.raises(ImportError, match=r"pip install 'truecast\[plot\]'"):
        play(Own(), Coins(), 5).draw()
