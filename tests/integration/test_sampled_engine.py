"""The sampled engine in real processes: right sums, right units, and no harm done."""

import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest

from diagnostics.recording.model import unit_and_site
from diagnostics.recording.reader import RecordingReader

pytest.importorskip(
    "diagnostics.probes._heap", reason="the sampled engine was not built: no C compiler"
)

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "diagnostics" / "probes" / "_heap.c"


def run(body, *args, env=None, check=True, timeout=120):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(body), *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
    )
    assert done.returncode == 0 or not check, done.stderr
    return done


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.p87"


def by_unit(frame):
    units = defaultdict(int)
    for key, (size, _blocks) in frame.values.items():
        units[unit_and_site(key)[0]] += size
    return units


def retained(path):
    """Bytes by birth unit at the end."""
    with RecordingReader(path) as reader:
        return by_unit(reader.state_at("alive", reader.last_ns()))


# Each unit keeps 2 to 4 MB of small and middling blocks, and throws as much away.
LOAD = """
import random, sys, tracemalloc
from diagnostics import record, units

def work(unit, rng):
    kept = []
    for _ in range(1100 + unit % 5 * 200):
        kept.append(bytes(rng.randrange(200, 4000)))
        bytes(rng.randrange(200, 4000))
    return kept

rng = random.Random(87)
everything = []
if sys.argv[2] == "exact":
    tracemalloc.start()
    sizes = []
    for unit in range(1, 13):
        before = tracemalloc.get_traced_memory()[0]
        everything.append(work(unit, rng))
        sizes.append(tracemalloc.get_traced_memory()[0] - before)
    print(*sizes)
else:
    with record(sys.argv[1], engine="sampled", types=False):
        for unit in units(range(1, 13)):
            everything.append(work(unit, rng))
"""


def test_it_agrees_with_the_exact_engine(path):
    exact = [int(word) for word in run(LOAD, path, "exact").stdout.split()]
    run(LOAD, path, "sampled")
    estimated = retained(path)
    assert sum(exact) > 20_000_000
    assert sum(estimated.values()) == pytest.approx(sum(exact), rel=0.02)
    for unit, size in enumerate(exact, start=1):
        assert size > 2_000_000
        assert estimated[unit] == pytest.approx(size, rel=0.05), f"unit {unit}"
    with RecordingReader(path) as reader:
        heap = {h.index: h for h in reader.unit_heaps()}
        total = reader.heap_totals()[-1].bytes
    assert total == pytest.approx(sum(exact), rel=0.02)
    for unit, size in enumerate(exact, start=1):
        # As much again was thrown away, a block at a time, and lists were grown.
        assert 1.9 * size < heap[unit].born < 2.4 * size
        assert heap[unit].peak == pytest.approx(size, rel=0.06)


SHAPES = """
import collections, sys, time
from diagnostics import record, units
keep = {"leak": None, "band": 10, "diagonal": 0}[sys.argv[2]]
kept = collections.deque(maxlen=keep)
with record(sys.argv[1], engine="sampled", types=False, captures=False, tick_s=0.01):
    for unit in units(range(1, 41)):
        blocks = [bytes(2000) for _ in range(500)]
        time.sleep(0.005)
        kept.append(blocks)
        del blocks
        time.sleep(0.06)
"""


@pytest.mark.parametrize("shape", ["leak", "band", "diagonal"])
def test_retention_with_known_answers(path, shape):
    run(SHAPES, path, shape)
    checked = 0
    with RecordingReader(path) as reader:
        for row in reader.units():
            # Its blocks were made in the first half; a tick of 10 ms later the picture has them.
            alive = by_unit(reader.state_at("alive", row.end_ns - 1_000_000))
            unit = row.index
            oldest = {"leak": 1, "band": max(1, unit - 9), "diagonal": unit}[shape]
            expected = set(range(oldest, unit + 1))
            if shape == "diagonal":
                expected = set()  # the deque keeps nothing
            assert {index for index, size in alive.items() if index and size > 200_000} == expected
            for index in expected:
                assert alive[index] == pytest.approx(500 * 2033, rel=0.15)
            checked += 1
    assert checked == 40


