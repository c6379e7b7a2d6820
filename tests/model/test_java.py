"""Java's hashes and the order of Kafka's tables, by what Kafka's own tests and coordinators show."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.machine.stepped import in_one_go
from ottla.model.java import in_table_order, java_abs, java_hash, table_order


def test_hashes_of_strings() -> None:
    assert java_hash("") == 0
    assert java_hash("hello") == 99162322
    assert java_hash("polygenelubricants") == 0x8000_0000, "the one whose absolute value Java cannot say"
    assert java_abs(java_hash("polygenelubricants")) == 0
    assert java_abs(0xFFFF_FFFF) == 1
    assert java_hash("\N{GRINNING FACE}") == 0xD83D * 31 + 0xDE00


def walked(names: list[str]) -> list[str]:
    return table_order(names, str)


def test_the_order_of_tables() -> None:
    """Kafka's request tests list six groups, and two members, in these orders."""
    order = walked([f"grp-{number}" for number in range(1, 7)])
    assert order.index("grp-4") < order.index("grp-1")
    assert walked(["member-1", "member-2"]) == ["member-2", "member-1"]


def test_what_shares_a_slot_comes_back_in_reverse() -> None:
    same = ["AaAa", "BBBB", "AaBB"]  # one hash
    assert len({java_hash(each) for each in same}) == 1
    assert walked(same) == same[::-1]
    assert walked([]) == []


@given(st.lists(st.text(), unique=True), st.integers(1, 20))
def test_the_same_order_in_steps(names: list[str], at_once: int) -> None:
    assert in_one_go(in_table_order(names, str, at_once)) == table_order(names, str)
