"""Rules of plain English that a program can check, in code and in documents."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from coldframe_local.cli import GROUPS, main

ROOT = Path(__file__).resolve().parent.parent
CODE = ("layers", "functions", "local", "bench")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "local", "bench")

LONGEST = 25  # words of a sentence

FIRST_WORDS = re.compile(r"(Of|That|With|In which|What|Who|Whose|Which)\b")
LISTED = re.compile(
    r"\b(works off|goes on|is told of|lets expect|borne|heeds|those that|that one(?=[.,;:)])|so many|so long"
    r"|none of|(?<!there )is no(?! longer))\b",
    re.IGNORECASE,
)
PARTICIPLES = re.compile(
    r"_?(answered|asked|begun|borne|called|chosen|drawn|found|given|gone|guessed|held|judged|kept|known|made|meant"
    r"|met|named|needed|said|seen|sent|shown|spent|taken|told|wanted|written)"
)


@cache
def sources() -> tuple[Path, ...]:
    """Python files of the product and of its benchmarks."""
    return tuple(path for folder in CODE for path in sorted((ROOT / folder).rglob("*.py")))


def documents() -> list[Path]:
    """Markdown files of the repository."""
    roots = [ROOT / name for name in DOCUMENTS]
    return [page for root in roots for page in ([root] if root.is_file() else sorted(root.rglob("*.md")))]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def docstrings_and_helps(tree: ast.Module) -> Iterator[str]:
    """Texts that a person reads alone: docstrings, field notes, and help texts of options and arguments."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text
            case ast.keyword(arg="help" | "short_help", value=ast.Constant(value=str(text))):
                yield text


def comments(source: str) -> Iterator[str]:
    """Comments, with the lines of one paragraph joined."""
    lines: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] != lines[-1][0] + 1:
                yield " ".join(text for _, text in lines)
                lines = []
            lines.append((token.start[0], token.string.lstrip("# ")))
    yield " ".join(text for _, text in lines)


def texts(path: Path) -> Iterator[str]:
    """All prose of a source: its comments, docstrings, help texts, and its messages."""
    yield from comments(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def listed_words(path: Path) -> list[str]:
    """Listed words in a file's prose. Fences and code spans of a document are not prose."""
    if path.suffix == ".py":
        prose = " ".join(" ".join(text.split()) + " ." for text in texts(path))
    else:
        prose = " ".join(prose_of(path).split())
    return [match.group() for match in LISTED.finditer(prose)]


def prose_of(page: Path) -> str:
    """The text of a document without its fenced blocks, code spans and tables that a command writes."""
    aside = r"```.*?```|`[^`\n]*`|<!-- bench:.*?<!-- /bench -->"
    return re.sub(aside, " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def sentences(page: Path) -> Iterator[str]:
    """Sentences of a document's paragraphs and lists. Tables, headings, code and addresses are not sentences.

    A full stop, a question mark or a colon ends a sentence.
    """
    text = re.sub(r"```.*?```|<!--.*?-->", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in re.split(r"\n\s*\n", text):
        if block.startswith(("    ", "#")):
            continue
        prose = "\n".join(line for line in block.splitlines() if not line.startswith("|"))
        for item in re.split(r"\n\s*(?:[-*]|\d+\.) ", prose):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`\n]*`", "code", item))
            yield from re.split(r"(?<=[.!?:])\**\s+", " ".join(plain.split()))


def participles(tree: ast.Module) -> Iterator[str]:
    """Variables and parameters named by a bare participle, once per function or class that binds one."""

    def bindings(node: ast.AST, scope: set[str]) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)
            names: set[str] = set() if inner else scope
            name = bound_name(child)
            if PARTICIPLES.fullmatch(name) and name not in scope:
                scope.add(name)
                yield name
            yield from bindings(child, names)

    return bindings(tree, set())


def bound_name(node: ast.AST) -> str:
    """The name that a node binds, or an empty string."""
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            return name
    return ""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_each_docstring_and_help_text_names_its_subject() -> None:
    """No docstring and no help text begins with a word that needs the name above it to be understood."""
    wrong = [
        f"{name_of(path)}: {text.strip().splitlines()[0]}"
        for path in sources()
        for text in docstrings_and_helps(tree_of(path))
        if FIRST_WORDS.match(text.strip())
    ]
    assert not wrong, "\n".join(wrong)


def commands(command: click.Command = main, path: str = "coldframe") -> Iterator[tuple[str, click.Command]]:
    """Every command that is not a group, with its words."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context := click.Context(command)):
            if (part := command.get_command(context, name)) is not None:
                yield from commands(part, f"{path} {name}")
    else:
        yield path, command


def shown(option: click.Option) -> str:
    """The option's help as users see it."""
    return "default" if option.show_default else option.help or ""


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_each_option_has_its_help_and_its_default(path: str, command: click.Command) -> None:
    """The help of an option that may be left out says what happens then."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert [option.opts[0] for option in options if not option.help] == []
    needed = [option for option in options if option.required or option.is_flag or option.multiple]
    silent = [
        option.opts[0]
        for option in options
        if option not in needed and "default" not in shown(option).lower()
    ]
    assert silent == []


def test_each_command_is_listed_with_its_whole_summary() -> None:
    """`coldframe --help` has a title over each command, and cuts no summary."""
    output = CliRunner().invoke(main, ["--help"]).output
    assert "..." not in output.removeprefix("Usage: main [OPTIONS] COMMAND [ARGS]...")
    for title in (*GROUPS, "Measure"):
        assert f"\n{title}:\n" in output


def test_listed_words_do_not_occur() -> None:
    """Words of the style guide's list, which a reader has to read twice, occur in no prose."""
    wrong = [f"{name_of(path)}: {word}" for path in (*sources(), *documents()) for word in listed_words(path)]
    assert not wrong, "\n".join(wrong)


def test_documents_have_few_of() -> None:
    """Chains of "of" hide who does what: each document has fewer than 20 in 1,000 words, or at most three."""
    wrong = []
    for page in documents():
        words = re.findall(r"[A-Za-z']+", prose_of(page))
        count = sum(word.lower() == "of" for word in words)
        if count > 3 and count * 1000 >= 20 * len(words):
            wrong.append(f"{name_of(page)}: {count} in {len(words)} words")
    assert not wrong, "\n".join(wrong)


def test_sentences_are_short() -> None:
    """A sentence of a document has at most 25 words."""
    wrong = [
        f"{name_of(page)}: {sentence}"
        for page in documents()
        for sentence in sentences(page)
        if len(re.findall(r"[\w'][\w',.%-]*", sentence)) > LONGEST
    ]
    assert not wrong, "\n".join(wrong)


def test_few_names_are_bare_participles() -> None:
    """Fewer than 100 variables and parameters are participles without their noun, such as `found`."""
    wrong = [f"{name_of(path)}: {name}" for path in sources() for name in participles(tree_of(path))]
    assert len(wrong) < 100, "\n".join(wrong)
