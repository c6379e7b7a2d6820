"""PatternReader: the text of a pattern and the position of its parser."""

from __future__ import annotations


class PatternReader:
    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def more(self) -> bool:
        return self.at < len(self.text)

    def peek(self, count: int) -> str:
        return self.text[self.at : self.at + count]

    def starts(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.at)

    def take(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def skip(self, count: int) -> None:
        self.at += count

    def accept(self, prefix: str) -> bool:
        """Skip the prefix if the text goes on with it, and return whether it does."""
        if self.starts(prefix):
            self.at += len(prefix)
            return True
        return False
