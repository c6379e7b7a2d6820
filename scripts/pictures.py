"""Draw the pictures of README.md: `python -m scripts.pictures architecture`, `… demo FILE`.

The picture of the demo shows a real run: FILE is what `FORCE_COLOR=1 COLUMNS=112 ONCE=1 make run` printed. The picture
of the architecture is drawn from the table below, so that it can be changed without a drawing program.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import NamedTuple

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH = 960


class Row(NamedTuple):
    """One layer of the picture: its name, and its boxes from left to right (title, what is in it)."""

    name: str
    colour: str
    boxes: tuple[tuple[str, str], ...]


ROWS = (
    Row(
        "who uses it",
        "#eef3fb",
        (
            ("Kafka clients and tools", "Java, librdkafka, franz-go, kafkajs …"),
            ("ottla client", "asyncio and blocking, Arrow"),
            ("Spark", "source and sink, pipelines"),
            ("ottla command", "run, look, repair"),
        ),
    ),
    Row(
        "one process per node: the shell",
        "#e6f4ea",
        (
            ("net, security", "TLS, SASL, quotas, tenants"),
            ("api, handlers", "one file per API, guarded"),
            ("fetch, storage", "sendfile, ISR, directories"),
            ("groups, txns, shares", "coordinators"),
            ("quorum", "KRaft, active controller"),
        ),
    ),
    Row(
        "pure machines: no clock, socket, file or thread",
        "#fdf3e1",
        (
            ("log, records", "segments, indexes, compaction"),
            ("replica, raft, cluster", "who leads, who is in sync"),
            ("groups, txns, shares", "decide → records → apply"),
            ("schemas, columns", "Avro, JSON Schema, Protobuf"),
            ("security", "ACLs, SASL, tokens, quotas"),
        ),
    ),
    Row(
        "on disk and beside it",
        "#f6e9ef",
        (
            ("Kafka's own files", "segments, checkpoints, metadata log"),
            ("schema registry", "a process of its own, state in _schemas"),
            ("simulator", "the same code on virtual time, disks, network"),
        ),
    ),
)


def architecture() -> str:
    top, height, gap, margin = 12, 92, 14, 16
    parts = []
    for index, row in enumerate(ROWS):
        y = top + index * (height + gap)
        parts.append(f'<rect x="4" y="{y}" width="{WIDTH - 8}" height="{height}" rx="8" fill="{row.colour}"/>')
        parts.append(f'<text x="{margin}" y="{y + 19}" class="layer">{row.name}</text>')
        wide = (WIDTH - 2 * margin - (len(row.boxes) - 1) * 12) / len(row.boxes)
        for place, (title, text) in enumerate(row.boxes):
            x = margin + place * (wide + 12)
            parts.append(f'<rect x="{x:.0f}" y="{y + 29}" width="{wide:.0f}" height="52" rx="5" class="box"/>')
            middle = x + wide / 2
            parts.append(f'<text x="{middle:.0f}" y="{y + 51}" class="title">{title}</text>')
            parts.append(f'<text x="{middle:.0f}" y="{y + 69}" class="text">{text}</text>')
    whole = top + len(ROWS) * (height + gap)
    style = (
        "text{font-family:Helvetica,Arial,sans-serif;fill:#223}.layer{font-size:12px;fill:#556}"
        ".title{font-size:14px;font-weight:bold;text-anchor:middle}.text{font-size:11px;text-anchor:middle}"
        ".box{fill:#fff;stroke:#b9c3d0}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole}" role="img" '
        f'aria-label="The layers of Ottla"><style>{style}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def screen(recorded: str) -> str:
    """The contents of the terminal at the end, with the last frame of the live table, which the program removes."""
    lines, row, live = [""], 0, True
    for token in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)", recorded):
        if token == "\n":
            row += 1
            if row == len(lines):
                lines.append("")
        elif token == "\x1b[?25h":  # the cursor is shown again: the live table ends
            live = False
        elif token == "\x1b[1A":
            row -= live
        elif token == "\x1b[2K":
            lines[row] = "" if live else lines[row]
        elif token != "\r" and not token.startswith("\x1b[?"):
            lines[row] += token
    return "\n".join(lines).strip("\n")


def demo(recorded: str) -> str:
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=112, file=io.StringIO())
    console.print(Text.from_ansi(screen(recorded)))
    picture = console.export_svg(title="make run ONCE=1")
    return re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", picture, flags=re.DOTALL)  # use the fonts of the reader


def main() -> None:
    match sys.argv[1:]:
        case ["architecture"]:
            (PICTURES / "architecture.svg").write_text(architecture())
        case ["demo", path]:
            (PICTURES / "demo.svg").write_text(demo(Path(path).read_bytes().decode()))
        case _:
            sys.exit(f"usage: {__doc__}")


if __name__ == "__main__":
    main()
