"""What the package promises as a whole."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import truecast as tc


def test_public_names_exist_and_are_documented() -> None:
    for name in tc.__all__:
        assert getattr(tc, name).__doc__, name


def test_versions_agree() -> None:
    assert importlib.metadata.version("truecast") == tc.__version__


def test_names_are_imported_when_asked_for() -> None:
    code = (
        "import sys, truecast; before = {*sys.modules}; truecast.Recalibrator; print(*before); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = (line.split() for line in done.stdout.splitlines())
    assert [name for name in before if name.startswith(("numpy", "truecast"))] == ["truecast"]
    assert "numpy" in after
    frameworks = ("matplotlib", "pandas", "polars", "pyspark", "river", "sklearn")
    optional = (*frameworks, "click", "rich", "hypothesis", "pytest")
    for name in (*optional, "truecast.cli", "truecast.testing", "truecast.reference"):
        assert name not in after


def test_a_first_script_imports_what_it_uses() -> None:
    code = "import sys; from truecast import Recalibrator, measure; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {name for name in done.stdout.split() if name.startswith("truecast.")}
    for room in ("measures", "forecasters", "recalibrate"):
        modules = {name for name in imported if name.startswith(f"truecast.{room}.")}
        assert modules, room
        assert not any(".class_" in name for name in modules)
    assert not imported & {
        "truecast.certificate",  # before there is a round
        "truecast.measures.report",
        "truecast.measures.finder",
        "truecast.forecasters.streams",
        "truecast.recalibrate.table",
    }
    standard = ("dataclasses", "decimal", "fractions", "json", "threading", "zlib")
    assert not {*standard} & {*done.stdout.split()}


@pytest.mark.parametrize(
    "first", ["truecast.measures.uncertainty", "truecast.measures.finder", "truecast.measures"]
)
def test_a_function_comes_before_the_module_of_its_name(first: str) -> None:
    code = f"""if True:
        import {first}
        from truecast.measures import smooth_ece, uncertainty
        from truecast import measures
        assert callable(uncertainty) and callable(smooth_ece) and callable(measures.uncertainty)
        import truecast.measures.smooth_ece
        assert callable(measures.smooth_ece) and measures.finder.stretches
        """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_room_lists_its_names_before_they_are_imported() -> None:
    code = """if True:
        from truecast import measures, report
        assert {*measures.__all__} <= {*dir(measures)} and "Report" not in vars(measures)
        assert report.RunningCourse.__name__ in dir(report)
        for name in measures.__all__:
            assert getattr(measures, name).__name__ == name
        measures.nothing
        """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = "AttributeError: module 'truecast.measures' has no attribute 'nothing'"
    assert done.stderr.splitlines()[-1] == said


def test_rooms_and_names_can_be_listed_and_nothing_else_is_there() -> None:
    code = (
        "import truecast; assert {*truecast.__all__} <= {*dir(truecast)}; "
        "truecast.measures.report; truecast.nothing"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        done.stderr.splitlines()[-1]
        == "AttributeError: module 'truecast' has no attribute 'nothing'"
    )


@pytest.mark.slow("runs mypy")
def test_type_checkers_know_every_name_and_no_other() -> None:
    names = [
        *tc.__all__,
        "measures.report",
        "errors",
        "hints.Mix",
        "arena.play",
        "plot.reliability_diagram",
    ]
    code = [
        "import truecast as tc",
        *(f"reveal_type(tc.{name})" for name in names),
        "tc.nonexistent",
        "tc.Any",
    ]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--warn-unreachable",
        "--config-file=",
        "-c",
        "\n".join(code),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines()
    revealed = [line for line in said if "note: Revealed type is" in line]
    assert len(revealed) == len(names), done.stdout
    assert not [line for line in revealed if line.endswith('is "Any"')]
    assert [line.partition(": error: ")[2] for line in said if ": error: " in line] == [
        'Module has no attribute "nonexistent"  [attr-defined]',
        'Module has no attribute "Any"  [attr-defined]',
    ]


def test_only_what_is_public_is_listed() -> None:
    listed = {name for name in dir(tc) if not name.startswith("__")}
    assert listed == {*tc.__all__, *tc._ROOMS}


def test_reference_needs_neither_the_core_nor_numpy() -> None:
    """Plain Python, so that it can be read, and agree with the core for no other reason than being
    right."""
    root = Path(str(files("truecast.reference").joinpath("split_ladder.py"))).parent
    for path in root.glob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = [
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        ]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        assert not [name for name in names if name.startswith("numpy")]
        assert not [
            name
            for name in names
            if name.startswith("truecast.") and not name.startswith("truecast.reference")
        ]


def test_typed() -> None:
    assert files("truecast").joinpath("py.typed").is_file()


@pytest.mark.parametrize("core", ["truecast._core", "truecast.arena._core"])
def test_stub_has_the_names_and_parameters_of_the_kernels(core: str) -> None:
    kernels = importlib.import_module(f"{core}.kernels")
    tree = ast.parse(Path(str(files(core).joinpath("kernels.pyi"))).read_text())

    def check(owner: object, body: list[ast.stmt]) -> None:
        functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
        classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
        constants = {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
        actual = {name for name in vars(owner) if not name.startswith("__")}
        assert actual == {
            name for name in {*functions, *classes, *constants} if not name.startswith("__")
        }
        for name, node in functions.items():
            if not node.decorator_list:
                declared = [argument.arg for argument in node.args.args]
                said = (getattr(owner, name).__doc__ or "").splitlines()[0]
                assert said.startswith(name + "(")
                for argument in declared:
                    assert argument in said
        for name, node in classes.items():
            check(getattr(owner, name), node.body)

    check(kernels, tree.body)
