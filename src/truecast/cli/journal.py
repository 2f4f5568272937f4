"""`truecast journal`: is the journal of a service whole, what is in it, does it replay."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecast.cli.options import Once, file_type
from truecast.cli.refusals import errors
from truecast.cli.terminal import echo, say
from truecast.errors import FileError

if TYPE_CHECKING:
    from truecast.serve.store import Store

__all__ = ["journal"]

_EVERY = 1.0  # seconds between two lines of progress

data_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    default="truecast-data",
    show_default=True,
    help="The folder of the service.",
)
database_option = click.option(
    "--database", metavar="URL", help="Instead: sqlite:///path or postgresql://..."
)
stream_option = click.option(
    "--stream", "streams", metavar="NAME", multiple=True, help="Only this stream; may be repeated."
)


@contextmanager
def _opened(data: Path, database: str | None) -> Iterator[Store]:
    from truecast.serve.service import store_of

    name = database or f"sqlite:///{data / 'truecast.db'}"
    store = store_of(name)
    try:
        store.read_only()
        yield store
    except store.errors as error:
        raise FileError(name, f"cannot be read: {error}") from error
    finally:
        store.close()


def _progress(last: int) -> Callable[[int], None] | None:
    """Say now and then how far it is, to people."""
    if not sys.stderr.isatty():
        return None
    said = time.monotonic()

    def tell(seq: int) -> None:
        nonlocal said
        if time.monotonic() - said >= _EVERY:
            said = time.monotonic()
            say(f"entry {seq:,} of {last:,}")

    return tell


@click.group()
def journal() -> None:
    """Check, export or replay the journal of `truecast serve`.

    All three only read, and may run beside the service. Every forecast and outcome that was
    acknowledged is an entry; each entry has a checksum that covers the one before.

    \b
    Examples:
      truecast journal verify
      truecast journal export rounds.parquet
      truecast journal replay --database postgresql:///forecasts
    """  # noqa: D301


@journal.command(cls=Once)
@data_option
@database_option
def verify(data: Path, database: str | None) -> None:
    """Check every entry, snapshot and id; name what is damaged.

    \b
    Examples:
      truecast journal verify
      truecast journal verify --data /var/lib/truecast
    """  # noqa: D301
    with errors(), _opened(data, database) as store:
        from truecast.serve.journal import verify as verified

        found = verified(store, _progress(store.head().seq))
        for problem in found.problems:
            echo(problem)
        if found.problems:
            raise click.ClickException("the journal is damaged")
        erased = f", {found.erased:,} of them erased with their streams" if found.erased else ""
        echo(
            f"the journal is whole: entries {found.first:,} to {found.last:,}{erased}; "
            f"{found.rows:,} forecasts and outcomes"
        )


@journal.command(cls=Once, short_help="Write a row for each forecast and outcome to a file.")
@click.argument("output", type=file_type)
@data_option
@database_option
@stream_option
def export(output: Path, data: Path, database: str | None, streams: tuple[str, ...]) -> None:
    """Write the journal to OUTPUT, .parquet or .csv: a row for each forecast and outcome.

    Rows of one forecast have the same stream and ticket.

    \b
    Examples:
      truecast journal export rounds.parquet
      truecast journal export churn.csv --stream churn
    """  # noqa: D301
    with errors(), _opened(data, database) as store:
        from truecast.serve.export import export as exported

        names = {row.number: row.name for row in store.streams()}
        chosen = _chosen(names, streams)
        entries = store.entries(store.base().seq, stream=chosen)
        if streams and chosen is None:
            wanted = {number for number, name in names.items() if name in streams}
            entries = (entry for entry in entries if entry.stream in wanted)
        rows = exported(entries, names, output)
        echo(f"{rows:,} rows written to {output}")


def _chosen(names: dict[int, str], streams: tuple[str, ...]) -> int | None:
    """Return the number of the only stream that is wanted, None if there are several."""
    numbers = {name: number for number, name in names.items()}
    for name in streams:
        if name not in numbers:
            raise click.BadParameter(f"there is no stream {name!r}", param_hint="--stream")
    return numbers[streams[0]] if len(streams) == 1 else None


@journal.command(cls=Once, short_help="Build streams anew; compare with what was answered.")
@data_option
@database_option
@stream_option
def replay(data: Path, database: str | None, streams: tuple[str, ...]) -> None:
    """Build streams anew from their entries; compare with the answers given and the snapshots.

    \b
    Examples:
      truecast journal replay
      truecast journal replay --stream churn
    """  # noqa: D301
    with errors(), _opened(data, database) as store:
        from truecast.serve.journal import replay as replayed

        _chosen({row.number: row.name for row in store.streams()}, streams)
        failed: list[Any] = []
        for found in replayed(store, list(streams) or None, _progress(store.head().seq)):
            compared = "and its snapshot" if found.compared else "(no snapshot to compare)"
            well = f"{found.rounds:,} rounds replayed: the same answers {compared}"
            echo(f"{found.name}: {found.problem or well}")
            if found.problem is not None:
                failed.append(found)
        if failed:
            raise click.ClickException("the replay differs")