def test_threads_and_tasks_land_on_their_own_unit(path):
    run(
        """
        import asyncio, sys, threading
        from diagnostics import record, unit
        kept, meet = {}, threading.Barrier(4)
        def thread_work(number):
            with unit("page", number):
                for _ in range(10):
                    meet.wait()
                    kept.setdefault(number, []).extend(bytes(3000) for _ in range(100))
        async def task_work(number):
            with unit("page", number):
                for _ in range(10):
                    await asyncio.sleep(0)
                    kept.setdefault(number, []).extend(bytes(3000) for _ in range(number * 10))
        async def tasks():
            await asyncio.gather(*(task_work(n) for n in range(5, 11)))
        with record(sys.argv[1], engine="sampled", types=False):
            threads = [threading.Thread(target=thread_work, args=(n,)) for n in range(1, 5)]
            for t in threads: t.start()
            for t in threads: t.join()
            asyncio.run(tasks())
        """,
        path,
    )
    alive = retained(path)
    for number in range(1, 5):
        assert alive[number] == pytest.approx(1000 * 3033, rel=0.1)
    for number in range(5, 11):
        assert alive[number] == pytest.approx(number * 100 * 3033, rel=0.12)


def test_stacks_are_whole_and_named(path):
    run(
        """
        import sys
        from diagnostics import record, unit
        def inner(): return [bytes(1000) for _ in range(2000)]
        def outer(): return inner()
        with record(sys.argv[1], engine="sampled", types=False), unit("page", 7):
            kept = outer()
        """,
        path,
    )
    with RecordingReader(path) as reader:
        sites, state = reader.sites(), reader.state_at("alive", reader.last_ns())
    assert state is not None
    key = max(state.values, key=lambda k: state.values[k][0])
    unit, site = unit_and_site(key)
    names = []
    while site:
        names.append(sites[site].function.split(".")[-1])
        site = sites[site].parent or 0
    assert unit == 7
    assert [name for name in names if name != "<listcomp>"] == ["inner", "outer", "<module>"]
    size, blocks = state.values[key]
    assert size == pytest.approx(2000 * 1033, rel=0.1)
    assert blocks == pytest.approx(2000, rel=0.1)


def test_a_stack_that_came_after_the_tick_has_a_site_as_well(path):
    # given a capture that another thread leaves between a tick's reading and its writing
    run(
        """
        import sys, threading
        from diagnostics import Recorder, unit
        from diagnostics.probes import _heap
        recorder = Recorder(sys.argv[1], engine="sampled")
        recorder.start()
        reading, allocated, kept = threading.Event(), threading.Event(), []
        def later(): return [bytes(1000) for _ in range(2000)]
        def write(writer):
            reading.set()
            assert allocated.wait(10)
            named = [function for _parent, _file, function, _line in _heap.nodes(1)]
            node = 1 + named.index("later")
            writer.put_meta({"site": recorder._probes.sampled.site(node, writer)})
        recorder._scribe.leave(write)
        with unit("page"):
            assert reading.wait(10)
            kept.append(later())
            allocated.set()
        recorder.stop()
        """,
        path,
    )
    with RecordingReader(path) as reader:
        assert reader.sites()[reader.meta()["site"]].function == "later"
        assert [probe.state for probe in reader.probes() if probe.name == "heap"] == ["on"]
        assert not [entry for entry in reader.log() if entry.level == "error"]


def test_live_samples_stay_under_their_number_and_the_sums_stay_right():
    done = run(
        """
        import contextvars
        from diagnostics.probes import _heap
        unit = contextvars.ContextVar("unit", default=0)
        _heap.start(unit, 64.0, 2000, 64, False, 5)
        kept = [bytes(500 + n % 500) for n in range(60_000)]
        status = _heap.status()
        print(status["samples"], status["rate"], status["thinned"], status["live_bytes"])
        print(sum(map(__import__("sys").getsizeof, kept)))
        """
    )
    first, true = done.stdout.splitlines()
    samples, rate, thinned, live = (float(word) for word in first.split())
    assert samples <= 2000
    assert rate > 64
    assert thinned > 0
    # About 1,500 samples are left: four standard errors are some 10 %.
    assert live == pytest.approx(float(true), rel=0.1)


SAFE = """
import contextvars, gc, random, sys, threading, time
from diagnostics.probes import _heap
unit = contextvars.ContextVar("unit", default=0)
"""

