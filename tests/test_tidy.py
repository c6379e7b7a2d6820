"""Style as a unit test: what linters cannot say."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "ottla"
TESTS = ROOT / "tests"
LIMITS = SOURCE / "model" / "limits"
MODULES = sorted(SOURCE.rglob("*.py"))
PYTHON = sorted([*MODULES, *(path for part in ("tests", "bench", "scripts") for path in (ROOT / part).rglob("*.py"))])

MODULE_LINES_MAX = 500
FOLDER_MODULES_MAX = 25
FUNCTION_LINES_MAX = 60
# Folders of tests that test no folder of the source: whole nodes and clusters, and what tests themselves rely on.
ACROSS = ("compat", "faults", "stalls", "support")
BANNED_NAMES = re.compile(r"(Manager|Helper|Utils?|Impl|Base)$|^Abstract")
BANNED_MODULES = {"utils", "util", "helpers", "common", "misc", "base"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def test_no_module_is_too_long() -> None:
    long = {name_of(path): lines for path in PYTHON if (lines := len(path.read_text().splitlines())) > MODULE_LINES_MAX}
    assert not long


def test_no_folder_has_too_many_modules() -> None:
    modules = Counter(path.parent for path in PYTHON if path.name != "__init__.py")
    assert not {name_of(folder): count for folder, count in modules.items() if count > FOLDER_MODULES_MAX}


def test_tests_have_the_folders_of_the_source() -> None:
    """A folder of tests is named after the folder that it tests, unless it tests several at once."""
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path()}
    mirrored = [folder for folder in folders if folder.parts[0] not in ACROSS]
    assert len(mirrored) > 50
    assert not sorted(str(folder) for folder in mirrored if not (SOURCE / folder).is_dir())


def test_no_import_cycle() -> None:
    """Imports for types only and imports inside functions count."""
    imports = grimp.build_graph("ottla", cache_dir=None)
    imported = {module: imports.find_modules_directly_imported_by(module) for module in imports.modules}
    while True:  # what imports nothing of the rest, or is imported by nothing of it, is in no cycle
        left = {other for others in imported.values() for other in others}.intersection(
            module for module, others in imported.items() if others
        )
        if len(left) == len(imported):
            break
        imported = {module: imported[module] & left for module in left}
    assert not sorted(left)


def test_no_two_classes_have_one_name() -> None:
    """The messages of the wire have Kafka's names, and classes that begin with _ are known in their module only."""
    names = Counter(
        node.name
        for path in MODULES
        if not path.is_relative_to(SOURCE / "wire")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, count in names.items() if count > 1]


def test_no_function_is_too_long() -> None:
    long = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    long.append(f"{name_of(path)}:{node.lineno} {node.name} has {lines} lines")
    assert not long


def test_every_module_says_what_it_owns() -> None:
    silent = [name_of(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))]
    assert not silent


def test_names_explain_themselves() -> None:
    vague = [name_of(path) for path in MODULES if path.stem in BANNED_MODULES]
    for path in MODULES:
        vague += [
            f"{name_of(path)}:{node.lineno} {node.name}"
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ClassDef) and BANNED_NAMES.search(node.name)
        ]
    assert not vague


def test_nothing_is_left_for_later_in_the_source() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [
        f"{name_of(path)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if marks.search(line)
    ]
    assert not found


def test_handler_file_is_named_after_its_api() -> None:
    from ottla.server.api import dispatch
    from ottla.wire.api import snake

    dispatch.load_handlers()
    files = {path.stem for path in (SOURCE / "server" / "handlers").rglob("*.py")} - {"__init__"}
    assert files == {snake(endpoint.name) for endpoint in dispatch.ENDPOINTS.values()}
    for endpoint in dispatch.ENDPOINTS.values():
        assert endpoint.handler.__module__.endswith(f".{snake(endpoint.name)}")
        assert endpoint.handler.__name__ == snake(endpoint.name)


def test_every_module_is_reachable() -> None:
    """A module nobody imports is dead, unless it is found by name (messages, handlers) or run."""
    by_name = (
        "wire/messages/",
        "server/handlers/",
        "server/api/guard/",
        "registry/routes/",
        "console/pages/",
        "__main__.py",
        "__init__.py",
        "testing/plugin.py",
        "wire/show.py",
    )
    text = "\n".join(path.read_text() for path in PYTHON)
    reached = set(re.findall(r"\bimport (ottla[\w.]*)|['\"](ottla[\w.]*)['\":]", text))
    named = {name for pair in reached for name in pair}
    for package, names in re.findall(r"\bfrom (ottla[\w.]*) import (\([^)]*\)|[^\n]*)", text):
        named |= {package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))}
    dead = []
    for path in MODULES:
        relative = str(path.relative_to(SOURCE))
        if any(mark in relative for mark in by_name):
            continue
        dotted = "ottla." + relative.removesuffix(".py").replace("/", ".")
        if dotted not in named:
            dead.append(relative)
    assert not dead


def limits_by_name() -> Counter[str]:
    return Counter(
        name for path in LIMITS.glob("*.py") for name in re.findall(r"^([A-Z0-9_]+) =", path.read_text(), re.MULTILINE)
    )


def test_every_limit_is_used() -> None:
    names = limits_by_name()
    words = Counter(word for path in MODULES for word in re.findall(r"\w+", path.read_text()))
    assert len(names) > 200
    assert not [name for name in names if words[name] < 2]


