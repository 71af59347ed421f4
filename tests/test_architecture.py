"""What may import what: the borders between the stops of the road, as data.

In     the import statements of every file under src/paceline.
Out    one line per forbidden import: the file, what it imports, what it may.
Never  imports the product: a broken file is judged too.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "paceline"

# What every package may import; the modules among them import nothing of ours.
EVERYWHERE = {"errors", "effects", "__version__"}
# A package may import itself and what stands here.
ANYTHING = {"*"}
MAY_IMPORT = {
    "errors": set(),
    "effects": set(),
    "settings": set(),
    "apimachinery": set(),
    "model": {"apimachinery"},
    "kinds": {"apimachinery", "model"},
    "plan": {"apimachinery", "model"},
    "presentation": {"apimachinery", "model", "kinds"},
    "store": {"apimachinery"},
    "apiserver": {"apimachinery", "model", "store"},
    "client": {"apimachinery"},
    "controllers": {"apimachinery", "model", "kinds", "plan", "client"},
    "filesystem": set(),
    "node": {"apimachinery", "model", "client", "filesystem"},
    # Runs in pods of either cluster, where nothing of the product is but itself; its file server works by handles.
    "podtools": {"filesystem"},
    "trainers": set(),
    "sdk": {"apimachinery", "model", "kinds", "client", "presentation", "filesystem"},
    "console": {"apimachinery", "model", "kinds", "client", "presentation"},
    "host": {"apimachinery", "settings", "filesystem", "node", "client", "apiserver"},
    "environments": {"host", "node"},
    "cli": {
        *("apimachinery", "model", "kinds", "presentation", "sdk"),
        *("settings", "host", "environments", "cluster"),
    },
    "cluster": ANYTHING,
    "testing": ANYTHING,
    "__init__": {"sdk"},
}

# Decisions and data: values in, values out.
PURE = (
    "apimachinery/",
    "model/",
    "kinds/",
    "plan/",
    "presentation/",
    "node/lifecycle/decide.py",
    "node/network/service_ports.py",
    "errors.py",
)
IMPURE = {
    *("asyncio", "concurrent", "multiprocessing", "select", "selectors", "signal", "subprocess", "threading"),
    *("logging", "os", "random", "secrets", "shutil", "tempfile", "time"),
    *("http", "httptools", "socket", "sqlite3", "ssl", "urllib.request", "uvicorn"),
}

# Third parties, and doors to the machine, each with its home. A third party without a row has none.
HOMES = {
    "websockets": ("client/",),
    "httptools": ("client/http/http1.py", "host/http_connection.py"),
    "click": ("cli/",),
    "cryptography": ("cluster/",),
    "starlette": ("console/",),
    "uvicorn": ("host/",),
    "uvloop": ("cluster/",),
    "jsonschema_rs": ("apiserver/",),
    "msgspec": (
        *("kinds/", "cluster/installation/values.py"),
        *("apiserver/handlers/list_options.py", "apiserver/admission/service_allocator.py"),
    ),
    "orjson": ("apimachinery/", "apiserver/", "store/", "client/", "cli/", "console/"),
    "yaml": ("cli/", "apimachinery/yaml_reader.py", "apimachinery/yaml_positions.py", "sdk/", "client/kubeconfig.py"),
    "uv": ("environments/cache.py",),
    "obstore": ("podtools/object_store.py",),
    "sqlite3": ("store/sqlite.py", "store/sqlite_schema.py", "store/backup.py"),
    "multiprocessing": ("host/", "cluster/"),
    "subprocess": (
        *(
            "cluster/",
            "environments/",
            "host/",
            "podtools/ssh_shim.py",
            "node/runtime/shim.py",
            "node/runtime/zygote.py",
        ),
        *("podtools/git.py", "podtools/pip_install.py"),
    ),
}

# They run beside a container, before and after the rest of the product: nothing of ours is there.
ALONE = (
    *(
        "podtools/ssh_shim.py",
        "node/runtime/shim.py",
        "node/runtime/zygote.py",
        "node/runtime/nsenter.py",
        "node/runtime/cri_log.py",
        "node/runtime/process_limits.py",
        "node/runtime/bwrap.py",
        "node/runtime/subpath_mounts.py",
        "filesystem/handles.py",
        "filesystem/trees.py",
    ),
    *("node/runtime/subreaper.py", "trainers/parameter_server.py"),
    *("podtools/requirements_cache.py", "podtools/pip_install.py"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    file: str
    line: int
    module: str
    is_inside_function: bool = False
    is_relative: bool = False

    @property
    def top(self):
        return self.module.split(".")[0]

    @property
    def package(self):
        """Which of our packages is imported: `plan` for paceline.plan.job.decide, nothing for others."""
        return self.module.split(".")[1] if self.top == "paceline" and "." in self.module else ""

    def is_of(self, modules):
        """Whether it is one of `modules`, or lies inside one."""
        return any(f"{self.module}.".startswith(f"{module}.") for module in modules)

    def __str__(self):
        return f"{self.file}:{self.line} imports {self.module}"


@cache
def files():
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}


@cache
def imports():
    return tuple(found for file, tree in files().items() for found in imports_in(file, tree))


def imports_in(file, tree) -> Iterator[Import]:
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for module in modules_of(node):
            yield Import(
                file=file,
                line=node.lineno,
                module=module,
                is_inside_function=id(node) in inside,
                is_relative=getattr(node, "level", 0) > 0,
            )


def modules_of(node):
    """The imported names with their modules: a name may be a module itself."""
    prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
    return [f"{prefix}{alias.name}" for alias in node.names]


def package_of(file):
    return file.removesuffix(".py").split("/")[0]


def is_in(file, homes):
    return any(file == home or (home.endswith("/") and file.startswith(home)) for home in homes)


def is_third_party(found):
    return found.top not in sys.stdlib_module_names and found.top != "paceline"


def test_a_package_imports_only_what_its_stop_may_know():
    wrong = [f"{found}, but {package_of(found.file)} may not" for found in imports() if not is_allowed(found)]

    assert not wrong, "\n".join(wrong)


def is_allowed(found):
    mine, other = package_of(found.file), found.package
    if not other or other == mine or MAY_IMPORT[mine] == ANYTHING:
        return True
    return mine not in EVERYWHERE and other in EVERYWHERE | MAY_IMPORT[mine]


def test_every_package_has_a_row_in_the_table():
    assert {package_of(file) for file in files()} <= set(MAY_IMPORT)


@pytest.mark.parametrize(
    ("package", "users"),
    [("cluster", {"cli", "cluster", "testing"}), ("cli", {"cli"}), ("testing", {"testing"})],
)
def test_nothing_depends_on_who_puts_it_together(package, users):
    wrong = [str(found) for found in imports() if found.package == package and package_of(found.file) not in users]

    assert not wrong, "\n".join(wrong)


def test_pure_packages_cannot_reach_the_world():
    wrong = [str(found) for found in imports() if is_in(found.file, PURE) and found.is_of(IMPURE)]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("module", "homes"), HOMES.items(), ids=HOMES)
def test_a_third_party_stays_at_home(module, homes):
    strays = [
        f"{found}, whose home is {', '.join(homes)}"
        for found in imports()
        if found.top == module and not is_in(found.file, (*homes, "testing/"))
    ]

    assert not strays, "\n".join(strays)


def test_every_third_party_has_a_home():
    homeless = [
        str(found)
        for found in imports()
        if is_third_party(found) and found.top not in HOMES and not is_in(found.file, ("testing/",))
    ]

    assert not homeless, "\n".join(homeless)


def test_what_runs_beside_a_container_needs_the_standard_library_only():
    each_other = {f"paceline.{file.removesuffix('.py').replace('/', '.')}" for file in ALONE}
    heavy = [
        str(found)
        for found in imports()
        if found.file in ALONE and found.top not in sys.stdlib_module_names and not found.is_of(each_other)
    ]

    assert not heavy, "\n".join(heavy)


def test_no_import_is_relative():
    wrong = [str(found) for found in imports() if found.is_relative]

    assert not wrong, "\n".join(wrong)


def test_imports_stand_at_the_top_but_for_the_command_line():
    """Cold start of a command is a goal; everywhere else a late import hides a cycle."""
    late = [str(found) for found in imports() if found.is_inside_function and not is_in(found.file, ("cli/",))]

    assert not late, "\n".join(late)


def test_no_import_exists_for_types_only():
    """A cycle means that a name lives in the wrong package."""
    wrong = [file for file, tree in files().items() for node in ast.walk(tree) if is_type_checking(node)]

    assert not wrong, "\n".join(wrong)


def is_type_checking(node):
    return (isinstance(node, ast.Name) and node.id == "TYPE_CHECKING") or (
        isinstance(node, ast.alias) and node.name == "TYPE_CHECKING"
    )


def test_kinds_do_not_know_each_other():
    kinds = {file.removesuffix(".py") for file, tree in files().items() if is_kind(file, tree)}
    assert kinds

    wrong = [
        str(found)
        for found in imports()
        if is_in(found.file, tuple(f"{kind}.py" for kind in kinds))
        and found.is_of(f"paceline.{kind.replace('/', '.')}" for kind in kinds)
    ]

    assert not wrong, "\n".join(wrong)


def is_kind(file, tree):
    """A kind's file says so: it assigns KIND."""
    return file.startswith("kinds/") and any(
        isinstance(target, ast.Name) and target.id == "KIND"
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )
