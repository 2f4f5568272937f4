"""Outputs are checked before the work is done."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from truecast.errors import FileError, shown, writing

__all__ = ["check_outputs"]

# endings of the files that are there while one is written
_BESIDE = {"FILE": ("",), "--state": ("", ".part", ".lock", ".part.part")}


def check_outputs(outputs: Mapping[str, Path | None], file: str = "-") -> None:
    """Refuse outputs, by their options, that cannot be written, before the work is done.

    Nor must one be written over another, or over FILE.
    """
    for option, path in outputs.items():
        _refuse_unwritable(option, path)
    _refuse_same({"FILE": None if file == "-" else Path(file), **outputs})


def _refuse_same(files: Mapping[str, Path | None]) -> None:
    """Refuse a file that would be written over another, itself or what is made beside it."""
    seen: dict[Path, str] = {}
    for option, file in files.items():
        target = None if file is None else Path(os.path.realpath(file))
        for ending in _BESIDE.get(option, ("", ".part", ".lock")):
            place = None if target is None else target.with_name(target.name + ending)
            other = option if place is None else seen.setdefault(place, option)
            if other != option:
                what = f", with {place.name!r} while it is written" if ending and place else ""
                raise click.UsageError(
                    f"{other} and {option} must not be the same file; got {str(file)!r}{what}"
                )


def _refuse_unwritable(option: str, file: Path | None) -> None:
    if file is None:
        return
    with writing(file, option):
        folder = file.absolute().parent
        if not folder.is_dir():
            raise FileError(
                shown(str(file)),
                f"cannot be written ({option}): there is no folder {str(file.parent)!r}",
            )
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(file.stat().st_mode):  # links that go in circles are an error here
                reason = (
                    "exists and is not a file that can be replaced: choose another output "
                    f"({option})"
                )
                raise FileError(shown(str(file)), reason)
        if not os.access(file if file.exists() and not file.is_file() else folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