def test_every_limit_has_one_place_and_is_read_from_the_package() -> None:
    assert not [name for name, count in limits_by_name().items() if count > 1]
    reached = re.compile(r"^\s*(from|import) ottla\.model\.limits\.", re.MULTILINE)
    assert not [path for path in PYTHON if path.parent != LIMITS and reached.search(path.read_text())]


@pytest.mark.parametrize("command", ["make run", "make test"])
def test_readme_promises_the_two_commands(command: str) -> None:
    assert command in (ROOT / "README.md").read_text()


def test_no_machine_path_and_no_registry_in_the_repository() -> None:
    # Spelled in pieces so that this file does not find itself.
    places = [f"{ROOT}/", f"{Path.home()}/"]
    if ROOT.parent not in (Path(tempfile.gettempdir()), Path("/tmp")):
        places.append(f"{ROOT.parent}/")
    hosts = re.compile("pypi" + r"\.org|maven" + r"\.org|npmjs" + r"\.org|deb\." + "debian")
    found = []
    for path in tracked_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if any(place in text for place in places if len(place) > 2) or hosts.search(text):
            found.append(name_of(path))
    assert not found


def test_importing_the_package_is_cheap() -> None:
    """Counts modules, not seconds: the wire package must not pull in every message."""
    script = "import sys, ottla.wire.api; print(sum(name.startswith('ottla.wire.messages.') for name in sys.modules))"
    counted = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(counted.stdout) == 0


def test_generated_pages_are_fresh() -> None:
    from scripts.docs import stale

    assert not stale(), "run `make docs`"


def test_few_results_do_not_empty_the_page_of_compatibility(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scripts import compatibility

    page, results = tmp_path / "page.md", tmp_path / "results.json"
    places = [f"<!-- {name}: generated -->\n<!-- {name}: end -->\n" for name in ("clients", "tools", "security")]
    page.write_text("".join(places))
    monkeypatch.setattr(compatibility, "PAGE", page)
    monkeypatch.setattr(compatibility, "RESULTS", results)
    assert compatibility.update() is None, "without results there is nothing to say"
    java = {"topics": "passed", "configs": "failed", "security: PLAIN": "passed"}
    whole = {"java 4.3.1": java, "ottla": {"security: PLAIN": "failed"}, "kafka-topics": {"tool": "passed"}}
    for found, told in ((whole, "wrote"), (whole, None), ({"kafka-topics": {"tool": "passed"}}, "it shows 5 results")):
        results.write_text(json.dumps(found))
        said = compatibility.update()
        assert (said is None) if told is None else (said is not None and told in said)
        assert "| topics | ✓ |" in page.read_text()
        assert "| | PLAIN |\n|---|:-:|\n| java 4.3.1 | ✓ |\n| ottla | ✗ |\n" in page.read_text()


def test_the_schedule_names_files_that_exist() -> None:
    from tests.support.runs.schedule import SECONDS, SPARK

    assert not [name for name in SECONDS if name != SPARK and not (ROOT / name).is_file()]


# In backticks: a file of the repository, with or without its folders, or a folder. `<api>` stands for any name.
NAMED_PATH = re.compile(r"`((?:[\w.<>-]+/)*(?:[\w<>-]+\.(?:py|toml|md)|[a-z_<>]+/))`")
# Folders and files that pages name and that are made when something runs.
MADE = {"ottla-spark/"}


def exists(path: str, files: str, below: str = "") -> bool:
    """Whether a path that a page names is the end of a real one, or a folder in it. `files` has a line for each."""
    pattern = re.sub(r"<\w+>", r"[a-z]\\w*", re.escape(path))
    return re.search(f"^{below}(.*/)?{pattern}{'' if path.endswith('/') else '$'}", files, re.MULTILINE) is not None


def test_pages_name_files_that_exist() -> None:
    files = "\n".join(map(name_of, tracked_files()))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {(name_of(page), path) for page in pages for path in NAMED_PATH.findall(page.read_text())}
    assert len(named) > 150 and ("ARCHITECTURE.md", "leader_election.py") in named
    assert not sorted((page, path) for page, path in named if path not in MADE and not exists(path, files))


def test_the_map_names_modules_of_the_package_that_a_row_is_about() -> None:
    """In the tables of packages and rooms, a name without folders is a module, or a folder, of that package."""
    files = "\n".join(map(name_of, tracked_files()))
    packages, rooms = (ROOT / "ARCHITECTURE.md").read_text().split("## The rooms of the server")
    owned = [
        ([parent + owner for owner in re.findall(r"`([a-z_/]+/)`", first)], NAMED_PATH.findall(rest))
        for parent, text in (("src/ottla/", packages), ("src/ottla/server/", rooms))
        for first, rest in re.findall(r"^\| (`[^|]+/`) \|(.*)$", text, re.MULTILINE)
    ]
    assert len(owned) > 35
    assert not [
        (owners, path)
        for owners, paths in owned
        for path in paths
        if "/" not in path.removesuffix("/") and not any(exists(path, files, owner) for owner in owners)
    ]


def test_classifiers_name_pythons_that_are_tried() -> None:
    """`make test-pythons` tries every Python that it finds; the package claims no other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    script = (ROOT / "scripts" / "test-pythons").read_text()
    tried = re.findall(r"3\.\d+", script.partition('VERSIONS="')[2].partition('"')[0])
    assert claimed and set(claimed) <= set(tried)
    assert project["requires-python"] == f">={claimed[0]}"
