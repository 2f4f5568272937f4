"""Run the service: listen, open the database, answer, and stop without losing anything."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from truecast.errors import InputError
from truecast.serve.http.app import App
from truecast.serve.http.auth import Tokens
from truecast.serve.http.hosts import LOOPBACK, Hosts
from truecast.serve.http.limits import Limits
from truecast.serve.http.logs import log
from truecast.serve.http.webhook import Webhook
from truecast.serve.service import MOST_OPEN, Service, open_service
from truecast.serve.store import LockedError

__all__ = ["Keep", "Settings", "fast_loop", "run", "serve", "spare_the_living"]

PATIENCE = 10  # seconds for requests that are under way when the service stops
STANDBY = 0.5  # seconds between two looks whether the database is free
SHORTEN = 3_600.0  # seconds between two looks at what can go
COLLECT = 10_000, 20, 20  # thresholds of the garbage collector, which has little to do here
SWITCH = 0.001  # seconds that a thread may keep the interpreter from the others
RELOAD = 2.0  # seconds between two looks at the file of tokens


@dataclass(frozen=True, kw_only=True)
class Keep:
    """How much of the journal to keep, and where the rest is exported to; see `Service.retain`."""

    export_to: Path
    max_age: float | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to run.

    Attributes
    ----------
    database : str
        See `open_service`.
    tokens : Path or None
        The file of tokens. None only if nobody but this machine can reach the service.
    public : str or None
        The address that people use, for links and for the check of names.
    webhook : tuple or None
        Address, secret, and the file of what was delivered.
    keep : Keep or None
        How much of the journal stays in the database.
    certificate : tuple or None
        Files of a TLS certificate and its key.
    """

    database: str
    host: str = "127.0.0.1"
    port: int = 8799
    tokens: Path | None = None
    standby: bool = False
    open_streams: int = MOST_OPEN
    public: str | None = None
    webhook: tuple[str, bytes, Path] | None = None
    keep: Keep | None = None
    certificate: tuple[Path, Path] | None = None
    limits: Limits = field(default_factory=Limits)
    log_requests: bool = False


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals to `serve`: uvicorn would end the process before the database is closed."""
        yield


async def serve(
    settings: Settings,
    *,
    started: Callable[[str], None] = lambda url: None,
    stop: asyncio.Event | None = None,
    signals: bool = True,
) -> int | None:
    """Run until stopped; return the signal that did it.

    Parameters
    ----------
    settings
        How to run.
    started
        Called with the address once requests are taken.
    stop
        Stops the service when it is set.
    signals
        Whether SIGTERM and SIGINT stop it.
    """
    tokens = _tokens(settings)
    context = _tls(settings)
    with _bound(settings.host, settings.port) as listener:
        url = _url(settings, listener)
        names = None if tokens else LOOPBACK | {settings.host, _name(settings.public)}
        app = App(
            None,
            tokens=tokens,
            hosts=Hosts(names),
            limits=settings.limits,
            log_all=settings.log_requests,
        )
        stopping = _Stopping(stop or asyncio.Event(), signals)
        server = _Server(_config(app, context))
        listening = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            async with AsyncExitStack() as stack:
                service = await stopping.unless(_opened(stack, settings))
                if service is not None:
                    app.service = service
                    await _while_open(stack, app, service, settings, url)
                    started(url)
                    await stopping.wait(listening)
                log(logging.INFO, "stopping")
                app.stopping.set()
                server.should_exit = True
                await listening
        finally:
            server.should_exit = True
            await listening
            stopping.release()
        log(logging.INFO, "stopped")
        return stopping.signal


def run(settings: Settings, started: Callable[[str], None] = lambda url: None) -> int | None:
    """Run in this thread, on uvloop where there is one, in a process that does nothing else."""
    sys.setswitchinterval(SWITCH)

    def ready(url: str) -> None:
        spare_the_living()
        started(url)

    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        return runner.run(serve(settings, started=ready))


def spare_the_living() -> None:
    """Let the garbage collector look no more at what is there now.

    That is mostly modules: about 100,000 objects, so 30 to 50 ms without an answer at each full
    collection.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes loops of uvloop, or None."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class _Stopping:
    """What ends the service: an event, or a signal."""

    def __init__(self, event: asyncio.Event, signals: bool) -> None:
        self._event = event
        self._signals = (signal.SIGTERM, signal.SIGINT) if signals else ()
        self.signal: int | None = None
        loop = asyncio.get_running_loop()
        for number in self._signals:
            with suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(number, self._heard, number)

    def release(self) -> None:
        """Let signals do again what they do in other programs."""
        loop = asyncio.get_running_loop()
        for number in self._signals:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)

    def _heard(self, number: int) -> None:
        self.signal = number
        self._event.set()

    async def wait(self, task: asyncio.Task[Any]) -> None:
        """Wait for the end, or for the end of a task."""
        event = asyncio.ensure_future(self._event.wait())
        await asyncio.wait({event, task}, return_when=asyncio.FIRST_COMPLETED)
        event.cancel()

    async def unless(self, opening: Any) -> Service | None:
        """Return what is awaited, or None if the end comes first."""
        task: asyncio.Task[Service] = asyncio.create_task(opening)
        await self.wait(task)
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            return None
        return task.result()


