"""The lines of a source file: their text without comments, and which of them state constants."""

import ast
import io
import re
import tokenize
from pathlib import Path

C_SUFFIXES = (".c", ".cpp", ".h", ".hpp")
#: Files in which a line with # is not a comment.
_LITERAL_SUFFIXES = (".config", ".patch")
_C_STRING = r'"(?:\\.|[^"\\])*"|(?<!\w)\'(?:\\.|[^\'\\])*\''
_C_TOKEN = re.compile(rf"{_C_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_C_CONSTANT = re.compile(
    r"""^(?!\#\s*include) .* (?:["']|\b[0-9]|\b(?:true|false|nullptr|NULL)\b) | ^\#\s*define""",
    re.VERBOSE,
)


def source_lines(path: Path) -> tuple[list[str], set[int]]:
    """Return the lines of a file, and the numbers (from 1) of those that state a constant.

    Lines have no comments and no spaces at their ends; a line of comments is empty, and so is one
    that imports from this package, whose modules may move. In C, a constant is a line with a
    number, text or truth value. In Python it must be outside of functions.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix in C_SUFFIXES:
        lines = _stripped(_C_TOKEN.sub(_without_comment, text))
        return lines, {n for n, line in enumerate(lines, 1) if _C_CONSTANT.search(line)}
    if path.suffix == ".py":
        constants = _Constants()
        constants.visit(ast.parse(text))
        return _stripped(_without_comments(text, constants.silent)), constants.lines
    lines = _stripped(text)
    if path.suffix not in _LITERAL_SUFFIXES:
        lines = ["" if line.startswith("#") else line for line in lines]
    return lines, set()


def _stripped(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


def _without_comment(match: re.Match[str]) -> str:
    text = match[0]
    return text if text[0] in "\"'" else "\n" * text.count("\n")


def _without_comments(text: str, silent: set[int]) -> str:
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return "\n".join("" if n in silent else line for n, line in enumerate(lines, 1))


class _Constants(ast.NodeVisitor):
    """The lines of a module's constants, and of its docstrings and imports from this package."""

    def __init__(self) -> None:
        self.lines: set[int] = set()
        self.silent: set[int] = set()
        self._functions = 0

    def visit_Constant(self, node: ast.Constant) -> None:
        if not self._functions:
            self.lines |= _rows(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            self.silent |= _rows(node)
        else:
            self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and node.module.startswith("replication."):
            self.silent |= _rows(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if part:
                self.visit(part)
        self._functions += 1
        for statement in node.body:
            self.visit(statement)
        self._functions -= 1


def _rows(node: ast.expr | ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
