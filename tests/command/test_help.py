"""What the help says, word for word; `python tests/command/test_help.py` writes it anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from truecast.cli import main

SAID = Path(__file__).parent / "help"
COMMANDS = ("", *main.commands)


def text(command: str) -> str:
    words = [command, "--help"] if command else ["--help"]
    return CliRunner().invoke(main, words, prog_name="truecast").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_as_it_was_read_last(command: str) -> None:
    assert text(command) == (SAID / f"{command or 'truecast'}.txt").read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_eighty_columns(command: str) -> None:
    assert max(map(len, text(command).splitlines())) <= 80


@pytest.mark.parametrize("command", main.commands)
def test_help_teaches_by_examples_and_explains_every_option(command: str) -> None:
    assert "Examples:" in text(command)
    assert f"  truecast {command} " in text(command)
    for parameter in main.commands[command].params:
        assert parameter.name == "file" or getattr(parameter, "help", None), parameter.name


def test_help_needs_neither_numpy_nor_an_engine() -> None:
    code = (
        "import sys\nfrom truecast.cli import main\ntry: main(['--help'])\nexcept "
        "SystemExit: pass\n"
        "sys.exit(bool({'numpy', 'polars', 'rich', 'matplotlib', 'json.decoder'} & "
        "{*sys.modules} - {'json.decoder'}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys\nfrom truecast.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "assert not [name for name in main.commands if f'truecast.cli.{name}' in sys.modules]\n"
        "for name in main.commands: assert main.commands[name].name == name\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_python_m_truecast_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "truecast", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("truecast, version ")


@pytest.mark.parametrize("words", [["--help"], ["measure", "examples/scores.csv", "--resamples=0"]])
def test_a_reader_that_has_gone_ends_a_command_quietly(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "truecast", *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.returncode == 141
    assert not done.stderr.removeprefix("examples/scores.csv: outcome 'outcome', score 'score'\n")


if __name__ == "__main__":
    SAID.mkdir(exist_ok=True)
    for name in COMMANDS:
        (SAID / f"{name or 'truecast'}.txt").write_text(text(name))
