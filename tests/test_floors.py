"""The house: a room imports from rooms below it only, lazy imports counted; kernels document their parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "f5py"
#: From the roof down. Rooms of one floor do not import from each other.
FLOORS = (
    ("__main__",),
    ("cli",),
    ("api",),
    ("commands",),
    ("runs",),
    ("mapping",),
    ("reports",),
    ("outputs", "plotting", "simulation"),
    ("pipeline",),
    ("compute",),
    ("site_frequencies", "training"),
    ("evaluation", "comparison"),
    ("signal", "abea", "methylation", "event_alignment"),
    ("io",),
    ("text", "pore_model"),
    ("core",),
    ("jit",),
    ("threads", "options", "messages"),
    ("errors",),
    ("__version__",),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
MODULES = sorted(PACKAGE.rglob("*.py"))
KERNELS = PACKAGE.parent / "kernels"
KERNEL_DECORATORS = {"kernel", "exact_kernel"}
COMPILED = {*KERNEL_DECORATORS, "inner", "exact_inner"}
#: Names of objects that are filled from outside: records of a run's stages, errors, variables of threads, and what
#: other packages and the interpreter want to have set.
RECORDS = {
    "batch", "chosen", "counts", "job", "lane", "part", "result", "stretch", "task", "times", "timing",
    "death", "problem", "_current", "_of_thread", "_thread",
    "called", "fallocate", "found[0]", "signal", "sys", "tempfile", "wrong", "zlibVersion",
}  # fmt: skip
PARAMETERS_SECTION = re.compile(r"^Parameters\n-{10}\n(.*?)(?:^\w+\n-{3,}\n|\Z)", re.MULTILINE | re.DOTALL)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


#: What the mapper imports from the rest.
MAPPING_NEEDS = {"compute", "core", "errors", "io", "jit", "messages", "options", "reports", "text", "threads"}
#: Wings of io in order: none imports a later one.
IO_WINGS = ("bytes", "files", "remote", "arrow", "reads", "bam", "sequences", "signals")


def imported_rooms(tree: ast.AST) -> set[str]:
    """Rooms that a module imports from, at its top or inside of functions."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            if node.module == "f5py":
                names |= {f"f5py.{alias.name}" for alias in node.names}
            else:
                names.add(node.module or "")
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("f5py.")}


def test_every_room_has_its_floor():
    assert {room_of(path) for path in MODULES} - {"__init__"} <= FLOOR_OF.keys()


def test_imports_go_down():
    upwards = [
        f"{path.relative_to(PACKAGE)} imports from {other}"
        for path in MODULES
        if (room := room_of(path)) != "__init__"
        for other in imported_rooms(ast.parse(path.read_text())) - {room}
        if FLOOR_OF[other] <= FLOOR_OF[room]
    ]
    assert upwards == []


def test_the_mapper_has_one_door():
    """Other rooms import `f5py.mapping` only, and it imports from few of them."""
    trees = {path: ast.parse(path.read_text()) for path in MODULES}
    inside = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path, tree in trees.items()
        if room_of(path) != "mapping"
        for name in _imported(path, {_name_of(path): path for path in MODULES})
        if name.startswith("f5py.mapping.")
    ]
    assert inside == []
    needed = {room for path, tree in trees.items() if room_of(path) == "mapping" for room in imported_rooms(tree)}
    assert needed - {"mapping"} <= MAPPING_NEEDS


def test_no_two_wings_of_a_room_import_each_other():
    """Nor do wings, the folders of a room, in a longer circle."""
    names = {_name_of(path): path for path in MODULES}
    imports: dict[str, set[str]] = {}
    for path in MODULES:
        imports.setdefault(_wing_of(path), set()).update(
            other
            for one in _imported(path, names)
            if (other := _wing_of(names[one])).partition(".")[0] == room_of(path)
        )
    imports = {wing: others - {wing} for wing, others in imports.items() if "." in wing}
    while leaves := {wing for wing, others in imports.items() if not others & imports.keys()}:
        imports = {wing: others for wing, others in imports.items() if wing not in leaves}
    in_circles = {wing for wing in imports if any(wing in others for others in imports.values())}
    assert not in_circles