STRESS = (
    SAFE
    + """
def churn(seed, until):
    rng, kept = random.Random(seed), {}
    while time.monotonic() < until:
        unit.set(rng.randrange(50))
        for _ in range(200):
            kept[rng.randrange(400)] = rng.choice((bytes, bytearray))(rng.randrange(1, 9000))
            kept[rng.randrange(400)] = [None] * rng.randrange(300)
            kept.pop(rng.randrange(400), None)
            kept[rng.randrange(400)] = {str(n): n for n in range(rng.randrange(40))}
        kept.setdefault("grown", bytearray()).extend(b"x" * rng.randrange(3000))
        if len(kept["grown"]) > 300_000:
            del kept["grown"]

seconds = float(sys.argv[1])
_heap.start(unit, 256.0, 3000, 64, False, 7)
until = time.monotonic() + seconds
threads = [threading.Thread(target=churn, args=(n, until)) for n in range(6)]
for t in threads: t.start()
while any(t.is_alive() for t in threads):
    _heap.drain_pairs(); _heap.drain_units(); _heap.drain_nodes(); _heap.nodes(1)
    _heap.rehook(); _heap.samples(); gc.collect()
    time.sleep(0.01)
for t in threads: t.join()
del threads
gc.collect()
status = _heap.status()
assert status["samples"] <= 3000 and status["live_bytes"] >= 0, status
_heap.stop()
print("done", status["points"] > 1000)
"""
)


def test_many_threads_at_once_do_no_harm():
    seconds = os.environ.get("PAGE87_STRESS_SECONDS", "4")
    done = run(STRESS, seconds, timeout=float(seconds) + 120)
    assert done.stdout == "done True\n"


def test_it_runs_on_the_debug_allocator():
    done = run(STRESS, 2, env={"PYTHONMALLOC": "debug"})
    assert done.stdout == "done True\n"
    done = run(STRESS, 1, env={"PYTHONMALLOC": "malloc"})
    assert done.stdout == "done True\n"


def test_it_is_clean_under_the_address_sanitizer(tmp_path):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc to build with -fsanitize=address")
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(runtime).is_absolute():
        pytest.skip("gcc has no AddressSanitizer here")
    package = tmp_path / "asan"
    package.mkdir()
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    subprocess.run(
        [
            *(compiler, "-g", "-O1", "-fsanitize=address", "-fPIC", "-shared", "-std=c11"),
            *("-D_GNU_SOURCE", f"-I{sysconfig.get_paths()['include']}"),
            *("-o", str(package / f"_heap{suffix}"), str(SOURCE), "-lm"),
        ],
        check=True,
    )
    done = run(
        STRESS.replace("from diagnostics.probes import _heap", "import _heap"),
        3,
        env={
            "PYTHONPATH": str(package),
            "LD_PRELOAD": runtime,
            "PYTHONMALLOC": "malloc",  # so that the sanitizer sees every block
            "ASAN_OPTIONS": "detect_leaks=0",
        },
        check=False,
    )
    assert "AddressSanitizer" not in done.stderr, done.stderr
    assert done.stdout == "done True\n", done.stderr


