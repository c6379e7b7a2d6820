"""What a collector is: it adds the samples of one area to a scrape, in slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ottla.observe.metrics.exposition import Exposition
from ottla.server.loop.slices import Steps

Collector: TypeAlias = Callable[[Exposition], Steps]
