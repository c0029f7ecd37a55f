"""Property tests here have no deadline: the first example of a test may import numpy or Talos."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("space", deadline=None)
settings.load_profile("space")
