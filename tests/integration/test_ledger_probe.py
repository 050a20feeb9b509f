"""The ledger of real loads: each part grows by what the load is known to have taken.

Every load runs in an interpreter of its own, between two looks at the ledger.
"""

import ctypes
import os
import subprocess
import sys
import textwrap

import pytest

from diagnostics.analysis.ledger import PART_NAMES, LiveLedger
from diagnostics.probes.cgroup import own_group
from diagnostics.probes.heap import default_engine
from diagnostics.recording.reader import RecordingReader

MB = 1_000_000

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the C library is not glibc 2.33 or later"
)
needs_sampling = pytest.mark.skipif(
    default_engine()[0] != "sampled", reason="the core is not built"
)

SETTING = """
import ctypes, gc, mmap, os, sys, time
from diagnostics import record

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
MB = 1_000_000

def native(count, size):
    addresses = (ctypes.c_void_p * count)()  # one block, so that few Python objects disturb
    for i in range(count):
        addresses[i] = libc.malloc(size)
        libc.memset(addresses[i], 1, size)
    return addresses

def free(addresses, places):
    for i in places:
        libc.free(addresses[i])
"""


def run(path, load, *, engine="sampled", before="", tick_s=0.1):
    code = f"""{SETTING}
{textwrap.dedent(before)}
with record({str(path)!r}, engine={engine!r}, types=False, tick_s={tick_s}):
{textwrap.indent(textwrap.dedent(load), "    ")}
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return path


def ledger(path):
    live = LiveLedger()
    with RecordingReader(path) as reader:
        live.feed(reader)
    return live


def growth(path):
    """By how much each part is larger at the end than at the start, in MB."""
    rows = ledger(path).rows()
    first, last = rows[0], rows[-1]
    for row in rows:
        assert sum(row.known().values()) == row.rss
    return {
        name: (getattr(last, name) - getattr(first, name)) / MB
        for name in PART_NAMES
        if getattr(first, name) is not None
    } | {"rss": (last.rss - first.rss) / MB, "not_resident": last.not_resident / MB}


PYTHON_SMALL = (
    "kept = [bytes([i % 251]) * 400 for i in range(150_000)]",
    {"python": 150_000 * 433},
)
PYTHON_LARGE = ("kept = [bytes([i % 251]) * 50_000 for i in range(1200)]", {"python": 60 * MB})
NATIVE = ("kept = native(1200, 50_000)", {"native": 60 * MB})
FRAGMENTS = (
    "kept = native(60_000, 1000); free(kept, range(0, 60_000, 2))",
    {"native": 30_000 * 1008, "malloc_free": 30_000 * 1008},
)
MAPPED = (
    """
    with open(FILE, "wb") as file:
        file.write(b"x" * 60 * MB)
    with open(FILE, "rb") as file:
        kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    touched = sum(kept[i] for i in range(0, len(kept), 4096))
    """,
    {"file_backed": 60 * MB},
)
SHARED = ("kept = mmap.mmap(-1, 60 * MB); kept.write(b'x' * 60 * MB)", {"shared": 60 * MB})


@needs_sampling
@pytest.mark.parametrize(
    ("load", "expected"),
    [PYTHON_SMALL, PYTHON_LARGE, NATIVE, FRAGMENTS, MAPPED, SHARED],
    ids=["small Python blocks", "large Python blocks", "native", "fragments", "mapped", "shared"],
)
def test_the_part_that_grows_is_the_one_that_took_the_memory(tmp_path, load, expected):
    # given a load that is known to take so many bytes of one kind
    # when it runs
    grown = growth(
        run(tmp_path / "run.p87", f"FILE = {str(tmp_path / 'file')!r}\n" + textwrap.dedent(load))
    )

    # then that part has grown by them, and no other part has, the rest included
    tolerance = max(5, 0.03 * grown["rss"])
    assert 0 <= grown.pop("recorder") < 16  # the more samples live, the larger its tables
    for name in PART_NAMES.keys() & grown.keys():
        assert grown[name] == pytest.approx(expected.get(name, 0) / MB, abs=tolerance), grown


@needs_sampling
def test_free_memory_that_malloc_gave_back_is_in_no_part(tmp_path):
    load = """
    kept = native(6000, 10_000)
    top = max(range(6000), key=kept.__getitem__)  # what lies below is not given back by itself
    free(kept, (i for i in range(6000) if i != top))
    """
    held = growth(run(tmp_path / "held.p87", load))
    trimmed = growth(run(tmp_path / "trimmed.p87", textwrap.dedent(load) + "libc.malloc_trim(0)"))

    assert held["malloc_free"] == pytest.approx(60, abs=3)
    assert held["rss"] == pytest.approx(60, abs=6)
    assert trimmed["malloc_free"] < 3
    assert trimmed["not_resident"] == pytest.approx(60, abs=4)
    assert abs(trimmed["rest"]) < 5


@needs_sampling
def test_arenas_that_a_few_survivors_pin_are_pymallocs_empty_space(tmp_path):
    load = """
    blocks = [bytes([i % 251]) * 400 for i in range(150_000)]
    kept = blocks[::100]  # one block in every third pool
    del blocks
    """
    grown = growth(run(tmp_path / "run.p87", load))

    assert grown["python"] < 5
    assert grown["pymalloc_empty"] == pytest.approx(65, abs=6)
    assert abs(grown["rest"]) < 5


def test_the_exact_engine_knows_the_live_python_blocks(tmp_path):
    grown = growth(run(tmp_path / "run.p87", PYTHON_LARGE[0], engine="exact"))
    rows = ledger(tmp_path / "run.p87").rows()

    assert grown["python"] == pytest.approx(60, abs=2)
    assert rows[-1].native is None
    assert "exact engine" in rows[-1].note


def test_without_an_engine_the_ledger_says_what_it_cannot_tell(tmp_path):
    grown = growth(
        run(
            tmp_path / "run.p87",
            MAPPED[0].replace("FILE", repr(str(tmp_path / "f"))),
            engine="none",
        )
    )
    assert grown["file_backed"] == pytest.approx(60, abs=2)
    assert "python" not in grown
    assert "malloc_free" in grown


CHILD = """
import subprocess
child = subprocess.Popen(
    [sys.executable, "-c", "kept = b'x' * 50_000_000; print(1, flush=True); input()"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
)
child.stdout.readline()
"""


def test_children_stand_beside_the_process(tmp_path):
    path = run(tmp_path / "run.p87", "child.kill(); child.wait()", engine="none", before=CHILD)

    first = ledger(path).rows()[0]
    assert 50 < first.children / MB < 75
    assert first.rss / MB < 50


def test_children_are_looked_at_once_more_at_the_end(tmp_path):
    # given a run that is over before children are read a second time (once a second)
    # when it has started a child in between
    path = run(tmp_path / "run.p87", CHILD, engine="none")

    # then the last reading has it
    rows = ledger(path).rows()
    assert rows[0].children == 0
    assert 50 < rows[-1].children / MB < 75


@pytest.mark.skipif(own_group() is None, reason="this process has no control group of its own")
def test_the_control_group_stands_beside_the_process(tmp_path):
    path = run(tmp_path / "run.p87", "kept = b'x' * 50 * MB", engine="none")
    with RecordingReader(path) as reader:
        [*_, last] = reader.ledger()
        [detail] = [probe.detail for probe in reader.probes() if probe.name == "ledger"]
    assert last.group_anonymous > 0
    assert own_group().name in detail


def test_readings_that_became_dear_come_less_often(tmp_path):
    # given 300,000 free blocks that malloc has to walk through: some 4 ms a reading
    # when the recorder ticks 50 times a second for one and a half
    path = run(
        tmp_path / "run.p87",
        "time.sleep(1.5)",
        before="kept = native(600_000, 100); free(kept, range(0, 600_000, 2))",
        engine="none",
        tick_s=0.02,
    )

    # then there are few readings (0.5 % of the time is 7.5 ms), and the first and last among them
    with RecordingReader(path) as reader:
        readings, ticks = reader.ledger(), reader.process()
        [detail] = [probe.detail for probe in reader.probes() if probe.name == "ledger"]
    assert len(ticks) > 30
    assert 2 <= len(readings) <= 6
    assert "without a reading" in detail
    assert readings[-1].native_free > 25 * MB


def test_an_allocator_in_mallocs_place_is_noticed(tmp_path):
    # given a program whose malloc is another than glibc's
    source = tmp_path / "other.c"
    source.write_text(OTHER_MALLOC)
    library = tmp_path / "other.so"
    built = subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", library, source], capture_output=True, check=False
    )
    if built.returncode:
        pytest.skip("there is no C compiler")
    code = """
    from diagnostics.probes.malloc import malloc_reader
    malloc_reader()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "MallocMissingError: another allocator" in done.stderr


OTHER_MALLOC = """
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

/* Hands out memory one after the other and never takes it back. */
static char *place, *end;

void *malloc(size_t size)
{
    size = (size + 31) & ~(size_t)15;
    if (place == NULL || (size_t)(end - place) < size) {
        size_t chunk = size > (64 << 20) ? size : (64 << 20);
        place = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = place + chunk;
    }
    size_t *block = (size_t *)place;
    block[0] = size - 16;
    place += size;
    return block + 2;
}

void free(void *block) { (void)block; }

void *calloc(size_t count, size_t size) { return malloc(count * size); }

void *realloc(void *block, size_t size)
{
    void *larger = malloc(size);
    if (block != NULL) {
        size_t old = ((size_t *)block)[-2];
        memcpy(larger, block, old < size ? old : size);
    }
    return larger;
}
"""


def test_children_grow_while_the_process_waits_for_them(tmp_path):
    # given a child that takes 10 MB more ten times, and a machine on which a look at the children
    # costs 5 ms: what the waiting process itself uses in CPU time would pay for hardly one
    path = run(
        tmp_path / "run.p87",
        """
        for _ in range(10):
            child.stdin.write(b"more\\n")
            child.stdin.flush()
            child.stdout.readline()
        """,
        engine="none",
        before="""
import subprocess, time
from diagnostics.probes import ledger
look = ledger._memory_of_children
def costly(process):
    start = time.thread_time()
    while time.thread_time() < start + 0.005:
        pass
    return look(process)
ledger._memory_of_children = costly
program = '''
import sys, time
kept = []
for line in sys.stdin:
    time.sleep(0.4)
    kept.append(b"x" * 10_000_000)
    print(1, flush=True)
'''
child = subprocess.Popen(
    [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
""",
    )
    seen = {reading.children for reading in ledger(path).rows()}
    assert len(seen) >= 4  # at the start, at the end, and in between
