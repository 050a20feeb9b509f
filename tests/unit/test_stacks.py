"""Allocation stacks as they are shown: without the workbench's own outer calls."""

import pytest

from diagnostics.analysis.alive import Alive, stack_tree
from diagnostics.analysis.stacks import Stacks, is_own, shown_sites
from diagnostics.recording.model import Frame, Site

HERE = "/srv/page87/diagnostics"
THERE = "/srv/venv/lib/python3.13/site-packages/diagnostics"
PDFPLUMBER = "/srv/venv/lib/python3.13/site-packages/pdfplumber/page.py"

STARTED = [("<frozen runpy>", "_run_module_as_main"), ("{0}/cli.py", "main")]
RUN = [*STARTED, ("{0}/commands/run.py", "main"), ("{0}/launch/inline.py", "_Run.document")]
MARKED = [*RUN, ("{0}/launch/inline.py", "_load"), ("{0}/units.py", "_marked")]
LOADER = [("{0}/loaders/pdf_pdfplumber.py", "read"), (PDFPLUMBER, "chars")]
OWN = [("/srv/app/ingest.py", "<module>"), ("/srv/app/ingest.py", "load"), (PDFPLUMBER, "chars")]


def sites_of(*calls, root=HERE):
    """A stack as sites: numbers from 1, outermost first, each on the line of its number."""
    return {
        number: Site(number, number - 1 or None, file.format(root), number, function)
        for number, (file, function) in enumerate(calls, start=1)
    }


def shown(*calls, root=HERE):
    frames = Stacks(sites_of(*calls, root=root)).frames(len(calls))
    return [(frame.file.replace(root, "{0}"), frame.function) for frame in frames]


@pytest.mark.parametrize("root", [HERE, THERE], ids=["checkout", "installed"])
@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ([*MARKED, ("{0}/loaders/base.py", "FileDocument.pages")], LOADER),
        ([*RUN, ("{0}/launch/inline.py", "load")], [("{0}/loaders/word.py", "__init__")]),
        ([*RUN, ("{0}/launch/script.py", "<lambda>")], OWN),
        ([*MARKED, ("{0}/loaders/callables.py", "<genexpr>")], OWN),
        ([("/usr/lib/python3.13/threading.py", "run"), ("{0}/launch/thread.py", "_work")], OWN),
    ],
    ids=["read", "opened", "script", "function", "thread"],
)
def test_a_stack_begins_where_the_workbench_hands_over(root, outer, inner):
    assert shown(*outer, *inner, root=root) == inner


@pytest.mark.parametrize(
    "marks",
    [
        [("{0}/units.py", "_marked")],
        [("{0}/units.py", "_marked_async")],
        [("{0}/units.py", "unit.__call__.<locals>.marked")],
        [
            ("{0}/recorder.py", "Recorder.__call__.<locals>.recorded"),
            ("{0}/units.py", "_marked"),
        ],
    ],
)
def test_marks_in_peoples_own_code_are_left_out(marks):
    # given a script that records itself: the workbench's frames are not outside of it
    main = ("/srv/app/ingest.py", "main")
    assert shown(main, *marks, *OWN) == [main, *OWN]
    # also where they stand outermost
    assert shown(*marks, *OWN) == OWN


def test_what_a_mark_allocates_keeps_its_stack():
    calls = [OWN[0], ("{0}/units.py", "_marked"), ("{0}/units.py", "_Step.end")]
    assert shown(*calls) == calls


def test_folders_that_only_sound_like_the_workbenchs_are_nobodys():
    calls = [("/srv/app/launch/inline.py", "main"), ("/srv/app/diagnostics/cli.py", "run"), *OWN]
    assert shown(*calls) == calls


def test_what_the_workbench_allocated_itself_keeps_its_stack():
    assert shown(*MARKED) == MARKED


def test_two_loads_in_one_stack_begin_with_the_inner_one():
    assert shown(*RUN, *OWN, *RUN, *LOADER) == LOADER


def test_the_recording_keeps_what_is_not_shown():
    sites = sites_of(*RUN, *OWN)
    cut = shown_sites(sites)
    assert cut.keys() == sites.keys()
    first = len(RUN) + 1
    assert [number for number in sites if cut[number] != sites[number]] == [first]
    assert cut[first].parent is None


def test_the_pictures_of_stacks_begin_there_too():
    calls = [*MARKED, *LOADER]
    alive = Alive(0, {len(calls): (1000, 1)})
    root, *nodes = stack_tree(alive, shown_sites(sites_of(*calls)))
    assert "pdf_pdfplumber.py" in root.place.detail
    assert not any("launch" in node.place.detail for node in [root, *nodes])


def test_an_installed_workbench_imports_nothing_by_running():
    # given frames called <module> outside of the loader: those of the installed command
    calls = [("{0}/__main__.py", "<module>"), *MARKED, *LOADER]
    assert not Stacks(sites_of(*calls, root=THERE)).is_import(len(calls))


@pytest.mark.parametrize("root", [HERE, THERE], ids=["checkout", "installed"])
def test_a_built_in_loader_stands_in_for_own_code(root):
    assert is_own(f"{root}/loaders/pdf_pdfplumber.py")
    assert is_own("/srv/app/ingest.py")
    assert not is_own(PDFPLUMBER)
    stacks = Stacks(sites_of(*MARKED, *LOADER, root=root))
    assert stacks.frames(stacks.own_line(len(MARKED) + 2))[-1] == Frame(
        f"{root}/loaders/pdf_pdfplumber.py", len(MARKED) + 1, "read"
    )
