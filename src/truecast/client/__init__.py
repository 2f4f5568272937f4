"""Clients of `truecast serve`, one that waits and one for asyncio; they need httpx."""

from truecast.client.aio import AsyncClient
from truecast.client.results import ServedForecast, ServedOutcome
from truecast.client.sync import Client
from truecast.client.webhooks import verify_webhook

__all__ = ["AsyncClient", "Client", "ServedForecast", "ServedOutcome", "verify_webhook"]
