"""``python -m diagnostics module:function DOC``: what ``page87 run --loader`` iterates, bare."""

import importlib
import sys

from diagnostics import units

module, _, function = sys.argv[1].partition(":")
for _item in units(getattr(importlib.import_module(module), function)(*sys.argv[2:])):
    del _item
