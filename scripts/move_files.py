"""Move source files as scripts/moves.tsv says, and rewrite every import and name that leads to them.

    scripts/move_files.py [PACKAGE ...]      all moves, or only those of files that are in these packages now

A module that gets another name keeps it in the importing file where that is clear: uses of `leases` become `lease`.
Where the new name is taken there, the import says `lease as leases`. Unit tests move to the folder that mirrors their
module's.
"""

from __future__ import annotations

import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "holdfast"
UNIT = ROOT / "tests" / "unit"
TEXTS = ("src", "tests", "bench", "scripts", "docs", ".ci", "web/src", "examples")


def module_of(path: str) -> str:
    dotted = "holdfast." + path.removesuffix(".py").replace("/", ".")
    return dotted.removesuffix(".__init__")


def read_moves(packages: list[str]) -> dict[str, str]:
    moves = {}
    for line in (ROOT / "scripts" / "moves.tsv").read_text().splitlines():
        before, after = line.split("\t")
        if (not packages or before.split("/")[0] in packages) and (SOURCE / before).exists():
            moves[before] = after
    return moves


class Rewrite:
    """The edits of one file: (start, end, text) by character offset."""

    def __init__(self, text: str, modules: dict[str, str], known: set[str], package: str, before: str) -> None:
        self.text, self.modules, self.known = text, modules, known
        self.package, self.before = package, before  # where the file stands afterwards, and stood
        self.lines = [0]
        for line in text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line.encode()))
        self.data = text.encode()
        self.edits: list[tuple[int, int, bytes]] = []
        self.tree = ast.parse(text)
        self.coming: dict[str, set[str]] = {}
        self.names = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name)]

    def offset(self, line: int, column: int) -> int:
        return self.lines[line - 1] + column

    def replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.offset(node.lineno, node.col_offset)
        self.edits.append((start, self.offset(node.end_lineno, node.end_col_offset), text.encode()))

    def absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        base = self.before.split(".")
        base = base[: len(base) - node.level + 1]
        return ".".join([*base, *([node.module] if node.module else [])])

    def told(self, module: str, *, relative: bool) -> str:
        if not relative or not self.package:
            return module
        here, there = self.package.split("."), module.split(".")
        same = 0
        while same < min(len(here), len(there)) and here[same] == there[same]:
            same += 1
        return "." * (len(here) - same + 1) + ".".join(there[same:])

    def bound(self, name: str) -> int:
        """How often a name is given anything in this file, imports counted."""
        count = 0
        for node in ast.walk(self.tree):
            match node:
                case ast.Name(id=found, ctx=ast.Store() | ast.Del()) if found == name:
                    count += 1
                case ast.arg(arg=found) if found == name:
                    count += 1
                case ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found) | ast.ClassDef(name=found) if (
                    found == name
                ):
                    count += 1
                case ast.alias() if (node.asname or node.name.split(".")[0]) == name:
                    count += 1
                case ast.ExceptHandler(name=found) | ast.MatchAs(name=found) if found == name:
                    count += 1
                case ast.Global(names=found_names) | ast.Nonlocal(names=found_names) if name in found_names:
                    count += 1
        return count

    def used(self, name: str) -> bool:
        return self.bound(name) > 0 or any(node.id == name for node in self.names)

    def rename(self, old: str, new: str, imports: int) -> bool:
        """Rename a module's local name where nothing else has the old or the new one."""
        if len(self.coming[new]) > 1 or self.bound(old) != imports or self.used(new):
            return False
        for node in self.names:
            if node.id == old:
                self.replace(node, new)
        return True

    def run(self) -> str:
        renamed: dict[str, str] = {}
        kept: set[str] = set()
        froms = [node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom)]
        self.coming = self._coming(froms)
        for node in froms:
            self._from(node, froms, renamed, kept)
        for plain in ast.walk(self.tree):
            if isinstance(plain, ast.Import):
                self._import(plain)
        data = self.data
        for start, end, text in sorted(self.edits, reverse=True):
            data = data[:start] + text + data[end:]
        return data.decode()

    def _coming(self, froms: list[ast.ImportFrom]) -> dict[str, set[str]]:
        """Which modules would have each local name, if all were renamed."""
        coming: dict[str, set[str]] = {}
        for node in froms:
            for alias in node.names:
                whole = f"{self.absolute(node)}.{alias.name}"
                if whole in self.known and not alias.asname:
                    coming.setdefault(self.modules.get(whole, whole).rpartition(".")[2], set()).add(whole)
        return coming

    def _from(self, node: ast.ImportFrom, froms: list[ast.ImportFrom], renamed: dict[str, str], kept: set[str]) -> None:
        base = self.absolute(node)
        if not base.startswith("holdfast"):
            return
        relative = bool(node.level)
        groups: dict[str, list[str]] = {}
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            if whole in self.known:  # a module
                new = self.modules.get(whole, whole)
                place, _, name = new.rpartition(".")
                local = alias.asname or alias.name
                if name != alias.name and not alias.asname and local not in kept:
                    if local not in renamed:
                        imports = sum(
                            1
                            for other in froms
                            for a in other.names
                            if (a.asname or a.name) == local and f"{self.absolute(other)}.{a.name}" == whole
                        )
                        if self.rename(local, name, imports):
                            renamed[local] = name
                        else:
                            kept.add(local)
                    local = renamed.get(local, local)
                said = name if local == name else f"{name} as {local}"
            else:
                place = self.modules.get(base, base)
                said = alias.name + (f" as {alias.asname}" if alias.asname else "")
            groups.setdefault(self.told(place, relative=relative), []).append(said)
        indent = "\n" + " " * node.col_offset
        self.replace(node, indent.join(f"from {place} import {', '.join(said)}" for place, said in groups.items()))

    def _import(self, node: ast.Import) -> None:
        said = [self.modules.get(a.name, a.name) + (f" as {a.asname}" if a.asname else "") for a in node.names]
        if said != [a.name + (f" as {a.asname}" if a.asname else "") for a in node.names]:
            self.replace(node, "import " + ", ".join(said))


