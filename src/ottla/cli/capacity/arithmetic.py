"""The arithmetic of `ottla plan`: lines of terms, each with its result. Pure.

A line is computed from the terms that it shows, from left to right, so what is shown is what was computed.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

_SCALES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_DURATIONS = ((86_400, "d"), (3_600, "h"), (60, "min"))


class QuantityUnit(StrEnum):
    BYTES = "B"
    RATE = "B/s"
    SECONDS = "s"
    CPU_PER_GB = "s/GB"  # seconds of CPU time for a gigabyte
    LOOPS = "event loops"
    NUMBER = ""


class Quantity(NamedTuple):
    """A number with its unit, in bytes and seconds."""

    value: float
    unit: QuantityUnit = QuantityUnit.NUMBER

    def __str__(self) -> str:
        if self.unit in (QuantityUnit.BYTES, QuantityUnit.RATE):
            scale, letter = next(((scale, letter) for scale, letter in _SCALES if self.value >= scale), (1, ""))
            return f"{self.value / scale:.4g} {letter}{self.unit}"
        if self.unit is QuantityUnit.SECONDS:
            for scale, name in _DURATIONS:
                if self.value >= scale and self.value % scale == 0:
                    return f"{self.value / scale:g} {name}"
            return f"{self.value:g} s" if self.value >= 1e-3 else f"{self.value * 1e6:.4g} µs"
        digits = f"{self.value:,.0f}" if self.value >= 1000 else f"{self.value:.4g}"
        return f"{digits} {self.unit}".rstrip()


class PlanTerm(NamedTuple):
    """One operand; `operator` is *, / or +."""

    operator: str
    quantity: Quantity

    def __str__(self) -> str:
        return f"{self.operator} {self.quantity}"


class PlanLine(NamedTuple):
    """One line: a name, the terms, their result, and whether it was rounded up to a whole number."""

    name: str
    terms: tuple[PlanTerm, ...]
    result: Quantity
    is_rounded: bool

    @property
    def formula(self) -> str:
        return " ".join(map(str, self.terms)).removeprefix("* ")


def times(quantity: Quantity) -> PlanTerm:
    return PlanTerm("*", quantity)


def over(quantity: Quantity) -> PlanTerm:
    return PlanTerm("/", quantity)


def plus(quantity: Quantity) -> PlanTerm:
    return PlanTerm("+", quantity)


def number(value: float) -> Quantity:
    return Quantity(value)


def compute(name: str, unit: QuantityUnit, first: Quantity, *rest: PlanTerm, up: bool = False) -> PlanLine:
    """Compute a line; with `up` the result is rounded up to a whole number, at least 1."""
    value = first.value
    for each in rest:
        if each.operator == "*":
            value *= each.quantity.value
        elif each.operator == "/":
            value /= each.quantity.value
        else:
            value += each.quantity.value
    if up:
        value = max(math.ceil(round(value, 9)), 1)  # 2.0000000001 is 2
    return PlanLine(name, (times(first), *rest), Quantity(value, unit), up)
