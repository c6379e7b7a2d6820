"""A schema together with all its imports: parsed, linked, and with descriptors.

Rules:
- An import is looked up among Google's own files, then among the references, then among Confluent's files.
- An import that is not found is not an error by itself (Confluent accepts it too: often only options need it). If a
  type is missing then, the error names such imports.
- Chains of imports are followed without recursion; a cycle is refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.message_factory import GetMessageClass

from ottla.model.limits import PROTOBUF_TEXT_CHARS_MAX, SCHEMA_NAME_CHARS_MAX, SCHEMA_NAME_PARTS_MAX
from ottla.schemas.protobuf.building import build
from ottla.schemas.protobuf.checks import check
from ottla.schemas.protobuf.elements import ImportKind, ProtoFile
from ottla.schemas.protobuf.known import CONFLUENT, DESCRIPTOR_FILE, known_descriptor
from ottla.schemas.protobuf.linking import NameKind, Names, link, names_in
from ottla.schemas.protobuf.options import interpret
from ottla.schemas.protobuf.parser import parse_file
from ottla.schemas.protobuf.printer import print_file
from ottla.schemas.protobuf.unbuilding import unbuild
from ottla.schemas.schema import InvalidSchema

# The name that Confluent gives to the file of a schema.
MAIN = "default"


@dataclass(frozen=True, slots=True)
class Linked:
    """A linked file: as spelt, with full names, the names that it may use, and its descriptor."""

    path: str
    spelt: ProtoFile
    file: ProtoFile
    names: Names
    exported: Mapping[str, NameKind]
    descriptor: FileDescriptorProto


@dataclass(frozen=True, slots=True)
class ProtoFiles:
    """A schema's file, and before it all files that it needs, dependencies first."""

    main: Linked
    imports: Mapping[str, Linked]

    def pool(self) -> DescriptorPool:
        """Return a new pool with all of the files."""
        return _pool_of(self.files)

    @property
    def files(self) -> list[Linked]:
        return [*self.imports.values(), self.main]


@dataclass(frozen=True, slots=True)
class _Read:
    """A parsed file, or one given as a descriptor (which is converted to elements once its imports are linked)."""

    file: ProtoFile | None
    descriptor: FileDescriptorProto | None
    imports: tuple[str, ...]


def load(text: str, resolved: Mapping[str, str], *, strict: bool = True) -> ProtoFiles:
    """Parse and link a schema and its imports. Raises InvalidSchema.

    Unless `strict`, a schema that protoc would refuse but that can be compared is accepted; its descriptor may be
    unusable.
    """
    done: dict[str, Linked] = {}
    main = _read(text)
    reads: dict[str, _Read | None] = {}
    open_paths: list[str] = []
    stack = [(path, False) for path in reversed(main.imports)]
    while stack:
        path, is_walked = stack.pop()
        if is_walked:
            open_paths.remove(path)
            read = reads[path]
            assert read is not None
            done[path] = _link_import(path, read, done, strict)
            continue
        if path in open_paths:
            raise InvalidSchema(f'"{path}" imports itself: {" -> ".join([*open_paths, path])}')
        if path in reads:
            continue
        reads[path] = read = _find(path, resolved)
        if read is not None:
            open_paths.append(path)
            stack.append((path, True))
            stack += [(each, False) for each in reversed(read.imports)]
    # A reference may have that name too.
    path = MAIN if MAIN not in done else f"{MAIN}.proto"
    return ProtoFiles(_link(path, main, done, strict), done)


def _link_import(path: str, read: _Read, done: Mapping[str, Linked], strict: bool) -> Linked:
    if known_descriptor(path) is not None:
        return _known_files(path)[path]
    try:
        return _link(path, read, done, strict)
    except InvalidSchema as invalid:
        raise InvalidSchema(f'in "{path}": {invalid}') from None


@cache
def _known_files(path: str) -> Mapping[str, Linked]:
    """Return one of Google's files, after its imports. They never change, so they are linked once."""
    made = known_descriptor(path)
    assert made is not None
    files: dict[str, Linked] = {}
    for each in made.dependency:
        files |= _known_files(each)
    files[path] = _linked_descriptor(path, made, files, strict=True)
    return files


def _find(path: str, resolved: Mapping[str, str]) -> _Read | None:
    known = known_descriptor(path)
    if known is not None:
        return _Read(None, known, tuple(known.dependency))
    text = resolved.get(path, CONFLUENT.get(path))
    if text is None:
        return None
    try:
        return _read(text)
    except InvalidSchema as invalid:
        raise InvalidSchema(f'in "{path}": {invalid}') from None


def _read(text: str) -> _Read:
    try:
        file = parse_file(text)
    except InvalidSchema:
        made = _decode(text)
        if made is None:
            raise
        return _Read(None, made, tuple(made.dependency))
    return _Read(file, None, tuple(dict.fromkeys(each.path for each in file.imports)))


def _decode(text: str) -> FileDescriptorProto | None:
    """Return the descriptor that a text contains in base64, or None."""
    if len(text) > PROTOBUF_TEXT_CHARS_MAX:
        return None
    try:
        made = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return made if text and _is_text(made) else None


