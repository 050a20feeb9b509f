"""Page 87: which page of the document does the memory belong to?

from diagnostics import record, unit, units

with record("run.p87"):
    for page in units(pdf.pages, kind="page"):
        page.extract_text()
"""

from diagnostics.recorder import Recorder, capture, record
from diagnostics.units import current_unit, produced, unit, units
from diagnostics.version import __version__

__all__ = [
    "Recorder",
    "__version__",
    "capture",
    "current_unit",
    "produced",
    "record",
    "unit",
    "units",
]
