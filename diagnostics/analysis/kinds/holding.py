"""What kind of holding a chain is: document, registry, exception, queue, cache, small value.

A chain has one kind: the first sign in this order decides, since the later ones are true of many
chains that an earlier one explains better.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from diagnostics.analysis.format import counted, format_bytes
from diagnostics.analysis.kinds.evidence import Evidence
from diagnostics.analysis.sites import short_path
from diagnostics.analysis.suspects import Held, Link
from diagnostics.recording.model import IN_A_CYCLE

NO_REFERRER = 6
GARBAGE = 7
RESULT = 15

_CONTAINERS = frozenset(
    {"list", "dict", "set", "frozenset", "tuple", "array.array", "collections.deque"}
    | {"collections.OrderedDict", "collections.defaultdict"}
)
_KEYED = frozenset(
    {"dict", "set", "frozenset", "collections.OrderedDict", "collections.defaultdict"}
)
_PLAIN = frozenset({"str", "bytes", "bytearray", "int", "float", "complex", "bool", "NoneType"})
_PASSAGES = frozenset(
    {"module", "frame", "function", "method", "cell", "builtin_function_or_method"}
    | {"coroutine", "generator", "async_generator"}
)
_UPWARDS = frozenset(
    {"parent", "_parent", "root", "_root", "tree", "_tree", "document", "_document", "doc", "_doc"}
    | {"owner", "_owner", "soup", "next_element", "previous_element", "next_sibling"}
    | {"previous_sibling", "base", "_base", "source", "_source", "page", "_page", "pdf"}
)
_NAME = re.compile(r"([A-Za-z_]\w*)\W*$")
_SHOWN_LINKS = 6
_SCRIPT = "__main__"


def holding_kind(chain: Sequence[Link]) -> int | None:
    """The number of the kind that this chain shows; None without a chain."""
    if not chain:
        return None
    types = [_plain_name(link.type) for link in chain]
    root = chain[0].root
    if root == "exception" or "traceback" in types or _has_label(chain, "__traceback__"):
        return 11
    if any(name.rpartition(".")[2].endswith("Queue") for name in types):
        return 18
    if any(name.rpartition(".")[2].endswith(("_lru_cache_wrapper", "Cache")) for name in types):
        return 13
    if any(name.partition(".")[0] in ("tokenizers", "transformers", "torch") for name in types):
        return 19
    if root == "unknown":
        return GARBAGE if chain[0].name == IN_A_CYCLE else NO_REFERRER
    body = [link for link in chain if _plain_name(link.type) not in _PASSAGES]
    if _pins_upwards(body):
        return 3
    if root in ("class", "closure") or _is_registry(body, types):
        return 12
    owner = _plain_name(body[0].type) if body else ""
    if owner not in _CONTAINERS:
        return 1
    if is_plain_data(chain):
        # Plain data in a plain container: what a function, or a script in a list, collects is what
        # it was asked for. What another module collects is a registry, and so is what a script
        # keeps under keys, to be found again: a cache, a set of what it has seen.
        asked_for = is_of_script(chain) and owner not in _KEYED
        return 12 if root == "module" and not asked_for else RESULT
    return 12 if root == "module" else 1


def bytes_by_kind(suspects: Sequence[Held]) -> Counter[int | None]:
    """The suspects' bytes by the kind of their chains; None for those without."""
    found: Counter[int | None] = Counter()
    for suspect in suspects:
        found[holding_kind(suspect.chain)] += suspect.bytes
    return found


def share(evidence: Evidence, kind: int | None) -> float:
    """The part of all suspects' bytes that is held in the way of ``kind``, 0 to 1."""
    sizes = bytes_by_kind(evidence.suspects)
    total = sum(sizes.values())
    return sizes[kind] / total if total else 0.0


def largest(evidence: Evidence, kind: int | None) -> Held | None:
    """The suspect with the most bytes of those that are held in the way of ``kind``."""
    found = [s for s in evidence.suspects if holding_kind(s.chain) == kind]
    return max(found, key=lambda suspect: suspect.bytes, default=None)


def in_words(chain: Sequence[Link]) -> str:
    """ "`pdf` (frame load, app/loader.py:41) → `.pages` list → `[12]` Page → …": names and types
    only, the middle of a long chain left out."""
    root, rest = chain[0], list(chain[1:])
    where = f", {short_path(root.file)}:{root.line}" if root.file and root.line else ""
    if root.root == "unknown":
        parts = [root.name or "no Python referrer"]
    elif rest and _plain_name(root.type) in _PASSAGES:
        name = rest[0].label.lstrip(".") or _last(rest[0].type)
        parts = [f"`{name}` ({root.root} {root.name}{where})"]
        rest = rest[1:]
    else:
        parts = [f"`{root.name or _last(root.type)}` ({root.root or 'object'}{where})"]
    for link in rest:
        label = f"`{link.label}` " if link.label else ""
        parts.append(f"{label}{_last(link.type)}")
    if len(parts) > _SHOWN_LINKS:
        parts[_SHOWN_LINKS - 2 : -1] = ["…"]
    return " → ".join(parts)


def blocks_in_words(suspect: Held) -> str:
    """ "6,662,623 blocks (LTChar)": all that was allocated there, and the type of the objects that
    were found in it. Most blocks are parts of such objects: their dictionaries, lists, numbers."""
    kind = _last(suspect.type)
    blocks = counted(suspect.blocks, "block")
    return f"{blocks} ({kind})" if kind else blocks


def size_in_words(suspect: Held) -> str:
    """ "1.2 GB in 6,662,623 blocks (LTChar)"."""
    return f"{format_bytes(suspect.bytes)} in {blocks_in_words(suspect)}"


def is_of_script(chain: Sequence[Link]) -> bool:
    """Whether the chain begins at a name of the script itself."""
    return bool(chain) and chain[0].root == "module" and chain[0].name == _SCRIPT


def is_plain_data(chain: Sequence[Link]) -> bool:
    """Whether it leads through containers to text, bytes or numbers, and through nothing else."""
    types = [_plain_name(link.type) for link in chain]
    return all(name in _CONTAINERS | _PLAIN | _PASSAGES for name in types)


def _pins_upwards(body: Sequence[Link]) -> bool:
    """Whether a value in a plain container refers to what it came from."""
    for place in range(1, len(body) - 1):
        holder, value, tree = body[place - 1 : place + 2]
        if (
            place <= 2
            and _plain_name(holder.type) in _CONTAINERS
            and _plain_name(value.type) not in _CONTAINERS
            and _label(tree) in _UPWARDS
        ):
            return True
    return False


def _is_registry(body: Sequence[Link], types: Sequence[str]) -> bool:
    """Whether somebody who only notes things down holds it: finished tasks, finalizers, loggers."""
    for holder, held in pairwise(body):
        if _plain_name(holder.type) in _CONTAINERS and _last(held.type) in ("Task", "Future"):
            return True
    return any(
        name.startswith("weakref.")
        or name.rpartition(".")[2] in ("finalize", "_Info", "LogRecord")
        or (name.startswith("logging") and name.endswith("Handler"))
        for name in types
    )


def _has_label(chain: Sequence[Link], name: str) -> bool:
    return any(_label(link) == name for link in chain)


def _label(link: Link) -> str:
    found = _NAME.search(link.label)
    return found[1] if found else ""


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _plain_name(name: str) -> str:
    return name.removeprefix("builtins.")
