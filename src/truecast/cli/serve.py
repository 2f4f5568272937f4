"""`truecast serve`: the service, and its tokens."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecast._atomic import make_folder
from truecast.cli.options import OnceGroup, file_type
from truecast.cli.refusals import errors
from truecast.cli.terminal import echo, say

if TYPE_CHECKING:
    from truecast.serve.http.run import Keep, Settings

DATA = "truecast-data"
DATABASE = "truecast.db"


@click.group(cls=OnceGroup, invoke_without_command=True)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder of the journal, made if there is none.  [default: {DATA}]",
)
@click.option("--database", metavar="URL", help="Instead: postgresql://user@host/name.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8799,
    show_default=True,
    metavar="N",
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--token-file", type=file_type, help="Who may do what; see `serve token`.")
@click.option("--standby", is_flag=True, help="Wait while another process writes; then take over.")
@click.option(
    "--open-streams", type=click.IntRange(1), default=2_000, show_default=True, metavar="N",
    help="Streams to keep in memory.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(0), default=0.0, metavar="N",
    help="Most requests a second of one token, or address.  [default: no limit]",
)  # fmt: skip
@click.option(
    "--max-rows", type=click.IntRange(1, 10_000), default=10_000, show_default=True, metavar="N",
    help="Most rows of one request.",
)  # fmt: skip
@click.option(
    "--max-body", type=click.IntRange(1_000), default=8 * 2**20, show_default=True,
    metavar="BYTES", help="Longest request.",
)  # fmt: skip
@click.option(
    "--keep-days", type=click.FloatRange(0, min_open=True), metavar="N",
    help="Remove entries from the journal after N days.",
)  # fmt: skip
@click.option(
    "--keep-bytes",
    type=click.IntRange(1),
    metavar="N",
    help="Remove the oldest entries when the journal is larger.",
)
@click.option(
    "--export-to",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to which entries are exported first, as Parquet.",
)
@click.option("--webhook", metavar="URL", help="Send alarms there, signed.")
@click.option("--webhook-secret", type=file_type, help="File with the secret to sign with.")
@click.option("--webhook-memory", type=file_type, help="File of alarms that were delivered.")
@click.option("--public-url", metavar="URL", help="Address of the dashboard, for links.")
@click.option("--tls-cert", type=file_type, help="Certificate, for HTTPS.")
@click.option("--tls-key", type=file_type, help="Its key.")
@click.option(
    "--log", "log_kind", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to log, on standard error.",
)  # fmt: skip
@click.option("--log-requests", is_flag=True, help="Log every request, not only those refused.")
@click.pass_context
def serve(context: click.Context, /, **options: Any) -> None:
    """Answer scores with calibrated probabilities over HTTP, and learn outcomes when they come.

    Every answer is on disk before it is given: kill the process at any time, and start it again.
    The dashboard is at / and the interface at /docs. Without --token-file, only this machine is
    answered.

    SIGTERM or Ctrl-C finishes what is under way, saves, and ends.

    \b
    Examples:
      truecast serve
      truecast serve token alice --scope forecast --token-file tokens
      truecast serve --host 0.0.0.0 --token-file tokens --log json
      truecast serve --database postgresql://truecast@db/truecast --standby
    """  # noqa: D301
    if context.invoked_subcommand is not None:
        return
    with errors({"token_file": "--token-file", "tokens": "--token-file"}):
        _serve(options)


@serve.command(short_help="Make a token.")
@click.argument("name")
@click.option(
    "--scope", "scopes", multiple=True, required=True,
    type=click.Choice(["read", "forecast", "outcome", "admin"]),
    help="What it allows; may be repeated.",
)  # fmt: skip
@click.option("--token-file", type=file_type, required=True, help="Where its hash goes.")
def token(name: str, scopes: tuple[str, ...], token_file: Path) -> None:
    """Print a new token, and append its hash to the file. Nobody can print it again.

    To revoke a token, remove its line; a running service notices within seconds.

    \b
    Scopes:
      read      dashboard, figures, metrics, export
      forecast  send scores
      outcome   send outcomes, give up on them
      admin     create and delete streams
    """  # noqa: D301
    with errors({"scopes": "--scope"}):
        from truecast.serve.http.auth import add_token

        echo(add_token(token_file, name, scopes))
        say(f"token {name!r} for {', '.join(scopes)} added to {token_file}; it is shown only once")


def _serve(options: dict[str, Any]) -> None:
    from truecast.serve.http.logs import set_up
    from truecast.serve.http.run import run

    settings = _settings(options)
    set_up(options["log_kind"], "info")
    ended = run(settings, lambda url: say(f"truecast serves {url} (dashboard), {url}/docs"))
    if ended == signal.SIGINT:
        raise click.exceptions.Exit(130)


def _settings(options: dict[str, Any]) -> Settings:
    """Return the options of the command as settings, or refuse them."""
    from truecast.serve.http.limits import Limits
    from truecast.serve.http.run import Settings

    if options["data"] is not None and options["database"] is not None:
        raise click.UsageError("--data and --database are two places: choose one")
    if (options["tls_cert"] is None) != (options["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    data = None if options["database"] is not None else options["data"] or Path(DATA)
    if data is not None:
        make_folder(data, 0o700)
    return Settings(
        database=options["database"] or f"sqlite:///{(data or Path()).resolve() / DATABASE}",
        host=options["host"],
        port=options["port"],
        tokens=options["token_file"],
        standby=options["standby"],
        open_streams=options["open_streams"],
        public=options["public_url"],
        webhook=_webhook(options, data),
        keep=_keep(options),
        certificate=(options["tls_cert"], options["tls_key"]) if options["tls_cert"] else None,
        limits=Limits(body=options["max_body"], rows=options["max_rows"], rate=options["rate"]),
        log_requests=options["log_requests"],
    )


def _keep(options: dict[str, Any]) -> Keep | None:
    from truecast.serve.http.run import Keep

    days, most, folder = (options[name] for name in ("keep_days", "keep_bytes", "export_to"))
    if days is None and most is None:
        if folder is not None:
            raise click.UsageError("--export-to goes with --keep-days or --keep-bytes")
        return None
    if folder is None:
        raise click.UsageError("--keep-days and --keep-bytes need --export-to: nothing is lost")
    return Keep(export_to=folder, max_age=None if days is None else 86_400.0 * days, max_bytes=most)


def _webhook(options: dict[str, Any], data: Path | None) -> tuple[str, bytes, Path] | None:
    url, secret, memory = (options[f"webhook{part}"] for part in ("", "_secret", "_memory"))
    if url is None:
        if secret is not None or memory is not None:
            raise click.UsageError("--webhook-secret and --webhook-memory go with --webhook")
        return None
    if not url.startswith(("http://", "https://")):
        raise click.UsageError("--webhook must begin with http:// or https://")
    if secret is None:
        raise click.UsageError("--webhook needs --webhook-secret, so that alarms are signed")
    if memory is None:
        if data is None:
            raise click.UsageError("--webhook with --database needs --webhook-memory")
        memory = data / "webhook.json"
    found = secret.read_bytes().strip()
    if len(found) < 16:
        raise click.UsageError("--webhook-secret must have at least 16 characters")
    return url, found, memory
