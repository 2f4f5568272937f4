"""Clients of `truecast serve`, one that waits and one for asyncio; they need httpx."""

from truecast.client.aio import AsyncClient
from truecast.client.results import Forecast, OutcomeAnswer
from truecast.client.sync import Client
from truecast.client.webhooks import verify_webhook

__all__ = ["AsyncClient", "Client", "Forecast", "OutcomeAnswer", "verify_webhook"]