def test_a_thousand_starts_and_stops_leave_nothing_behind():
    done = run(
        SAFE
        + """
import resource
def rounds(n):
    for _ in range(n):
        _heap.start(unit, 512.0, 1000, 64, False, 1)
        kept = [bytes(1000) for _ in range(50)]
        _heap.drain_pairs()
        _heap.stop()
rounds(200)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rounds(1000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    )
    assert int(done.stdout) < 2000, "KiB"


# Each keeps blocks while both tools look on, in a different order of starting and stopping.
OTHER_TOOLS = {
    "inside": """
start()
other.start()
kept = keep()
other.stop()
""",
    "around": """
other.start()
start()
kept = keep()
""",
    "goes on after us": """
start()
other.start()
_heap.stop()
start()
kept = keep()
""",
    "before us takes us out": """
other.start()
start()
other.stop()
assert _heap.rehook() is wraps_ours
assert _heap.rehook() is False
kept = keep()
""",
    "is gone before us": """
other.start()
early = [bytes(2000) for _ in range(1000)]
other.stop()
start()
del early
kept = keep()
""",
}

KEEP = """
def start():
    _heap.start(unit, 512.0, 100_000, 64, False, 1)

def keep():
    before = _heap.status()["live_bytes"]
    blocks = [bytes(2000) for _ in range(2000)]
    print(_heap.status()["live_bytes"] - before)
    return blocks
"""

TRACEMALLOC = """
import tracemalloc as other
wraps_ours = True
"""

MEMRAY = """
import os, memray
wraps_ours = {python}

class Other:
    tracker = None

    def start(self):
        capture = memray.FileDestination(os.path.join(sys.argv[1], "capture.bin"), overwrite=True)
        self.tracker = memray.Tracker(destination=capture, trace_python_allocators={python})
        self.tracker.__enter__()

    def stop(self):
        if self.tracker is not None:
            self.tracker.__exit__(None, None, None)
        self.tracker = None

other = Other()
"""

TOOLS = {
    "tracemalloc": TRACEMALLOC,
    "memray": MEMRAY.format(python=False),  # wraps malloc, which lies below ours
    "memray with Python allocators": MEMRAY.format(python=True),
}


@pytest.mark.parametrize("order", OTHER_TOOLS)
@pytest.mark.parametrize("tool", TOOLS)
def test_another_tool_that_wraps_the_allocators_gets_along(tool, order, tmp_path):
    if "memray" in tool:
        pytest.importorskip("memray")
    done = run(
        SAFE
        + TOOLS[tool]
        + KEEP
        + OTHER_TOOLS[order]
        + """
_heap.stop()
other.stop()
del kept
print(len([bytes(3000) for _ in range(1000)]))
""",
        tmp_path,
    )
    live, rest = done.stdout.split()
    assert int(live) == pytest.approx(2000 * 2033, rel=0.06)
    assert rest == "1000"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_recording_finds_its_way_back_when_another_tool_took_it_out(tool, path, tmp_path):
    if "memray" in tool:
        pytest.importorskip("memray")
    run(
        SAFE
        + "from diagnostics import record, unit as marked\n"
        + TOOLS[tool]
        + """
other.start()
with record(sys.argv[2], engine="sampled", types=False):
    other.stop()
    time.sleep(0.5)  # some ticks: at one of them the recorder sees that it is out
    with marked("page", 1):
        kept = [bytes(2000) for _ in range(2000)]
    other.start()
    with marked("page", 2):
        kept += [bytes(2000) for _ in range(1000)]
other.stop()
""",
        tmp_path,
        path,
    )
    alive = retained(path)
    assert alive[1] == pytest.approx(2000 * 2033, rel=0.15)
    assert alive[2] == pytest.approx(1000 * 2033, rel=0.2)


def test_a_forked_child_is_not_sampled_and_its_parent_goes_on(path):
    run(
        """
        import os, sys
        from diagnostics import record, unit
        from diagnostics.probes import _heap
        with record(sys.argv[1], engine="sampled", types=False, tick_s=0.02), unit("page", 1):
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    junk = [bytes(1000) for _ in range(1000)]
                    assert _heap.status()["enabled"] is False
                    sys.exit(0)
                assert os.waitpid(child, 0)[1] == 0
            kept = [bytes(1000) for _ in range(3000)]
        """,
        path,
    )
    assert retained(path)[1] == pytest.approx(3000 * 1033, rel=0.08)


def test_a_forked_child_can_record_while_its_parent_records(path, tmp_path):
    run(
        """
        import os, sys
        from diagnostics import record, unit
        with record(sys.argv[1], engine="sampled", types=False), unit("page", 1):
            kept = [bytes(1000) for _ in range(3000)]
            child = os.fork()
            if child == 0:
                with record(sys.argv[2], engine="sampled", types=False), unit("page", 2):
                    own = [bytes(1000) for _ in range(2000)]
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        """,
        path,
        tmp_path / "child.p87",
    )
    assert retained(path)[1] == pytest.approx(3000 * 1033, rel=0.08)
    of_the_child = retained(tmp_path / "child.p87")
    assert of_the_child[2] == pytest.approx(2000 * 1033, rel=0.1)
    assert of_the_child.get(1, 0) < 50_000, "what its parent left in it is not in its sums"


def test_a_process_that_exits_while_recording_exits_cleanly(path):
    done = run(
        """
        import sys
        from diagnostics import Recorder, unit
        Recorder(sys.argv[1], engine="sampled").start()
        kept = [bytes(1000) for _ in range(3000)]
        sys.exit(0)
        """,
        path,
    )
    assert done.stderr == ""
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "finished"


IN_ANOTHER = """
import contextvars, sys
sys.path.insert(0, {root!r})
try:
    from diagnostics.probes import _heap
    _heap.start(contextvars.ContextVar("u", default=0), 512.0, 1000, 64, False, 1)
except (ImportError, RuntimeError) as error:
    with open(1, "w", closefd=False) as out:
        out.write(f"refused: {{error}}")
"""


def test_a_sub_interpreter_is_refused_clearly():
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    code = IN_ANOTHER.format(root=str(ROOT))
    done = run(
        f"import {name} as interpreters\ninterpreters.run_string(interpreters.create(), {code!r})\n"
    )
    assert done.stdout.startswith("refused: ")


WITHOUT_THE_GIL = """
import ctypes, sys, threading, time
import {name} as interpreters
from diagnostics import record
interpreters.create()
libc = ctypes.CDLL(None)  # its calls let go of the GIL
libc.PyMem_RawMalloc.restype = ctypes.c_void_p
libc.PyMem_RawMalloc.argtypes = [ctypes.c_size_t]
libc.PyMem_RawFree.argtypes = [ctypes.c_void_p]
end = time.monotonic() + 3
def native():
    while time.monotonic() < end:
        libc.PyMem_RawFree(libc.PyMem_RawMalloc(20_000))
def deep(n):
    return [n] if n == 0 else [*deep(n - 1), n]
with record(sys.argv[1], engine="sampled", types=False):
    threads = [threading.Thread(target=native) for _ in range(3)]
    for thread in threads: thread.start()
    while time.monotonic() < end:
        deep(40)
        exec(compile("def f(a): return [a] * 50\\nf(1)", "made", "exec"), {{}})
    for thread in threads: thread.join()
"""


def test_threads_without_the_gil_are_told_apart_beside_a_sub_interpreter(path):
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    run(WITHOUT_THE_GIL.format(name=name), path)
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "finished"


def test_threads_of_the_host_are_not_counted_and_those_of_the_run_are(path):
    run(
        """
        import sys, threading, types
        # What marks a Streamlit server in this process; the server itself plays no part here.
        sys.modules["streamlit.runtime"] = types.ModuleType("streamlit.runtime")
        from diagnostics import record, unit
        kept, go, over = [], threading.Event(), threading.Event()
        def host():
            go.wait()
            kept.append([bytes(1000) for _ in range(5000)])
            over.set()
        threading.Thread(target=host, daemon=True).start()
        def helper():
            with unit("page", 2):
                kept.append([bytes(1000) for _ in range(2000)])
        with record(sys.argv[1], engine="sampled", types=False):
            with unit("page", 1):
                kept.append([bytes(1000) for _ in range(3000)])
            go.set(); over.wait()
            thread = threading.Thread(target=helper); thread.start(); thread.join()
        """,
        path,
    )
    alive = retained(path)
    assert alive[1] == pytest.approx(3000 * 1033, rel=0.08)
    assert alive[2] == pytest.approx(2000 * 1033, rel=0.1)
    assert alive.get(0, 0) < 1_000_000


def test_a_total_has_the_moment_of_its_count(path):
    """A tick that waits for the GIL writes rows of other moments than that of its beginning."""
    run(
        """
        import sys
        from diagnostics import record, units
        with record(sys.argv[1], types=False):
            kept = [bytes(100_000) for _ in units(range(3))]
        """,
        path,
    )
    with RecordingReader(path) as reader:
        # The sums by site are taken just before it, and have their own moment too.
        taken = [frame.t_ns for frame in reader.frames("heap")]
        totals = [total.t_ns for total in reader.heap_totals()]
    assert taken[0] < totals[0]
    assert taken[-1] < totals[-1]


def test_where_it_was_not_built_the_exact_engine_takes_its_place_and_says_why(path):
    run(
        """
        import os, sys
        sys.modules["diagnostics.probes._heap"] = None  # as where there was no compiler
        from diagnostics import record, units
        recorder = record(sys.argv[1])
        for name in sys.argv[1:]:
            with recorder:
                kept = [bytes(100_000) for _ in units(range(3))]
            os.rename(sys.argv[1], name + ".done")
        """,
        path,
        path.with_name("second.p87"),
    )
    for name in ("run.p87.done", "second.p87.done"):  # a second recording falls back as the first
        with RecordingReader(path.with_name(name)) as reader:
            assert reader.meta()["settings"]["engine"] == "exact"
            assert any("was not built here" in entry.message for entry in reader.log())
            assert reader.heap_totals()[-1].bytes > 300_000


def test_what_is_kept_of_empty_units_does_not_grow_in_python(path):
    body = """
    import sys, time, tracemalloc
    from diagnostics import record, units

    def pass_by(count):
        for _ in units(range(count)):
            pass
        time.sleep(0.6)  # a tick, or more where ticks are far apart

    with record(sys.argv[1], engine="sampled"):
        pass_by(2_000)
        tracemalloc.start()
        pass_by(1_000)
        before, _ = tracemalloc.get_traced_memory()
        pass_by(20_000)
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    print(after - before)
    """
    grown = int(run(body, path).stdout)
    assert grown < 400_000  # a number and a place in a table of each would be more than 1 MB
