"""Removes from a file what only its own tools need: custom options, extensions and extension ranges."""

from __future__ import annotations

from dataclasses import replace

from ottla.schemas.protobuf.elements import EnumType, Message, ProtoField, ProtoFile, ProtoOption, ProtoService, Rpc

# Confluent's own options are kept: its clients read them.
_KEPT = "confluent."


def without_extensions(file: ProtoFile) -> ProtoFile:
    return replace(
        file,
        options=_options(file.options),
        messages=tuple(map(_message, file.messages)),
        enums=tuple(map(_enum, file.enums)),
        extends=(),
        services=tuple(map(_service, file.services)),
    )


def _options(options: tuple[ProtoOption, ...]) -> tuple[ProtoOption, ...]:
    return tuple(each for each in options if not each.name[0].is_extension or each.name[0].name.startswith(_KEPT))


def _message(message: Message) -> Message:
    return replace(
        message,
        fields=tuple(map(_field, message.fields)),
        oneofs=tuple(replace(each, options=_options(each.options)) for each in message.oneofs),
        nested=tuple(map(_message, message.nested)),
        enums=tuple(map(_enum, message.enums)),
        extends=(),
        extensions=(),
        options=_options(message.options),
    )


def _field(each: ProtoField) -> ProtoField:
    group = None if each.group is None else _message(each.group)
    return replace(each, options=_options(each.options), group=group)


def _enum(enum: EnumType) -> EnumType:
    values = tuple(replace(each, options=_options(each.options)) for each in enum.values)
    return replace(enum, values=values, options=_options(enum.options))


def _service(service: ProtoService) -> ProtoService:
    def plain(rpc: Rpc) -> Rpc:
        return replace(rpc, options=_options(rpc.options))

    return replace(service, rpcs=tuple(map(plain, service.rpcs)), options=_options(service.options))
