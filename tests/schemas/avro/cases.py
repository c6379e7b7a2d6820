"""Schemas worth a look: what is awkward to write back, and what is no schema."""

from __future__ import annotations


def _record(*fields: str, name: str = "R", more: str = "") -> str:
    return f'{{"type":"record","name":"{name}","fields":[{",".join(fields)}]{more}}}'


# Valid, and spelt in a way that has to change, or must not.
TEXTS = [
    '"string"',
    '{"type":"string"}',
    '{"type":"string","doc":"dropped","logicalType":"unknown","nothing":null}',
    "[]",
    '/* why */ {"type":"int" // because\n}',
    '{"type":"array","items":{"type":"map","values":["null","long"]},"java-class":"x"}',
    '{"type":"record","name":".R","fields":[]}',
    '{"type":"record","name":"a.int","fields":[{"name":"f","type":["null","a.int"]}]}',
    '{"type":"record","name":"a.record","fields":[{"name":"f","type":["null","a.record"]}]}',
    '{"type":"error","name":"x.A","fields":[],"default":3,"x":{"b":1.50,"a":[1e2]}}',
    '{"type":"record","name":"A","doc":5,"fields":[],"namespace":7}',
    '{"type":"record","name":"a.R","aliases":["x","b.y",".z","a.w","x"],"fields":[]}',
    '{"type":"enum","name":"E","symbols":[]}',
    '{"type":"enum","name":"E","symbols":["A","B"],"default":"B","doc":"d","p":1}',
    '{"type":"enum","name":"E","symbols":["A"],"default":1}',
    '{"type":"fixed","name":"n.F","size":16,"logicalType":"duration","aliases":["G"]}',
    # used before it is defined, and defined twice with the same meaning
    '[{"type":"record","name":"A","fields":[{"name":"b","type":"B"}]},{"type":"record","name":"B","fields":[]}]',
    '[{"type":"record","name":"A","fields":[]},{"type":"record","name":"x.B","fields":[{"name":"a","type":"A"}]}]',
    _record(
        '{"name":"e","type":{"type":"enum","name":"E","symbols":["X"]}}',
        '{"name":"f","type":{"type":"enum","name":"E","symbols":["X"],"doc":"again"}}',
        name="x.A",
    ),
    _record(
        '{"name":"e","type":{"type":"enum","name":"E","namespace":"","symbols":["X"]}}',
        '{"name":"f","type":"E"}',
        name="x.A",
    ),
    # fields
    _record('{"name":"a","type":"int","order":"DESCENDING"}', '{"name":"b","type":"int","order":"ascending","z":1}'),
    _record('{"name":"a","type":"int","aliases":["1x","y","y"],"default":1,"doc":"d","order":"ignore","p":{}}'),
    _record('{"name":"a","type":{"type":"R"}}'),
    # defaults
    _record('{"name":"a","type":["null","int"],"default":5}'),
    _record('{"name":"a","type":"double","default":"NaN"}', '{"name":"b","type":"float","default":"1"}'),
    _record('{"name":"a","type":"float","default":1e400}', '{"name":"b","type":"double","default":-0.0}'),
    _record('{"name":"a","type":"double","default":12345678.9}', '{"name":"b","type":"double","default":0.00012}'),
    _record('{"name":"a","type":"bytes","default":"\\u00ff\\u0001é\\"\\\\/\\u007f"}'),
    _record('{"name":"a","type":' + _record('{"name":"x","type":"int","default":1}', name="S") + ',"default":{}}'),
]

# Not schemas, with what has to be said about them.
INVALID = [
    ("", "not JSON"),
    ("string", "not JSON"),
    ('"int" x', "not JSON"),
    ('"foo"', "Undefined schema: foo"),
    ("1", "not a schema: 1"),
    ("null", "not a schema: null"),
    ('{"type":{"type":"string"}}', "No type"),
    ('["null","null"]', "Duplicate in union: null"),
    ('["int",{"type":"int","x":1}]', "Duplicate in union: int"),
    ('["null",["int"]]', "Nested union"),
    ('{"type":"record","name":"R"}', "Record has no fields"),
    ('{"type":"record","fields":[]}', "No name in schema"),
    ('{"type":"record","name":"1R","fields":[]}', "Illegal initial character: 1R at /"),
    ('{"type":"record","name":"R-","fields":[]}', "Illegal character in: R-"),
    ('{"type":"record","name":"Ré","fields":[]}', "Illegal character in: Ré"),
    ('{"type":"record","name":"","fields":[]}', "Empty name"),
    ('{"type":"record","name":"a..R","fields":[]}', "Empty name"),
    ('{"type":"record","name":"R","namespace":"a-b","fields":[]}', "Illegal character in: a-b"),
    ('{"type":"record","name":"int","fields":[]}', "may not be named after primitives: int"),
    ('{"type":"record","name":"R","aliases":["1x"],"fields":[]}', "Illegal initial character: 1x at /"),
    (_record('{"name":"a","type":"int"}', '{"name":"a","type":"int"}'), "Duplicate field a in record R at /fields/1"),
    (_record('{"name":"a"}'), 'No field type: {"name":"a"} at /fields/0'),
    (_record('{"type":"int"}'), "No field name"),
    (_record('"a"'), "No field name"),
    (_record('{"name":"a","type":"B"}'), "Undefined schema: B at /fields/0/type"),
    (_record('{"name":"a","type":"int","order":"up"}'), 'the order "up" is none of'),
    (_record('{"name":"a","type":"int","aliases":"x"}'), "aliases not an array"),
    (_record('{"name":"a","type":"int","aliases":[1]}'), "alias not a string: 1"),
    (_record('{"name":"a","type":"int","default":"x"}'), 'Invalid default for field a: "x" not a "int" at /fields/0'),
    (_record('{"name":"a","type":"int","default":1.0}'), "Invalid default for field a: 1.0"),
    (_record('{"name":"a","type":"int","default":true}'), "Invalid default for field a: true"),
    (_record('{"name":"a","type":"int","default":2147483648}'), "Invalid default for field a: 2147483648"),
    (_record('{"name":"a","type":"long","default":9223372036854775808}'), "Invalid default"),
    (_record('{"name":"a","type":["null","int"],"default":"x"}'), "Invalid default"),
    (_record('{"name":"a","type":"double","default":"abc"}'), "is no number"),
    (_record('{"name":"a","type":"R","default":{}}'), "Invalid default for field a: {}"),
    ('{"type":"enum","name":"E"}', "Enum has no symbols"),
    ('{"type":"enum","name":"E","symbols":["A","A"]}', "Duplicate enum symbol: A"),
    ('{"type":"enum","name":"E","symbols":["A","1"]}', "Illegal initial character: 1 at /symbols/1"),
    ('{"type":"enum","name":"E","symbols":["A",1]}', "Null name"),
    ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "The Enum Default: B is not in the enum symbol set"),
    ('{"type":"fixed","name":"F"}', "Invalid or no size"),
    ('{"type":"fixed","name":"F","size":-1}', "Invalid or no size"),
    ('{"type":"fixed","name":"F","size":1.0}', "Invalid or no size"),
    ('{"type":"fixed","name":"F","size":3000000000}', "Invalid or no size"),
    ('{"type":"array"}', "Array has no items type"),
    ('{"type":"map","values":null}', "not a schema: null at /values"),
    (
        _record(
            '{"name":"e","type":{"type":"enum","name":"E","symbols":["X"]}}',
            '{"name":"f","type":{"type":"enum","name":"E","symbols":["Y"]}}',
        ),
        "Can't redefine: E at /fields/1/type",
    ),
]