async def _opened(stack: AsyncExitStack, settings: Settings) -> Service:
    """Open the database; a standby waits until it is free."""
    said = False
    while True:
        opening = open_service(settings.database, open_streams=settings.open_streams)
        try:
            return await stack.enter_async_context(opening)
        except LockedError as error:
            if not settings.standby:
                raise
            if not said:
                log(logging.INFO, "standby: another process writes", reason=str(error))
                said = True
            await asyncio.sleep(STANDBY)


async def _while_open(
    stack: AsyncExitStack, app: App, service: Service, settings: Settings, url: str
) -> None:
    """Start what runs beside the requests, and stops before the database is closed."""
    tasks = []
    if settings.tokens is not None:
        tasks.append(asyncio.create_task(_follow_tokens(app, settings.tokens)))
    if settings.webhook is not None:
        address, secret, memory = settings.webhook
        webhook = Webhook(address, secret, memory, settings.public or url)
        tasks.append(asyncio.create_task(webhook.run(service)))
    if settings.keep is not None:
        tasks.append(asyncio.create_task(_follow_age(service, settings.keep)))

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stack.push_async_callback(end)
    log(logging.INFO, "started", url=url, entries=service.health.seq)


async def _follow_tokens(app: App, path: Path) -> None:
    """Read the file of tokens again when it changes; a broken one changes nothing."""
    known = _stamp(path)
    while True:
        await asyncio.sleep(RELOAD)
        now = _stamp(path)
        if now != known:
            known = now
            try:
                app.tokens = Tokens.read(path)
                log(logging.INFO, "tokens read again", tokens=len(app.tokens))
            except Exception as error:
                log(logging.ERROR, "tokens not read: the old ones stay", reason=str(error))


async def _follow_age(service: Service, keep: Keep) -> None:
    """Let old entries go, now and every hour; what fails is tried again then."""
    while True:
        try:
            found = await service.retain(
                max_age=keep.max_age, max_bytes=keep.max_bytes, export_to=keep.export_to
            )
            log(logging.INFO, "journal shortened", removed=str(found))
        except Exception as error:
            log(logging.ERROR, "the journal was not shortened", error)
        await asyncio.sleep(SHORTEN)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _tokens(settings: Settings) -> Tokens | None:
    """Return the tokens; None only where nobody else can ask."""
    if settings.tokens is not None:
        tokens = Tokens.read(settings.tokens)
        if not len(tokens):
            raise InputError("token_file", "must have a token", str(settings.tokens))
        return tokens
    if not _is_loopback(settings.host):
        rule = "must be this machine alone (127.0.0.1) unless there is a --token-file"
        raise InputError("host", rule, settings.host)
    return None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or an error that names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise OSError(
            f"cannot listen on {host}:{port}: {reason}; choose another with --host or --port"
        ) from error
    return listener


def _url(settings: Settings, listener: socket.socket) -> str:
    scheme = "https" if settings.certificate else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


def _name(url: str | None) -> str:
    return urlsplit(url or "").hostname or ""


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(*settings.certificate)
    return context


def _config(app: App, context: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=PATIENCE,
        ssl_context_factory=None if context is None else lambda *_: context,
    )


def _protocol() -> Any:
    """Return httptools' parser where there is one, else uvicorn's choice."""
    try:
        from truecast.serve.http.protocol import Protocol
    except ImportError:
        return "auto"
    return Protocol
