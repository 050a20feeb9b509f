"""Tokens of long strings are counted; nothing is kept."""

from random import Random

from tokenizers import Tokenizer, models

from diagnostics import units

letters = "abcdefghijklmnopqrstuvwxyz"
pairs = [(a, b) for a in letters for b in letters]
vocabulary = {text: number for number, text in enumerate([*letters, *map("".join, pairs)])}
tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
random = Random(87)
for _ in units(range(14), "text"):
    text = "".join(random.choices(letters, k=200_000))
    count = len(tokenizer.encode(text).ids)
