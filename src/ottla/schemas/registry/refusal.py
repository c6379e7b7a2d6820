"""Why the registry refuses: Confluent's error codes, with its sentences."""

from __future__ import annotations


class Refused(Exception):
    """What was asked for is refused. `code` is Confluent's; its first three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        return self.code if self.code < 1_000 else self.code // 100


def subject_not_found(subject: str | None) -> Refused:
    return Refused(40401, f"Subject '{'null' if subject is None else subject}' not found.")


def version_not_found(version: int | None) -> Refused:
    return Refused(40402, f"Version {'null' if version is None else version} not found.")


def schema_not_found(identity: int | str | None = None) -> Refused:
    return Refused(40403, "Schema not found" if identity is None else f"Schema {identity} not found")


def subject_soft_deleted(subject: str) -> Refused:
    return Refused(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> Refused:
    return Refused(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> Refused:
    return Refused(
        40406, f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    )


def version_not_soft_deleted(subject: str, version: int) -> Refused:
    return Refused(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_level(subject: str | None) -> Refused:
    named = "null" if subject is None else subject
    return Refused(40408, f"Subject '{named}' does not have subject-level compatibility configured")


def no_mode(subject: str | None) -> Refused:
    named = "null" if subject is None else subject
    return Refused(40409, f"Subject '{named}' does not have subject-level mode configured")


def incompatible(message: str) -> Refused:
    return Refused(40901, message)


def invalid_schema(message: str) -> Refused:
    return Refused(42201, message)


def invalid_version(version: str) -> Refused:
    return Refused(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] and the"
        ' string "latest"',
    )


def invalid_level(message: str) -> Refused:
    return Refused(42203, message)


def invalid_mode(message: str) -> Refused:
    return Refused(42204, message)


def not_permitted(message: str) -> Refused:
    return Refused(42205, message)


def referenced(key: str) -> Refused:
    return Refused(42206, f"One or more references exist to the schema {key}.")


def invalid_subject(subject: str) -> Refused:
    return Refused(42208, f"The specified subject '{subject}' is not a valid.")


def too_large(message: str) -> Refused:
    return Refused(42209, message)


def too_much(message: str) -> Refused:
    return Refused(42201, message)


def invalid_rules(message: str) -> Refused:
    return Refused(42210, message)


def context_not_empty(context: str) -> Refused:
    return Refused(42211, f"The specified context '{context}' is not empty.")
