"""Says the same thing in different words, without coming back to the same words too soon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sample_docs.quillmere.chance import Chance


class Voice:
    """Draws from ``phrases``: each way to say a thing is used once before any is used again."""

    def __init__(self, name: str, phrases: Mapping[str, Sequence[str]]) -> None:
        self._chance = Chance("voice", name)
        self._phrases = phrases
        self._decks: dict[str, list[str]] = {}

    def say(self, what: str, /, **values: object) -> str:
        """One sentence or more; ``values`` fill the places in the phrase."""
        deck = self._decks.get(what)
        if not deck:
            deck = self._decks[what] = self._chance.shuffled(self._phrases[what])
        text = deck.pop().format(**values)
        return text[0].upper() + text[1:]


def count(number: int, noun: str) -> str:
    """ "no bursts", "one burst", "seven bursts", "1,204 bursts"."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    written = words[number] if number < len(words) else f"{number:,}"
    return f"{written} {noun}" if number == 1 else f"{written} {noun}s"


def listing(items: Sequence[str]) -> str:
    """ "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
