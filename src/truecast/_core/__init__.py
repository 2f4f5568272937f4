"""The compiled core: kernels behind the public edge, which checks their arguments."""

from truecast._core.kernels import *
