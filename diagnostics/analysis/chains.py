"""Holder chains in words, from the rows of a recording alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from diagnostics.recording.model import ChainLink, HeldObject, Reference

_ARROW = " -> "
_CLOSURE = "closure "
_CONTAINERS = frozenset({"list", "dict", "tuple", "set", "frozenset", "deque"})


def chain_in_words(
    links: Sequence[ChainLink], objects: Iterable[HeldObject], references: Iterable[Reference]
) -> str:
    """A holder chain from its root down, as a person would write it; empty without links.

    ``links`` are those of one chain in order of position; ``objects`` and ``references`` are the
    rows of its capture, all of them or just those of the chain. For instance:
    "`pdf` (local of load_pages, loader.py:41) -> `PDF.pages` list -> `Page[12]` -> 1,214 `LTChar`".
    """
    by_id = {item.id: item for item in objects}
    labels = {(reference.holder, reference.held): reference.label for reference in references}
    chain = [by_id[link.object] for link in links]
    words = [_root(chain[0], chain[1:2])] if chain else []
    for position, (holder, held) in enumerate(itertools.pairwise(chain), start=1):
        if position == 1 and chain[0].root in _NAMED_ROOTS:
            continue  # the root's words have named it
        words.append(_step(holder, held, labels, last=position == len(chain) - 1))
    return _ARROW.join(words)


_NAMED_ROOTS = frozenset({"frame", "module", "class", "closure"})


def _root(root: HeldObject, below: Sequence[HeldObject]) -> str:
    """The root, and the name that it has for the object below it."""
    name = f"`{below[0].name}` " if below and below[0].name else ""
    match root.root:
        case "frame":
            return f"{name}(local of {_place(root)})"
        case "module":
            return f"{name}(module {root.name})"
        case "class":
            return f"{name}(class {_short(root.name)})"
        case "closure":
            return f"{name}(closure of {_place(root)})"
        case "thread":
            return f"thread {root.name}".rstrip()
        case "task":
            return f"pending task {_place(root)}".rstrip()
        case "exception":
            return f"`{_short(root.type)}` being handled"
    return root.name or "no Python referrer"


def _step(
    holder: HeldObject, held: HeldObject, labels: Mapping[tuple[int, int], str], *, last: bool
) -> str:
    label = labels.get((holder.id, held.id), "")
    kind = _short(held.type)
    if last and held.count > 1:
        return f"{held.count:,} `{kind}`"
    if label.startswith("."):
        owner = "" if _short(holder.type) in _CONTAINERS else _short(holder.type)
        return f"`{owner}{label}` {kind}"
    if label.startswith("[") and not label.startswith("['") and kind not in _CONTAINERS:
        return f"`{kind}{label}`"
    if label.startswith("["):
        return f"`{label}` {kind}"
    if label.startswith(_CLOSURE):
        return f"`{label.removeprefix(_CLOSURE)}` {kind} (closure of {_place(holder)})"
    if label.isidentifier():
        return f"`{label}` {kind} (local of {_place(holder)})"
    return f"`{kind}`"


def _place(item: HeldObject) -> str:
    """A function's name and where it stands, as far as they are known."""
    name = item.name.replace("<locals>.", "")
    return f"{name}, {PurePath(item.file).name}:{item.line}" if item.file else name


def _short(name: str) -> str:
    """The last part of a qualified name."""
    return name.rpartition(".")[2]
