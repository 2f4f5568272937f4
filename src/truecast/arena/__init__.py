"""The arena: forecasters and adversaries of the literature, measured by one yardstick.

For experiments. Nothing else in truecast needs it, and it is imported when first asked for.
"""

from truecast.arena import adversaries, forecasters
from truecast.arena.adversaries import *  # noqa: F403
from truecast.arena.exhaustive import Worst, exhaustive
from truecast.arena.forecasters import *  # noqa: F403
from truecast.arena.game import play
from truecast.arena.minimax import GameValue, minimax_value
from truecast.arena.results import Results
from truecast.arena.roster import ADVERSARIES, FORECASTERS
from truecast.arena.search import Response, best_response
from truecast.arena.sperner import Sperner
from truecast.arena.tournament import tournament
from truecast.arena.transcript import Transcript

__all__ = [
    "ADVERSARIES",
    "FORECASTERS",
    "GameValue",
    "Response",
    "Results",
    "Sperner",
    "Transcript",
    "Worst",
    "best_response",
    "exhaustive",
    "minimax_value",
    "play",
    "tournament",
]
__all__ += adversaries.__all__
__all__ += forecasters.__all__
