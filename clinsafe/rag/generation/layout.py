"""Lists that their layout shows: bullets, numbers, letters, nested ones, and "(1) …, (2) …" within a line."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARK = re.compile(
    r"(?P<indent>[ \t]*)(?:(?P<bullet>[-*•–—·◦▪‣●○+])|(?P<number>\(?\d{1,3}[.)])|(?P<roman>\(?[ivx]{1,5}[.)])"
    r"|(?P<letter>\(?[A-Za-z][.)]))[ \t]+(?=\S)"
)
_INLINE = re.compile(r"(?:(?<=\s)|(?<=^)|(?<=[;,:]))\(?(?P<mark>\d{1,2}|[a-z]|[ivx]{1,5})\)(?=\s*\S)")
_INLINE_DOTTED = re.compile(r"(?:(?<=[:.;,]\s)|(?<=^))(?P<mark>\d{1,2})\.(?=\s+[^\W\d_])")
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
LONGEST = 40  # words of a component within a line
_EDGES = " \t,;."
_LAST_JOIN = re.compile(r"[\s,;]*\b(?:and|or)\s*$", re.IGNORECASE)


@dataclass(slots=True)
class _Node:
    indent: int
    kind: str
    text: str
    children: int = 0


def laid_out(text: str, least_share: float = 0.0) -> list[str] | None:
    """Components in order; None where the layout shows no list of at least two. Linear in the text.

    Args:
        text: with its line ends.
        least_share: share of the words that a list within a line must hold; "type 1 … type 2" in prose is none.
    """
    nodes = _nodes(text) if "\n" in text else []
    if len(nodes) > 1:
        _count_children(nodes)
        found = [part for node in nodes for part in _component(node)]
        return found if len(found) > 1 else None
    parts = _inline(text)
    if parts is None or any(len(part.split()) > LONGEST for part in parts):
        return None
    inside = sum(len(part.split()) for part in parts)
    return parts if inside >= least_share * len(text.split()) else None


def _nodes(text: str) -> list[_Node]:
    nodes: list[_Node] = []
    blank = True
    for line in text.splitlines():
        if not line.strip():
            blank = True
            continue
        match = _MARK.match(line)
        if match:
            indent = len(match["indent"].expandtabs(4))
            nodes.append(_Node(indent, str(match.lastgroup), line[match.end() :].strip()))
        elif nodes and _goes_on(line, nodes[-1], blank):
            nodes[-1].text += f" {line.strip()}"
        blank = False
    return nodes


def _goes_on(line: str, before: _Node, blank: bool) -> bool:
    """A wrapped line: deeper than its bullet, or directly below in lower case."""
    deeper = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip()) > before.indent
    return not blank and (deeper or line.lstrip()[:1].islower()) and not before.text.endswith(":")


def _count_children(nodes: list[_Node]) -> None:
    open_nodes: list[_Node] = []
    for node in nodes:
        while open_nodes and not _below(node, open_nodes[-1]):
            open_nodes.pop()
        if open_nodes:
            open_nodes[-1].children += 1
        open_nodes.append(node)


def _below(node: _Node, parent: _Node) -> bool:
    if node.indent != parent.indent:
        return node.indent > parent.indent
    # "1. Cardiac:" with "- angina" under it at the same depth.
    return node.kind != parent.kind and parent.text.rstrip("* ").endswith(":")


def _component(node: _Node) -> list[str]:
    """A parent that only introduces is none: it ends in a colon, or has several below it and says nothing more."""
    text = node.text.strip()
    if text.rstrip("*_ ").endswith(":"):
        return []
    if node.children > 1:
        _, _, rest = text.partition(":")
        return [rest.strip("*_ ")] if rest.strip("*_ ") else []
    return [text]


def _inline(text: str) -> list[str] | None:
    """ "(1) smoking, (2) obesity and (3) age": marks that count up from the first."""
    for pattern, starts in ((_INLINE, ("1", "a", "i")), (_INLINE_DOTTED, ("1",))):
        for start in starts:
            if f"{start}{')' if pattern is _INLINE else '.'}" not in text:
                continue
            spans = _counted(pattern, text, start)
            if len(spans) > 1:
                ends = [span[0] for span in spans[1:]] + [_end(text, spans[-1][1])]
                parts = [
                    _LAST_JOIN.sub("", text[a:b]).strip(_EDGES) for (_, a), b in zip(spans, ends, strict=True)
                ]
                parts = [part for part in parts if part]
                return parts if len(parts) > 1 else None
    return None


def _counted(pattern: re.Pattern[str], text: str, start: str) -> list[tuple[int, int]]:
    order = _ROMAN if start == "i" else tuple("abcdefghijklmnopqrstuvwxyz")
    spans: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        at = len(spans)
        wanted = str(at + 1) if start == "1" else order[at] if at < len(order) else ""
        if match["mark"] == wanted:
            spans.append(match.span())
    return spans


def _end(text: str, at: int) -> int:
    """The last component ends with its line."""
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline
