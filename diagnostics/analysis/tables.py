"""Parts of a summary as tables for the screen, with headings a person can read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from diagnostics.analysis.format import counted, format_bytes, format_count, format_seconds
from diagnostics.analysis.library import LibraryEntry
from diagnostics.analysis.sites import site_label
from diagnostics.analysis.summary_model import ProbeInfo, SiteInfo
from diagnostics.analysis.units import UnitFigures
from diagnostics.recording.model import LogEntry
from diagnostics.recording.texts import storable


def site_table(sites: Iterable[SiteInfo]) -> pd.DataFrame:
    """One row a line of code: ``line of code``, ``alive``, ``blocks``."""
    return pd.DataFrame(
        [
            (
                site_label(site.file, site.line, site.function),
                format_bytes(site.bytes),
                format_count(site.blocks),
            )
            for site in sites
        ],
        columns=["line of code", "alive", "blocks"],
    )


def worst_units(units: Sequence[UnitFigures], most: int = 10) -> pd.DataFrame:
    """The units with the highest peaks: ``unit``, ``peak``, ``kept``, ``took``, ``status``."""
    known = [unit for unit in units if unit.peak_bytes is not None]
    known.sort(key=lambda unit: -(unit.peak_bytes or 0))
    return pd.DataFrame(
        [
            (
                unit.label,
                format_bytes(unit.peak_bytes or 0, signed=True),
                format_bytes(unit.retained_bytes or 0, signed=True),
                format_seconds(unit.duration_ns / 1e9),
                unit.status if unit.error is None else unit.error,
            )
            for unit in known[:most]
        ],
        columns=["unit", "peak", "kept", "took", "status"],
    )


def probe_table(probes: Iterable[ProbeInfo]) -> pd.DataFrame:
    """One row a probe: ``probe``, ``state``, ``CPU time``, ``lost``, ``how``."""
    return pd.DataFrame(
        [
            (probe.name, probe.state, format_seconds(probe.cost_s), probe.dropped, probe.detail)
            for probe in probes
        ],
        columns=["probe", "state", "CPU time", "lost", "how"],
    )


def log_table(entries: Iterable[LogEntry]) -> pd.DataFrame:
    """One row a line of the log: ``at``, ``level``, ``from``, ``message``."""
    return pd.DataFrame(
        [
            (format_seconds(entry.t_ns / 1e9), entry.level, entry.source, entry.message)
            for entry in entries
        ],
        columns=["at", "level", "from", "message"],
    )


def library_table(entries: Iterable[LibraryEntry]) -> pd.DataFrame:
    """One row a recording: ``name``, ``document``, ``loader``, ``units``, ``outcome``, ``peak``,
    ``size``, ``started``."""
    return pd.DataFrame(
        [
            (
                storable(entry.path.stem),  # a name need not be UTF-8
                entry.document,
                entry.loader,
                counted(entry.units, entry.unit_kind) if entry.unit_kind else "",
                entry.state or "cannot be read",
                format_bytes(entry.peak_bytes) if entry.peak_bytes is not None else "",
                format_bytes(entry.bytes),
                entry.started_at[:19].replace("T", " "),
            )
            for entry in entries
        ],
        columns=["name", "document", "loader", "units", "outcome", "peak", "size", "started"],
    )