def test_places(moves: dict[str, str], modules: dict[str, str]) -> dict[pathlib.Path, pathlib.Path]:
    """Each unit test that has another module to stand beside now."""
    found = {}
    for path in sorted(UNIT.rglob("test_*.py")):
        folder = path.parent.relative_to(UNIT).as_posix()
        own = f"{folder}/{path.stem.removeprefix('test_')}.py"
        if own in moves and moves[own] != "DELETE":
            new = UNIT / pathlib.Path(moves[own]).parent / f"test_{pathlib.Path(moves[own]).name}"
        else:
            imported = set(re.findall(r"holdfast\.[a-z_.]+", path.read_text()))
            places = {modules[name].rpartition(".")[0] for name in imported if name in modules}
            still = {name for name in imported if name not in modules and name.startswith("holdfast." + folder)}
            inside = {p for p in places if p.startswith("holdfast." + folder.split("/")[0])}
            if len(inside) != 1 or still:
                continue
            new = UNIT.joinpath(*inside.pop().split(".")[1:]) / path.name
        if new != path and not new.exists() and new not in found.values():
            found[path] = new
    return found


def main() -> None:
    moves = read_moves(sys.argv[1:])
    modules = {module_of(a): module_of(b) for a, b in moves.items() if a.endswith(".py") and b != "DELETE"}
    known = {module_of(str(path.relative_to(SOURCE))) for path in SOURCE.rglob("*.py")}
    tests = test_places(moves, modules)
    moves_by_path = {SOURCE / a: SOURCE / b for a, b in moves.items()}

    rewrite_imports(moves, modules, known)
    rewrite_names(moves, modules)
    move({**moves_by_path, **tests})


def rewrite_imports(moves: dict[str, str], modules: dict[str, str], known: set[str]) -> None:
    texts: dict[pathlib.Path, str] = {}
    for top in ("src", "tests", "bench", "scripts", "docs", "examples"):
        for path in (ROOT / top).rglob("*.py"):
            if "node_modules" in path.parts:
                continue
            text = path.read_text()
            package = before = ""
            if path.is_relative_to(SOURCE):
                now = path.relative_to(SOURCE)
                then = pathlib.Path(moves.get(now.as_posix(), now.as_posix()))
                before = ".".join(["holdfast", *now.parts[:-1]])
                package = ".".join(["holdfast", *then.parts[:-1]])
            try:
                made = Rewrite(text, modules, known, package, before).run()
            except SyntaxError:
                continue
            if made != text:
                texts[path] = made
    for path, text in texts.items():
        path.write_text(text)


def rewrite_names(moves: dict[str, str], modules: dict[str, str]) -> None:
    """Names in texts: dotted in strings and prose, and as paths."""
    dotted = sorted(modules, key=len, reverse=True)
    if dotted:
        names = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, dotted)) + r")(?![\w/])")
        paths = {f"holdfast/{a}": f"holdfast/{b}" for a, b in moves.items() if b != "DELETE"}
        files = re.compile("(" + "|".join(map(re.escape, sorted(paths, key=len, reverse=True))) + r")(?!\w)")
        for path in tracked():
            text = path.read_text()
            made = files.sub(lambda m: paths[m[1]], text)
            if path.suffix == ".py":
                made = in_strings(made, lambda s: names.sub(lambda m: modules[m[1]], s))
            else:
                made = names.sub(lambda m: modules[m[1]], made)
            if made != text:
                path.write_text(made)


def move(places: dict[pathlib.Path, pathlib.Path]) -> None:
    for before_path, after in places.items():
        if after.name == "DELETE":
            git("rm", "-q", "-f", str(before_path))
            continue
        after.parent.mkdir(parents=True, exist_ok=True)
    # In two rounds: one file's new place may be another's old one.
    both = {a: b for a, b in places.items() if b.name != "DELETE"}
    for a in both:
        git("mv", str(a), str(a) + ".moving")
    for a, b in both.items():
        b.parent.mkdir(parents=True, exist_ok=True)
        git("mv", str(a) + ".moving", str(b))


def in_strings(text: str, change: object) -> str:
    """Change what stands in string literals and comments: imports are rewritten already."""
    import io
    import tokenize

    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    edits = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            made = change(token.string)  # type: ignore[operator]
            if made != token.string:
                edits.append((lines[token.start[0] - 1] + token.start[1], token.string, made))
    for start, old, made in reversed(edits):
        text = text[:start] + made + text[start + len(old) :]
    return text


def tracked() -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    skip = (".tsv", ".png", ".lock", ".svg", ".woff2", ".ico", ".sql", ".cast", ".jsonl", ".gz", ".html")
    found = [ROOT / line for line in listed.splitlines() if not line.endswith(skip) and "CHANGELOG" not in line]
    return [path for path in found if path.is_file() and b"\0" not in path.read_bytes()[:4096]]


def git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
