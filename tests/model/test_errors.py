"""The error table."""

from ottla.model.errors import ApiError, ErrorCode, RecordError


def test_the_codes_are_kafkas() -> None:
    assert len(ErrorCode) == 135
    assert sorted(ErrorCode) == list(range(-1, 134))
    assert ErrorCode(56) is ErrorCode.KAFKA_STORAGE_ERROR


def test_retriable_ones_are_marked() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.INVALID_CONFIG.retriable
    assert sum(code.retriable for code in ErrorCode) == 32


def test_every_error_has_words() -> None:
    assert all(code.message for code in ErrorCode if code is not ErrorCode.NONE)


def test_an_api_error_prefers_its_own_words() -> None:
    assert ApiError(ErrorCode.INVALID_CONFIG).text == ErrorCode.INVALID_CONFIG.message
    error = ApiError(ErrorCode.INVALID_RECORD, "no key", (RecordError(0, "no key"),))
    assert str(error) == "INVALID_RECORD: no key"
    assert error.record_errors[0].index == 0
