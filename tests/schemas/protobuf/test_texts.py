"""Texts: the canonical one, the normal one, the one without extensions; and that printing loses nothing."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, given, settings
from tests.schemas.protobuf.generated import ONE_OPTION, files
from tests.schemas.protobuf.sources import proto2, understood

from ottla.schemas.protobuf.elements import Aggregate, ProtoFile, ProtoOption
from ottla.schemas.protobuf.parser import parse_file
from ottla.schemas.protobuf.printer import merged, print_file

ORDERS = """
// Orders of the shop.
syntax = "proto3"; package shop.v1;
import public "google/protobuf/timestamp.proto";
import "google/protobuf/descriptor.proto"; import "confluent/meta.proto";
enum State { NEW = 0; PAID = 1 [deprecated = true]; reserved 5 to 7, 9; reserved "LOST"; }
option java_package = "com.shop"; option (owner) = 'sales "team"';
extend google.protobuf.FileOptions { string owner = 50000; Limits limits = 50001; }
message Limits { int32 high = 1; repeated string words = 2; Limits inner = 3; }
message Order {
  message Line { string sku = 1; int32 count = 2; }
  int64 id = 1 [json_name = "ID", deprecated = true];
  oneof payment { string card = 5; string iban = 4; }
  repeated Line lines = 3;
  map<string,Line> by_sku = 2;
  optional State state = 6;
  reserved 20, 30 to max;
  google.protobuf.Timestamp at = 7 [(confluent.field_meta) = { doc: "when", tags: ["PII"] }];
  enum Kind { A = 0; }
}
service Orders { rpc Place(Order) returns (stream Order);
  rpc Watch (stream Order) returns (Order) { option deprecated = true; } }