def _is_text(message: ProtoMessage) -> bool:
    """Return whether all strings are UTF-8 (others come as bytes)."""
    for field, value in message.ListFields():
        each: Any
        for each in value if field.is_repeated else (value,):
            if field.message_type is not None and not _is_text(each):
                return False
            if field.type == field.TYPE_STRING and isinstance(each, bytes):
                return False
    return True


def _link(path: str, read: _Read, done: Mapping[str, Linked], strict: bool) -> Linked:
    if read.file is None:
        assert read.descriptor is not None
        return _linked_descriptor(path, read.descriptor, done, strict)
    return _linked_file(path, read.file, done, strict)


def _linked_descriptor(path: str, made: FileDescriptorProto, done: Mapping[str, Linked], strict: bool) -> Linked:
    """Convert a descriptor to elements, with the options of the extensions in reach. Their text is parsed once, so
    that elements that descriptors may have and texts may not are refused.
    """
    _check_names(made)
    probe = FileDescriptorProto()
    probe.CopyFrom(made)
    probe.name = path
    present = [name for name in made.dependency if name in done]
    pool = _pool_for(_describes_options(made.package, [each.name for each in made.message_type]), present, done)
    try:
        pool.Add(probe)
        known = pool.FindMessageTypeByName

        def with_extensions(options: ProtoMessage) -> ProtoMessage:
            return GetMessageClass(known(options.DESCRIPTOR.full_name)).FromString(options.SerializeToString())

        file = unbuild(made, with_extensions)
    except (TypeError, KeyError):
        # Imports are missing: options that they define cannot be read. Everything else is checked when it is linked.
        file = unbuild(made, lambda options: options)
    except DecodeError as error:
        raise InvalidSchema(f"the descriptor has options that cannot be read: {error}") from None
    try:
        parse_file(print_file(file))
        return _linked_file(path, file, done, strict)
    except InvalidSchema as invalid:
        raise InvalidSchema(f"in the text of the descriptor: {invalid}") from None


def _check_names(made: FileDescriptorProto) -> None:
    """Check the length of names, as the parser does for texts: a pool stores each element with all names around it."""
    names = [made.package]
    stack = list(made.message_type)
    while stack:
        message = stack.pop()
        names.append(message.name)
        stack += message.nested_type
    if max(map(len, names)) > SCHEMA_NAME_CHARS_MAX or made.package.count(".") > SCHEMA_NAME_PARTS_MAX:
        raise InvalidSchema(f"a name has more than {SCHEMA_NAME_CHARS_MAX} characters or {SCHEMA_NAME_PARTS_MAX} parts")


def _closure(paths: list[str], done: Mapping[str, Linked]) -> list[str]:
    """Return the files and all their imports, in the order of `done`, where dependencies are first."""
    wanted: set[str] = set()
    stack = list(paths)
    while stack:
        path = stack.pop()
        if path in done and path not in wanted:
            wanted.add(path)
            stack += done[path].descriptor.dependency
    return [path for path in done if path in wanted]


def _linked_file(path: str, spelt: ProtoFile, done: Mapping[str, Linked], strict: bool) -> Linked:
    own = names_in(spelt)
    visible = dict(own)
    exported = dict(own)
    for each in spelt.imports:
        found = done.get(each.path)
        if found is not None:
            visible |= found.exported
            if each.kind is ImportKind.PUBLIC:
                exported |= found.exported
    missing = tuple(each.path for each in spelt.imports if each.path not in done)
    names = Names(visible, missing)
    file = link(spelt, names)
    made = FileDescriptorProto(name=path)
    try:
        check(file)
        made = _described(path, file, names, done)
    except InvalidSchema:
        if strict:
            raise
    return Linked(path, spelt, file, names, exported, made)


def _described(path: str, file: ProtoFile, names: Names, done: Mapping[str, Linked]) -> FileDescriptorProto:
    made, pending = build(file, path, names)
    describes = _describes_options(file.package, [each.name for each in file.messages])
    pool = _pool_for(describes, list(made.dependency), done)
    _add(pool, made)
    interpret(pending, pool, names)
    return made


def _describes_options(package: str | None, messages: list[str]) -> bool:
    """Return whether this is Google's own descriptor.proto, under whatever name it is registered."""
    return package == "google.protobuf" and "FieldOptions" in messages


def _pool_for(describes_options: bool, dependencies: list[str], done: Mapping[str, Linked]) -> DescriptorPool:
    """Return a pool to which a file can be added. It contains descriptor.proto, unless the file is that very one."""
    files = {name: done[name] for name in _closure(dependencies, done)}
    return _pool_of((files if describes_options else {**_known_files(DESCRIPTOR_FILE), **files}).values())


def _pool_of(files: Iterable[Linked]) -> DescriptorPool:
    pool = DescriptorPool()
    for linked in files:
        _add(pool, linked.descriptor)
    return pool


def _add(pool: DescriptorPool, made: FileDescriptorProto) -> None:
    try:
        pool.Add(made)
    except TypeError as error:
        # The library's message is the best there is, except for the file name in it.
        said = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
        raise InvalidSchema(said) from None
