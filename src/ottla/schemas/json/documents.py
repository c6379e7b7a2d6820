"""Resolution of `$ref`: into the schema itself, into one of its references, or into the schema of a draft.

Nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urljoin

from ottla.schemas import jackson
from ottla.schemas.jackson import Json
from ottla.schemas.schema import InvalidSchema

_ANCHORS = ("$anchor", "$dynamicAnchor")


class LocatedSchema(NamedTuple):
    """A schema inside a document, and the base URI of its relative references."""

    tree: Json
    base: str
    document: str


def resolve(base: str, reference: str) -> str:
    """Return the URI of a reference inside a document with this base."""
    if reference.startswith("#") or not reference:
        return base.partition("#")[0] + reference
    joined = urljoin(base, reference) if base else reference
    # urljoin supports hierarchical schemes only; with others (mem:, urn:) the reference is taken as it is.
    return joined or reference


class Documents:
    """The schema and its references, by URI."""

    def __init__(self, root: Json, id_keyword: str, references: Mapping[str, str]) -> None:
        self._id_keyword = id_keyword
        own = self._id_of(root)
        self.base = resolve("", own) if own else ""
        self._trees: dict[str, Json] = {}
        for name, text in references.items():
            tree = bridged(jackson.read(text, exact=True))
            for uri in (name, resolve(self.base, name), f"./{name}"):
                self._trees.setdefault(uri.partition("#")[0], tree)
        self.root = bridged(root)
        self._trees[self.base.partition("#")[0]] = self.root
        self._named: dict[str, dict[str, LocatedSchema]] = {}

    def find(self, place: LocatedSchema, reference: str) -> tuple[str, LocatedSchema]:
        """Return the target of a reference, with its normalised pointer. Raises InvalidSchema."""
        pointer = resolve(place.base, reference)
        uri, _, fragment = pointer.partition("#")
        names = self._names_in(place.document)
        if pointer in names:
            return pointer, names[pointer]
        if reference.startswith("#"):
            document = place.document
            if uri in names and (found := _walk(self, names[uri], fragment)) is not None:
                return pointer, found
        elif uri in names:
            return pointer, self._walked(names[uri], fragment, reference)
        else:
            document = self._document(uri, reference)
        for name in (pointer, f"{document}#{fragment}"):
            if name in self._names_in(document):
                return pointer, self._names_in(document)[name]
        tree = self._trees[document]
        return pointer, self._walked(LocatedSchema(tree, self.base_of(tree, document), document), fragment, reference)

    def _walked(self, start: LocatedSchema, fragment: str, reference: str) -> LocatedSchema:
        found = _walk(self, start, fragment)
        if found is None:
            raise InvalidSchema(f"cannot resolve $ref {reference!r}: there is nothing of this name")
        return found

    def _document(self, uri: str, reference: str) -> str:
        for candidate in (uri, reference.partition("#")[0]):
            if candidate in self._trees:
                return candidate
        drafted = _draft(uri)
        if drafted is None:
            raise InvalidSchema(f"cannot resolve $ref {reference!r}: no reference has this name")
        self._trees[uri] = drafted
        return uri

    def base_of(self, tree: Json, base: str) -> str:
        own = self._id_of(tree)
        return resolve(base, own) if own is not None and not own.startswith("#") else base

    def _id_of(self, tree: Json) -> str | None:
        own = tree.get(self._id_keyword) if isinstance(tree, dict) else None
        return own if isinstance(own, str) else None

    def _names_in(self, document: str) -> dict[str, LocatedSchema]:
        """Return the schemas inside a document that have an id or an anchor of their own."""
        names = self._named.get(document)
        if names is None:
            names = self._named[document] = {}
            for name, place in self._walk_names(self._trees[document], document, document):
                names.setdefault(name, place)
        return names

    def _walk_names(self, tree: Json, base: str, document: str) -> Iterator[tuple[str, LocatedSchema]]:
        pending = [(tree, base)]
        while pending:
            item, base = pending.pop()
            if isinstance(item, dict):
                own = self._id_of(item)
                base = self.base_of(item, base)
                if own is not None and item is not tree:
                    yield resolve(base, own) if own.startswith("#") else base, LocatedSchema(item, base, document)
                for keyword in _ANCHORS:
                    if isinstance(anchor := item.get(keyword), str):
                        yield f"{base.partition('#')[0]}#{anchor}", LocatedSchema(item, base, document)
                pending.extend((child, base) for child in item.values())
            elif isinstance(item, list):
                pending.extend((child, base) for child in item)


def _walk(documents: Documents, place: LocatedSchema, fragment: str) -> LocatedSchema | None:
    """Follow a JSON pointer; return None if it has no target."""
    if fragment and not fragment.startswith("/"):
        return None
    tree, base, document = place
    for token in fragment.split("/")[1:]:
        key = unquote(token).replace("~1", "/").replace("~0", "~")
        if isinstance(tree, dict) and key in tree:
            tree = tree[key]
        elif isinstance(tree, list) and key.isdecimal() and int(key) < len(tree):
            tree = tree[int(key)]
        else:
            return None
        base = documents.base_of(tree, base)
    return LocatedSchema(tree, base, document)


def bridged(tree: Json) -> Json:
    """Return the schema with `definitions` also under `$defs`, as in Confluent's registry."""
    if not isinstance(tree, dict):
        return tree
    old, new = tree.get("definitions"), tree.get("$defs", {})
    if not isinstance(old, dict) or not isinstance(new, dict) or not old:
        return tree
    return tree | {"$defs": old | new}


def _draft(uri: str) -> Json | None:
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    for candidate in (uri, f"{uri}#", uri.replace("https://", "http://"), uri.replace("http://", "https://")):
        if candidate in REGISTRY:
            return REGISTRY.contents(candidate)
    return None
