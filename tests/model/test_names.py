"""Topic names."""

import pytest

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name, collision_key, is_internal


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "...", "a" * 249, "__consumer_offsets"])
def test_good_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, f"the length of '{'a' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ä", "'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_bad_names_are_refused_in_kafkas_words(name: str, problem: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_topic_name(name)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert caught.value.message == f"Topic name is invalid: {problem}"


def test_dots_and_underscores_collide() -> None:
    assert collision_key("a.b") == collision_key("a_b")
    assert collision_key("a.b") != collision_key("a-b")


def test_internal_topics() -> None:
    assert is_internal("__consumer_offsets")
    assert not is_internal("__mine")
