"""A damaged recording ends well or in words: whatever a file holds, nobody sees a traceback.

One small real recording is damaged in hundreds of ways that a seed decides, in its rows and in its
bytes, and each time everything that the command line and the app read is read.
"""

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing, contextmanager

import pytest

from diagnostics.analysis.address import AddressHeat, bins_of, mappings_at
from diagnostics.analysis.alive import alive_at, stack_tree, top_stacks
from diagnostics.analysis.birth import BirthHeat
from diagnostics.analysis.drops import heap_drops
from diagnostics.analysis.gc_account import GcAccount
from diagnostics.analysis.heatmap import SiteHeat
from diagnostics.analysis.held_graph import read_graph, steps
from diagnostics.analysis.ledger import LiveLedger, ledger_table
from diagnostics.analysis.library import list_recordings
from diagnostics.analysis.series import LiveSeries
from diagnostics.analysis.settlement import last_settlement, sentences
from diagnostics.analysis.stacks import Stacks
from diagnostics.analysis.summary import summarise, summary_json, summary_text
from diagnostics.analysis.suspects import suspects_of
from diagnostics.analysis.type_counts import count_marks, type_courses
from diagnostics.analysis.units import LiveUnits
from diagnostics.errors import RecordingError
from diagnostics.recording.reader import RecordingReader

SEED = 1
ROWS = 250
BYTES = 150
LONGEST_S = 15  # usually 0.05: it hangs

LOOP = """
import gc
import sys
from diagnostics import record, unit

kept = []


class Page:
    def __init__(self):
        self.itself = self
        self.text = [str(number) * 20 for number in range(2000)]


with record(sys.argv[1], engine="sampled", settle=True) as recorder:
    for number in range(8):
        with unit("page"):
            kept.append(Page())
            Page()
            gc.collect()
    recorder.capture()
    kept.clear()
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A recording that has something in nearly every table."""
    path = tmp_path_factory.mktemp("whole") / "run.p87"
    subprocess.run([sys.executable, "-c", LOOP, path], check=True, timeout=60)
    with RecordingReader(path) as reader:
        found = [reader.units(), reader.gc_events(), reader.captures(), reader.settlement()]
        assert all(found)
        assert reader.outcome().state == "finished"
    return path


def read_everything(path):
    """What ``page87 show`` prints in both of its forms, and what the pages of the app draw."""
    with RecordingReader(path) as reader:
        summary = summarise(reader)
        json.dumps(summary_json(summary), allow_nan=False)
        assert summary_text(summary, details=True)
        last_ns = reader.last_ns()
        for follower in (BirthHeat(), SiteHeat(), AddressHeat()):
            follower.feed(reader)
            follower.table(last_ns)
        for follower in (LiveSeries(), LiveUnits(), GcAccount()):
            follower.feed(reader)
        ledger = LiveLedger()
        ledger.feed(reader)
        ledger_table(ledger.rows())
        settled = last_settlement(reader)
        if settled is not None:
            sentences(settled)
        heap_drops(reader)
        type_courses(reader, count_marks(reader))
        sites = reader.sites()
        stacks = Stacks(sites)
        for units in (None, range(1, 5)):
            alive = alive_at(reader, last_ns, units)
            stack_tree(alive, sites)
            top_stacks(alive, sites)
        for mapping in mappings_at(reader, last_ns).rows:
            bins_of(reader, mapping.mapping, last_ns)
        for capture in reader.captures():
            suspects_of(reader, capture, stacks)
            graph = read_graph(reader, capture)
            for chains in graph.chains.values():
                for chain in chains:
                    steps(graph, chain)


def ends_well(path, what):
    """Whether the recording could be read; a failure is told with the seed and what was done."""
    try:
        with no_longer_than(LONGEST_S):
            read_everything(path)
    except RecordingError:
        return False
    except Exception as error:
        pytest.fail(f"seed {SEED}, {what}: {type(error).__name__}: {error}")
    return True


