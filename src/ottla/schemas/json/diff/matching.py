"""Matching in a bipartite graph: as many pairs as possible, no node in two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def most_pairs(edges: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return pairs, left → right. Each left node takes a free partner, or moves others along a path to a free one."""
    partner_of: dict[int, int] = {}
    for start in edges:
        _settle(start, edges, partner_of)
    return {left: right for right, left in partner_of.items()}


def _settle(start: int, edges: Mapping[int, Sequence[int]], partner_of: dict[int, int]) -> None:
    """Search breadth-first for a free right node; then move all partners on the path by one."""
    came_from: dict[int, int] = {}
    waiting = [start]
    for left in waiting:
        for right in edges[left]:
            if right in came_from:
                continue
            came_from[right] = left
            if right in partner_of:
                waiting.append(partner_of[right])
                continue
            partners = {mover: place for place, mover in partner_of.items()}
            free: int | None = right
            while free is not None:
                mover = came_from[free]
                partner_of[free] = mover
                free = partners.get(mover) if mover != start else None
            return
