"""Rename module-level names as a table says, and every use of them.

    scripts/rename_symbols.py TABLE      lines of: path under src/holdfast, old name, new name (tab-separated)

A use is found through imports: `from .module import Old`, and `module.Old` where `module` is imported. Where the new
name is taken in an importing file, the script stops and says so.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "holdfast"
TOPS = ("src", "tests", "bench", "scripts", "docs")


def module_of(path: pathlib.Path) -> str:
    dotted = ".".join(["holdfast", *path.relative_to(SOURCE).with_suffix("").parts])
    return dotted.removesuffix(".__init__")


class File:
    """One file's edits: names at places."""

    def __init__(self, path: pathlib.Path, table: dict[str, dict[str, str]]) -> None:
        self.path, self.table = path, table
        self.data = path.read_bytes()
        self.tree = ast.parse(self.data)
        self.starts = [0]
        for line in self.data.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.edits: dict[int, tuple[str, str]] = {}
        self.module = module_of(path) if path.is_relative_to(SOURCE) else ""
        self.package = self.module if path.name == "__init__.py" else self.module.rpartition(".")[0]

    def at(self, line: int, column: int, old: str, new: str) -> None:
        start = self.starts[line - 1] + column
        start = self.data.index(old.encode(), start)  # behind `class`, `def` or a module's name
        self.edits[start] = old, new

    def source(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        parts = parts[: len(parts) - node.level + 1]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def run(self) -> bool:
        local = dict(self.table.get(self.module, {}))  # local name -> new
        modules: dict[str, dict[str, str]] = {}  # a module's local name -> its renames
        self._imports(local, modules)
        if not local and not modules:
            return False
        used = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        for new in local.values():
            if new in used:
                sys.exit(f"{self.path}: {new} is taken")
        self._uses(local, modules)
        data = self.data
        for start, (old, new) in sorted(self.edits.items(), reverse=True):
            data = data[:start] + new.encode() + data[start + len(old.encode()) :]
        text = data.decode()
        for old, new in local.items():  # in docstrings and comments, where it is quoted
            text = re.sub(rf"`{old}\b", f"`{new}", text)
        self.path.write_text(text)
        return text.encode() != self.data

    def _imports(self, local: dict[str, str], modules: dict[str, dict[str, str]]) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                source = self.source(node)
                for alias in node.names:
                    whole = f"{source}.{alias.name}"
                    if whole in self.table:
                        modules[alias.asname or alias.name] = self.table[whole]
                    new = self.table.get(source, {}).get(alias.name)
                    if new:
                        self.at(alias.lineno, alias.col_offset, alias.name, new)
                        if not alias.asname:
                            local[alias.name] = new
                        elif alias.asname == alias.name:  # a re-export
                            self.at(alias.lineno, alias.col_offset + len(alias.name) + 4, alias.name, new)
                            local[alias.name] = new

    def _uses(self, local: dict[str, str], modules: dict[str, dict[str, str]]) -> None:
        for node in ast.walk(self.tree):
            match node:
                case ast.Name(id=name) if name in local:
                    self.at(node.lineno, node.col_offset, name, local[name])
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if (
                    name in self.table.get(self.module, {}) and node in self.tree.body
                ):
                    self.at(node.lineno, node.col_offset, name, local[name])
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in modules.get(name, {}):
                    end = node.end_col_offset
                    assert end is not None
                    assert node.end_lineno is not None
                    self.at(node.end_lineno, end - len(attr), attr, modules[name][attr])
                case ast.Constant(value=str(text)) if text in local and self._names(node):
                    self.at(node.lineno, node.col_offset, text, local[text])

    def _names(self, node: ast.Constant) -> bool:
        """Whether a string is in `__all__`, or an annotation in quotes."""
        for top in self.tree.body:
            if isinstance(top, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in top.targets):
                if any(inner is node for inner in ast.walk(top)):
                    return True
        return False


def main() -> None:
    table: dict[str, dict[str, str]] = {}
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        path, old, new = line.split("\t")
        if not re.search(rf"^(class|def|async def) {old}\b|^{old}\b", (SOURCE / path).read_text(), re.MULTILINE):
            sys.exit(f"{path} has no {old}")
        table.setdefault(module_of(SOURCE / path), {})[old] = new
    changed = 0
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.py")):
            changed += File(path, table).run()
    print(f"{changed} files")


if __name__ == "__main__":
    main()
