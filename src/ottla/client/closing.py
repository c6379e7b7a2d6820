"""The superclass of the client's objects that have to be closed: `async with` closes them."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    @abstractmethod
    async def close(self) -> None:
        """Release all resources that the object holds."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