"""


def test_canonical_is_laid_out_as_confluents() -> None:
    assert understood(ORDERS).canonical == dedent(
        """\
        syntax = "proto3";
        package shop.v1;

        import "google/protobuf/descriptor.proto";
        import "confluent/meta.proto";
        import public "google/protobuf/timestamp.proto";

        option java_package = "com.shop";
        option (owner) = "sales \\"team\\"";

        message Limits {
          int32 high = 1;
          repeated string words = 2;
          Limits inner = 3;
        }
        message Order {
          reserved 20, 30 to max;

          int64 id = 1 [
            deprecated = true,
            json_name = "ID"
          ];
          repeated Line lines = 3;
          map<string, Line> by_sku = 2;
          optional State state = 6;
          google.protobuf.Timestamp at = 7 [(confluent.field_meta) = {
            doc: "when",
            tags: [
              "PII"
            ]
          }];

          oneof payment {
            string card = 5;
            string iban = 4;
          }

          message Line {
            string sku = 1;
            int32 count = 2;
          }
          enum Kind {
            A = 0;
          }
        }
        enum State {
          reserved 5 to 7, 9;
          reserved "LOST";
          NEW = 0;
          PAID = 1 [deprecated = true];
        }

        extend google.protobuf.FileOptions {
          string owner = 50000;
          Limits limits = 50001;
        }

        service Orders {
          rpc Place (Order) returns (stream Order);
          rpc Watch (stream Order) returns (Order) {
            option deprecated = true;
          };
        }
        """
    )


def test_normalized_has_full_names_and_one_order() -> None:
    text = understood(ORDERS).normalized
    assert text.startswith(
        dedent(
            """\
            syntax = "proto3";
            package shop.v1;

            import "confluent/meta.proto";
            import "google/protobuf/descriptor.proto";
            import public "google/protobuf/timestamp.proto";

            option java_package = "com.shop";
            option (shop.v1.owner) = "sales \\"team\\"";
            """
        )
    )
    order = text[text.index("message Order") : text.index("enum State")]
    assert order == dedent(
        """\
        message Order {
          reserved 20;
          reserved 30 to max;

          int64 id = 1 [
            deprecated = true,
            json_name = "ID"
          ];
          map<string, .shop.v1.Order.Line> by_sku = 2;
          repeated .shop.v1.Order.Line lines = 3;
          optional .shop.v1.State state = 6;
          .google.protobuf.Timestamp at = 7 [(confluent.field_meta) = {
            doc: "when",
            tags: "PII"
          }];

          oneof payment {
            string iban = 4;
            string card = 5;
          }

          message Line {
            string sku = 1;
            int32 count = 2;
          }
          enum Kind {
            A = 0;
          }
        }
        """
    )


def test_normalized_is_the_same_for_all_spellings() -> None:
    schema = understood(ORDERS)
    descriptor = understood(schema.serialized)
    assert understood(schema.canonical).normalized == schema.normalized
    assert understood(schema.normalized).normalized == schema.normalized
    # A descriptor has messages of map entries where a text has maps, and full names.
    assert "option map_entry = true;" in descriptor.canonical
    assert descriptor.normalized == schema.normalized
    again = understood(descriptor.canonical)
    assert (again.canonical, again.normalized) == (descriptor.canonical, schema.normalized)


def test_dotted_options_become_messages_and_are_merged() -> None:
    head = 'syntax = "proto2"; package p; import "google/protobuf/descriptor.proto";'
    rich = """message Rich { optional int32 a = 1; repeated int32 n = 2; optional Rich in = 3; optional double d = 4; }
      extend google.protobuf.MessageOptions { optional Rich rich = 50000; repeated string tag = 50001; }"""
    one = """message M { option (rich).n = 0x10; option (p.rich).in.a = 2; option (rich).in.d = 1.50;
      option (tag) = "x"; option (rich).n = 17; option (tag) = "y"; }"""
    two = 'message M { option (tag) = "x"; option (tag) = "y"; option (.p.rich) = {n: [16, 17] in {d: 15e-1, a: 2}}; }'
    text = understood(head + rich + one).normalized
    assert text == understood(head + rich + two).normalized
    assert (
        "(p.rich) = {\n    in: {\n      a: 2,\n      d: 1.5\n    },\n    n: [\n      16,\n      17\n    ]\n  };" in text
    )


def test_without_extensions_only_what_everybody_understands_is_left() -> None:
    text = understood(ORDERS).formatted("ignore_extensions")
    assert "owner" not in text
    assert "extend" not in text
    assert "(confluent.field_meta)" in text
    assert understood(text).message_indexes("shop.v1.Order") == (1,)
    assert understood(ORDERS).formatted("unheard-of") == understood(ORDERS).canonical


def test_groups_extensions_and_defaults_are_printed() -> None:
    text = dedent(
        """\
        syntax = "proto2";

        message M {
          optional string s = 1 [default = "a\\n\\"b\\" \\\\ é"];
          optional bytes b = 2 [default = "\\000\\377"];

          oneof o {
            int32 i = 3;

            group G = 4 {
              required int32 g = 1;
            }
          }

          repeated group H = 5 {
            optional int32 h = 1;
          }

          extensions 100 to 200, 300;

          extend M {
            optional int32 e = 100;
          }
        }
        """
    )
    lines = [line.rstrip() for line in understood(text).canonical.splitlines()]
    assert lines == text.splitlines()
    descriptor = proto2(text.split("\n", 1)[1]).serialized
    assert [line.rstrip() for line in understood(descriptor).canonical.splitlines() if "json_name" not in line][
        1:4
    ] == [
        "message M {",
        *lines[3:5],
    ]


@given(ONE_OPTION)
def test_printing_an_option_loses_nothing(option: ProtoOption) -> None:
    file = ProtoFile(options=(option,))
    assert parse_file(print_file(file)) == file


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(files())
def test_printing_a_file_loses_nothing(file: ProtoFile) -> None:
    assert parse_file(print_file(file)) == file


@pytest.mark.parametrize("between", [" ", "\n\t", "/* } */", "// {\n", "/**/"])
def test_whitespace_and_comments_do_not_matter(between: str) -> None:
    text = understood(ORDERS).canonical
    spaced = re.sub(r"[]{}[;=<>(),]", lambda found: between + found.group() + between, text)
    assert parse_file(spaced) == parse_file(text)


def test_tags_are_found_however_they_are_written() -> None:
    schema = understood(
        """syntax = "proto3"; package p; import "confluent/meta.proto";
        message M {
          option (confluent.message_meta).tags = "SECRET";
          string a = 1 [(confluent.field_meta) = { doc: "x", tags: ["PII", "GDPR", "PII"] }];
          message N { oneof o { string b = 2 [(.confluent.field_meta).tags = "PII"]; } string c = 3; }
        }"""
    )
    expected = [("M", False, ("SECRET",)), ("M.a", True, ("PII", "GDPR")), ("M.N.b", True, ("PII",))]
    assert schema.tags == understood(schema.serialized).tags == expected


def test_options_that_are_set_very_often_are_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value is looked at some times at most, however many there are under one name."""
    count = 300
    fields = " ".join(f"int32 f{number} = {number + 10};" for number in range(count))
    head = f"""syntax = "proto3"; import "google/protobuf/descriptor.proto";
      extend google.protobuf.FileOptions {{ Limits limits = 50001; }}
      message Limits {{ repeated int32 words = 1; Limits inner = 2; {fields} }}
    """
    looked_at = 0

    def counting(value: Aggregate) -> Aggregate:
        nonlocal looked_at
        looked_at += len(value.entries)
        return merged(value)

    monkeypatch.setattr("ottla.schemas.protobuf.normalizing.merged", counting)
    for path in ("words", "inner.words", "f{0}", "inner.inner.f{0}"):
        looked_at = 0
        options = [f"option (limits).{path.format(number)} = {7000 + number};" for number in range(count)]
        text = understood(head + "\n".join(options)).normalized
        assert all(f" {7000 + number}" in text for number in range(count))
        assert looked_at <= 20 * count
