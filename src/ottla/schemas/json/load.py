"""JSON → nodes: the meaning of each keyword, by the rules of the libraries that Confluent's registry uses.

Only parts that are used are checked: unused definitions may contain anything. Referenced schemas are read one after the
other, not one inside the other, so that a long chain of them does not recurse deeply.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model import limits
from ottla.schemas.jackson import Json, in_order, write
from ottla.schemas.json import keywords
from ottla.schemas.json.dialects import NUMBER_KEYWORDS, Dialect
from ottla.schemas.json.documents import Documents, LocatedSchema
from ottla.schemas.json.fingerprint import fingerprint
from ottla.schemas.json.nodes import (
    Always,
    Anything,
    BooleanNode,
    Combined,
    Conditional,
    Constant,
    EnumNode,
    JsonNode,
    Never,
    Not,
    NullNode,
    NumberNode,
    ReferenceNode,
)
from ottla.schemas.schema import InvalidSchema

_CRITERIA = ("allOf", "anyOf", "oneOf")
_CONDITIONS = ("if", "then", "else")
_TABLES = ("properties", "patternProperties")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def load(documents: Documents, dialect: Dialect) -> JsonNode:
    """Return the schema as a node, with all schemas that it refers to. Raises InvalidSchema."""
    return _Loader(documents, dialect).everything()


class _Loader:
    def __init__(self, documents: Documents, dialect: Dialect) -> None:
        self._documents = documents
        self._dialect = dialect
        self._targets: dict[str, JsonNode] = {}
        self._links: list[ReferenceNode] = []
        self._pending: list[tuple[str, LocatedSchema]] = []
        self._asked: dict[str, None] = {}
        self._count = 0

    def everything(self) -> JsonNode:
        document = self._documents.base.partition("#")[0]
        root = self.schema(LocatedSchema(self._documents.root, self._documents.base, document), "#")
        while self._pending:
            pointer, place = self._pending.pop()
            self._targets[pointer] = self.schema(place, pointer)
        for link in self._links:
            link.target = self._followed(link.pointer)
        return root

    def _followed(self, pointer: str) -> JsonNode:
        """Return the final target of a link: links to links are followed, unless they lead back."""
        node: JsonNode = self._targets[pointer]
        seen = {pointer}
        while isinstance(node, ReferenceNode) and node.pointer not in seen:
            seen.add(node.pointer)
            node = self._targets[node.pointer]
        return Anything() if isinstance(node, ReferenceNode) else node

    def schema(self, place: LocatedSchema, where: str) -> JsonNode:
        tree = place.tree
        self._count += 1
        if self._count > limits.SCHEMA_PAIRS_MAX:
            raise InvalidSchema("the schema has too many parts")
        if isinstance(tree, bool):
            return Always() if tree else Never()
        if not isinstance(tree, dict):
            raise InvalidSchema(f"expected a schema (an object or a boolean) at {where}")
        place = place._replace(base=self._documents.base_of(tree, place.base))
        part = keywords.KeywordPart(tree, where, lambda child, at: self.schema(place._replace(tree=child), at))
        parts = self._parts(place, part)
        if not parts:
            node: JsonNode = Anything()
        elif len(parts) == 1:
            (node,) = parts
        else:
            node = Combined(criterion="allOf", parts=parts)
        self._carry(node, part)
        node.mark = fingerprint(node)
        return node

    def _parts(self, place: LocatedSchema, part: keywords.KeywordPart) -> list[JsonNode]:
        parts: list[JsonNode] = [self._link(place, part, key) for key in self._references(part.tree)]
        if parts and not self._dialect.modern:
            return parts  # keywords beside a $ref are ignored
        if "enum" in part.tree:
            parts.append(EnumNode(values=frozenset(map(_as_text, part.array("enum")))))
        parts += [Combined(criterion=key, parts=part.schemas(key)) for key in _CRITERIA if key in part.tree]
        if "not" in part.tree:
            parts.append(Not(node=part.schema("not")))
        if self._dialect.has_const and "const" in part.tree:
            parts.append(Constant(value=_as_text(part.tree["const"])))
        used: set[str] = set()
        if "type" in part.tree:
            parts.append(self._typed(part, used))
        return parts + self._untyped(part, used)

    def _references(self, tree: dict[str, Json]) -> list[str]:
        return [key for key in (_REFERENCES if self._dialect.modern else _REFERENCES[:1]) if key in tree]

    def _link(self, place: LocatedSchema, part: keywords.KeywordPart, key: str) -> ReferenceNode:
        pointer, target = self._documents.find(place, part.text(key))
        if pointer not in self._asked:
            self._asked[pointer] = None
            self._pending.append((pointer, target))
        link = ReferenceNode(pointer=pointer)
        self._links.append(link)
        return link

    def _typed(self, part: keywords.KeywordPart, used: set[str]) -> JsonNode:
        names = part.tree["type"]
        if isinstance(names, str):
            return self._of_type(names, part, used)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidSchema(f"type is neither a string nor an array of strings at {part.where}")
        return Combined(criterion="anyOf", parts=[self._of_type(name, part, used) for name in names])

    def _of_type(self, name: str, part: keywords.KeywordPart, used: set[str]) -> JsonNode:
        if name == "boolean":
            return BooleanNode()
        if name == "null":
            return NullNode()
        for names, known, build in self._kinds():
            if name in names:
                used.update(known)
                node = build(part, self._dialect)
                if isinstance(node, NumberNode):
                    node.integer = name == "integer"
                return node
        raise InvalidSchema(f"unknown type: [{name}] at {part.where}")

    def _untyped(self, part: keywords.KeywordPart, used: set[str]) -> list[JsonNode]:
        """Return nodes for keywords of types that the schema does not name: they hold for values of those types."""
        nodes: list[JsonNode] = [
            build(part, self._dialect)
            for _, known, build in self._kinds()
            if any(key not in used and self._says_something(part.tree, key) for key in known)
        ]
        if self._dialect.has_conditions and any(key in part.tree for key in _CONDITIONS):
            for key in _CONDITIONS:
                if key in part.tree:
                    part.schema(key)
            nodes.append(Conditional())
        return nodes

    def _says_something(self, tree: dict[str, Json], key: str) -> bool:
        """Return whether a keyword has an effect. Modern drafts are read property by property, so an empty table has
        none.
        """
        return key in tree and not (self._dialect.modern and key in _TABLES and tree[key] == {})

    def _kinds(
        self,
    ) -> list[tuple[tuple[str, ...], tuple[str, ...], Callable[[keywords.KeywordPart, Dialect], JsonNode]]]:
        return [
            (("array",), self._dialect.array_keywords, keywords.sequence),
            (("object",), self._dialect.object_keywords, keywords.record),
            (("number", "integer"), tuple(NUMBER_KEYWORDS), keywords.number),
            (("string",), self._dialect.text_keywords, keywords.text),
        ]

    def _carry(self, node: JsonNode, part: keywords.KeywordPart) -> None:
        tree = part.tree
        node.id = part.optional_text(self._dialect.id_keyword)
        node.title = part.optional_text("title")
        node.description = part.optional_text("description")
        node.connect_type = tree.get("connect.type")
        if "default" in tree and not (self._dialect.modern and tree["default"] is None):
            node.has_default, node.default = True, tree["default"]


def _as_text(value: Json) -> str:
    return write(in_order(value))