def test_wings_of_io_import_earlier_ones():
    names = {_name_of(path): path for path in MODULES}
    place = {f"io.{wing}": i for i, wing in enumerate(IO_WINGS)}
    assert {_wing_of(path) for path in MODULES if room_of(path) == "io"} == {"io", *place}
    later = [
        f"{path.relative_to(PACKAGE)} imports {one}"
        for path in MODULES
        for one in _imported(path, names)
        if place.get(_wing_of(names[one]), 0) > place.get(_wing_of(path), len(IO_WINGS))
    ]
    assert later == []


def _wing_of(path: Path) -> str:
    """Room and folder of a file; of one that lies in no folder of its room, the room."""
    return ".".join(path.relative_to(PACKAGE).parts[:-1][:2])


def test_no_two_files_import_each_other():
    """Nor do files in a longer circle; imports inside of functions and for type checkers count, not what users get."""
    names = {_name_of(path): path for path in MODULES if path != PACKAGE / "__init__.py"}
    imports = {name: _imported(path, names) - {name} for name, path in names.items()}
    while leaves := {name for name, others in imports.items() if not others & imports.keys()}:
        imports = {name: others for name, others in imports.items() if name not in leaves}
    in_circle = {name for name in imports if any(name in others for others in imports.values())}
    assert not in_circle, "these files, or some of them, import each other"


def _name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path, names: Mapping[str, Path]) -> set[str]:
    """Modules of the package that a file imports; the attribute of a module counts as the module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {
        name for name in found & names.keys() if names[name].name != "__init__.py" or names[name].parent != path.parent
    }


def test_kernels_called_from_python_document_their_parameters():
    """Types in signatures say nothing there: sections have dtypes, shapes and units, and name arguments that exist."""
    trees = {_name_of(path): ast.parse(path.read_text()) for path in MODULES}
    kernels = {
        f"{name}.{node.name}": node
        for name, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and KERNEL_DECORATORS & {ast.unparse(one) for one in node.decorator_list}
    }
    used = {one for name, tree in trees.items() for one in (*_used_names(tree), *_used_at_home(name, tree))}
    called = {name: node for name, node in kernels.items() if name in used and node.args.args}
    assert len(called) > 50
    sections = {name: PARAMETERS_SECTION.search(ast.get_docstring(node) or "") for name, node in called.items()}
    assert [name for name, section in sections.items() if section is None] == [], "no section Parameters"
    unknown = {
        name: wrong
        for name, node in called.items()
        if (section := sections[name]) and (wrong := _documented(section[1]) - {one.arg for one in node.args.args})
    }
    assert unknown == {}, "these are not arguments"


def _used_names(tree: ast.AST) -> set[str]:
    """Dotted names that a module imports, or takes as attributes of modules that it imports."""
    nodes = list(ast.walk(tree))
    places = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    attributes = {
        f"{places[node.value.id]}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in places
    }
    return {*places.values(), *attributes}


def _used_at_home(name: str, tree: ast.Module) -> set[str]:
    """Dotted names of a module's own functions that it uses outside of compiled ones."""
    plain = [node for node in tree.body if not COMPILED & set(map(ast.unparse, getattr(node, "decorator_list", ())))]
    return {f"{name}.{node.id}" for one in plain for node in ast.walk(one) if isinstance(node, ast.Name)}


def test_objects_set_their_own_attributes():
    """Others are given by arguments, or returned. What a function makes itself, and records of data, may be filled."""
    found = {
        f"{_name_of(path)}: {ast.unparse(target)}"
        for path in MODULES
        for function in _functions(ast.parse(path.read_text()))
        for target in _foreign_attributes(function)
    }
    assert sorted(found) == []


def _functions(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Yield the functions and methods of a module, each with those inside of it."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node)
        elif isinstance(node, ast.FunctionDef):
            yield node


def _foreign_attributes(function: ast.FunctionDef) -> Iterator[ast.Attribute]:
    """Yield the attributes set in a function of objects that it has not made, but for `RECORDS`."""
    nodes = list(ast.walk(function))
    made = {"self", "cls"}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made.update(target.id for target in node.targets if isinstance(target, ast.Name))
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not isinstance(node.value, ast.Call):
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else ast.unparse(node.value)
            if owner not in made | RECORDS:
                yield node


def _documented(section: str) -> set[str]:
    """Names that head the entries of a section; `others` stands for those that another kernel has, too."""
    heads = re.findall(r"^(\w.*)$", section, re.MULTILINE)
    # an entry may have several names with a type each: "x : int32; y : float32"
    names = {name for head in heads for part in re.split(r"; ?", head) for name in part.split(" : ")[0].split(", ")}
    return names - {"others"}
