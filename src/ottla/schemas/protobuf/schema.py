"""A parsed Protobuf schema: its texts, its descriptors, its messages by name and by index."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cached_property

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from ottla.schemas.protobuf.building import fill_json_names
from ottla.schemas.protobuf.compatibility import incompatibilities
from ottla.schemas.protobuf.elements import ImportKind, Message, ProtoFile
from ottla.schemas.protobuf.library import Linked, ProtoFiles, load
from ottla.schemas.protobuf.linking import join
from ottla.schemas.protobuf.normalizing import normalize
from ottla.schemas.protobuf.plain import without_extensions
from ottla.schemas.protobuf.printer import print_file
from ottla.schemas.protobuf.tags import InlineTags, inline_tags
from ottla.schemas.schema import Incompatibility, Parsed, Reference, SchemaSource


def parse_protobuf(source: SchemaSource, *, strict: bool = True) -> ProtobufSchema:
    """Parse a .proto text, or a descriptor in base64. Raises InvalidSchema.

    `strict` checks it as a new schema. Other registries have accepted schemas that protoc refuses: such a stored schema
    can be printed and compared, but has no descriptor.
    """
    return ProtobufSchema(load(source.text, source.resolved, strict=strict), source.references)


class ProtobufSchema:
    """Implements `schemas.schema.Parsed`."""

    def __init__(self, library: ProtoFiles, references: Sequence[Reference]) -> None:
        self.library = library
        self.references = tuple(references)

    @cached_property
    def canonical(self) -> str:
        return print_file(self.library.main.spelt)

    @cached_property
    def normalized(self) -> str:
        main = self.library.main
        return print_file(normalize(main.file, main.names, [each.file for each in self.library.imports.values()]))

    @property
    def serialized(self) -> str:
        """The descriptor in base64, for `format=serialized`."""
        return base64.b64encode(self.library.main.descriptor.SerializeToString(deterministic=True)).decode()

    def formatted(self, form: str) -> str:
        """Return the text in one of the forms of Confluent's API; the canonical one if the form is not known."""
        if form == "serialized":
            return self.serialized
        if form == "ignore_extensions":
            return print_file(without_extensions(self.library.main.spelt))
        return self.canonical

    @cached_property
    def descriptor(self) -> FileDescriptorProto:
        """The descriptor as protoc makes it; its name is `default`."""
        made = FileDescriptorProto()
        made.CopyFrom(self.library.main.descriptor)
        fill_json_names(made)
        return made

    @property
    def tags(self) -> list[InlineTags]:
        """The tags of messages and fields in Confluent's options."""
        return inline_tags(self.library.main.spelt)

    def incompatibilities(self, writer: Parsed) -> list[Incompatibility]:
        if not isinstance(writer, ProtobufSchema):
            return [Incompatibility("SCHEMA_TYPE_CHANGED", "#/", "Incompatible because of different schema type")]
        return incompatibilities(
            self.library, self.references, original=writer.library, original_references=writer.references
        )

    # --- messages ---

    def pool(self) -> DescriptorPool:
        """The schema and all its imports, as descriptors; made once."""
        return self._pool

    @cached_property
    def _pool(self) -> DescriptorPool:
        return self.library.pool()

    def message_descriptor(self, message: str | Sequence[int] | None = None) -> Descriptor:
        """Return the descriptor of a message by full name or by indexes; by default of the first. Raises KeyError."""
        if message is None or not isinstance(message, str):
            message = self.message_name((0,) if message is None else message)
        return self._pool.FindMessageTypeByName(message)

    def message_name(self, indexes: Sequence[int]) -> str:
        """Return the full name of the message with these indexes. Raises KeyError."""
        file = self._file_with_messages
        inside: Sequence[Message] = file.messages
        name = file.package or ""
        for index in indexes or (0,):
            if not 0 <= index < len(inside):
                raise KeyError(f"the schema has no message with the indexes {list(indexes)}")
            name = join(name, inside[index].name)
            inside = inside[index].nested
        return name

    def message_indexes(self, name: str) -> tuple[int, ...]:
        """Return the indexes of a message by its full name. Raises KeyError."""
        found = self._indexes.get(name)
        if found is None:
            raise KeyError(f"the schema has no message {name}")
        return found

    @cached_property
    def _indexes(self) -> Mapping[str, tuple[int, ...]]:
        file = self._file_with_messages
        found: dict[str, tuple[int, ...]] = {}
        stack: list[tuple[str, tuple[int, ...], Message]] = []
        stack += [(file.package or "", (index,), each) for index, each in enumerate(file.messages)]
        while stack:
            scope, path, message = stack.pop()
            name = join(scope, message.name)
            found[name] = path
            stack += [(name, (*path, index), each) for index, each in enumerate(message.nested)]
        return found

    @property
    def _file_with_messages(self) -> ProtoFile:
        """Return the file itself; or, if it only imports another publicly, that one (as Confluent's clients see it)."""
        main = self.library.main.spelt
        if main.messages or main.enums or main.services or main.extends or len(main.imports) != 1:
            return main
        only = main.imports[0]
        found: Linked | None = self.library.imports.get(only.path)
        return found.spelt if found is not None and only.kind is ImportKind.PUBLIC else main