@contextmanager
def no_longer_than(seconds):
    """What hangs inside ``with`` raises ``TimeoutError``; the alarm's handler is put back."""

    def too_long(*_):
        raise TimeoutError(f"reading takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_the_alarm_goes_off_and_leaves_nothing_behind():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutError, match="more than 1 s"), no_longer_than(1):
        signal.pause()
    assert signal.getsignal(signal.SIGALRM) is before


@pytest.fixture(scope="module")
def loose(whole, tmp_path_factory):
    """The same recording in tables that take anything: no keys, no NOT NULL."""
    path = tmp_path_factory.mktemp("loose") / "run.p87"
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for table in tables_of(path):
            db.execute(f"CREATE TABLE loose AS SELECT * FROM {table}")
            db.execute(f"DROP TABLE {table}")
            db.execute(f"ALTER TABLE loose RENAME TO {table}")
        db.execute("VACUUM")
    assert ends_well(path, "tables without constraints")
    return path


def tables_of(path):
    """Table -> the names of its columns."""
    with closing(sqlite3.connect(path)) as db:
        names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {
            table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            for (table,) in names
        }


VALUES = [None, -1, 0, 1, 1 << 31, 1 << 38, (1 << 50) - 1, 1 << 60, 1 << 62, (1 << 63) - 1]
VALUES += [-(1 << 50) + 1, -(1 << 63), 0.5, 1e300, float("inf"), float("-inf")]
VALUES += ["", "text", "running", "[" * 5000, b"", bytes(9), b"\xff" * 40]  # SQLite's NaN is NULL


def values_damaged(db, chance, table, column):
    """One value, or the whole column, becomes something else."""
    value = chance.choice(VALUES)
    where = chance.choice(["", "WHERE rowid = (SELECT max(rowid) FROM {0})", "WHERE rowid % 2"])
    statement = f'UPDATE {table} SET "{column}" = ? {where.format(table)}'
    db.execute(statement, (value,))
    return f"{statement} with {value!r:.60}"


def rows_damaged(db, chance, table, columns):
    """Rows are gone, are there twice, or have their values in each other's columns."""
    one, other = chance.choice(columns), chance.choice(columns)
    statement = chance.choice(
        [
            f"DELETE FROM {table}",
            f"DELETE FROM {table} WHERE rowid % 2",
            f"DELETE FROM {table} WHERE rowid = 1",
            f"INSERT INTO {table} SELECT * FROM {table}",
            f"INSERT INTO {table} SELECT * FROM {table} ORDER BY rowid DESC LIMIT 2",
            f'UPDATE {table} SET "{one}" = "{other}", "{other}" = "{one}"',
            f'UPDATE {table} SET "{one}" = (SELECT max("{one}") FROM {table}) - "{one}"',
            f'UPDATE {table} SET "{one}" = "{one}" + 1000000',
            f"DROP TABLE {table}",
        ]
    )
    db.execute(statement)
    return statement


def frame_damaged(db, chance):
    """Some bits of one frame's payload flip, under its compression too, or it is cut off."""
    frames = db.execute("SELECT rowid, series, payload FROM frames").fetchall()
    number, series, payload = chance.choice(frames)
    inside = payload[:1] == b"\x78" and chance.random() < 0.7
    changed = bytearray(zlib.decompress(payload) if inside else payload)
    for _ in range(chance.choice([1, 2, 20])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.2:
        del changed[chance.randrange(len(changed)) :]
    new = zlib.compress(changed, 1) if inside else bytes(changed)
    db.execute("UPDATE frames SET payload = ? WHERE rowid = ?", (new, number))
    return f"frame {number} ({series}) {'inside ' if inside else ''}damaged"


def damage_rows(path, chance, number):
    """Damage the rows of a recording in one way, and say which."""
    tables = tables_of(path)
    places = [(table, column) for table, columns in tables.items() for column in columns]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        try:
            if number % 5 == 0:
                return rows_damaged(db, chance, *chance.choice(list(tables.items())))
            if number % 5 == 1:
                return frame_damaged(db, chance)
            return values_damaged(db, chance, *places[number % len(places)])
        except sqlite3.OperationalError as error:  # a sum of what are no numbers: no damage done
            return f"nothing: {error}"


def damage_bytes(path, chance):
    """Change bytes of the file, flip bits, overwrite a part of it, or cut it off, and say which."""
    content = bytearray(path.read_bytes())
    way = chance.choice(["change", "flip", "flip", "flip", "overwrite", "cut"])
    if way == "change":
        for _ in range(chance.choice([1, 3, 10, 100])):
            content[chance.randrange(len(content))] = chance.randrange(256)
    elif way == "flip":
        for _ in range(chance.choice([1, 5, 50, 500])):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif way == "overwrite":
        start = chance.randrange(len(content))
        content[start : start + 512] = chance.randbytes(512)
    else:
        del content[chance.randrange(len(content)) :]
    path.write_bytes(content)
    return way


def test_damaged_rows_end_well_or_in_words(loose, tmp_path):
    path = tmp_path / "run.p87"
    read = 0
    for number in range(ROWS):
        shutil.copy(loose, path)
        done = damage_rows(path, random.Random(f"{SEED} {number}"), number)
        read += ends_well(path, f"{number}: {done}")
    assert 0 < read < ROWS, "else nothing was damaged, or nothing could be read"


def test_a_unit_that_ends_in_146_years_is_damage(whole, tmp_path):
    path = tmp_path / "run.p87"
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE units SET end_ns = 4611686018427387904")
    with pytest.raises(RecordingError, match="a number of end_ns cannot be"):
        read_everything(path)


def test_damaged_bytes_end_well_or_in_words(whole, tmp_path):
    read = 0
    for number in range(BYTES):
        path = tmp_path / f"{number}.p87"
        shutil.copy(whole, path)
        done = damage_bytes(path, random.Random(f"{SEED} {number}"))
        read += ends_well(path, f"{number}: {done}")
    assert 0 < read < BYTES, "else nothing was damaged, or nothing could be read"
    assert len(list_recordings(tmp_path)) == BYTES
