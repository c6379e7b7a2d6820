"""One secure node for the tests of this folder."""

from collections.abc import Iterator

import pytest
from tests.compat.security.secure_node import SecureNode


@pytest.fixture(scope="session")
def secure(against: str, java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    node = SecureNode(against, tmp_path_factory.mktemp("secure"))
    try:
        yield node.start()
    finally:
        node.stop()
