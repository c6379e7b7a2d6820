"""Errors of the registry: Confluent's error codes, with its messages."""

from __future__ import annotations


class RegistryRefusal(Exception):
    """A request is refused. `code` is Confluent's; its first three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        return self.code if self.code < 1_000 else self.code // 100


def subject_not_found(subject: str | None) -> RegistryRefusal:
    return RegistryRefusal(40401, f"Subject '{'null' if subject is None else subject}' not found.")


def version_not_found(version: int | None) -> RegistryRefusal:
    return RegistryRefusal(40402, f"Version {'null' if version is None else version} not found.")


def schema_not_found(identity: int | str | None = None) -> RegistryRefusal:
    return RegistryRefusal(40403, "Schema not found" if identity is None else f"Schema {identity} not found")


def subject_soft_deleted(subject: str) -> RegistryRefusal:
    return RegistryRefusal(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryRefusal:
    return RegistryRefusal(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryRefusal:
    return RegistryRefusal(
        40406, f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryRefusal:
    return RegistryRefusal(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_level(subject: str | None) -> RegistryRefusal:
    named = "null" if subject is None else subject
    return RegistryRefusal(40408, f"Subject '{named}' does not have subject-level compatibility configured")


def no_mode(subject: str | None) -> RegistryRefusal:
    named = "null" if subject is None else subject
    return RegistryRefusal(40409, f"Subject '{named}' does not have subject-level mode configured")


def incompatible(message: str) -> RegistryRefusal:
    return RegistryRefusal(40901, message)


def invalid_schema(message: str) -> RegistryRefusal:
    return RegistryRefusal(42201, message)


def invalid_version(version: str) -> RegistryRefusal:
    return RegistryRefusal(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] and the"
        ' string "latest"',
    )


def invalid_level(message: str) -> RegistryRefusal:
    return RegistryRefusal(42203, message)


def invalid_mode(message: str) -> RegistryRefusal:
    return RegistryRefusal(42204, message)


def not_permitted(message: str) -> RegistryRefusal:
    return RegistryRefusal(42205, message)


def referenced(key: str) -> RegistryRefusal:
    return RegistryRefusal(42206, f"One or more references exist to the schema {key}.")


def invalid_subject(subject: str) -> RegistryRefusal:
    return RegistryRefusal(42208, f"The specified subject '{subject}' is not a valid.")


def too_large(message: str) -> RegistryRefusal:
    return RegistryRefusal(42209, message)


def too_much(message: str) -> RegistryRefusal:
    return RegistryRefusal(42201, message)


def invalid_rules(message: str) -> RegistryRefusal:
    return RegistryRefusal(42210, message)


def context_not_empty(context: str) -> RegistryRefusal:
    return RegistryRefusal(42211, f"The specified context '{context}' is not empty.")
