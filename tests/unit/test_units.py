"""Unit marks: numbers, nesting, failures, threads and tasks. The book alone, without a file."""

import asyncio
import gc
import threading
import weakref

import pytest

from diagnostics import current_unit, produced, unit, units
from diagnostics.errors import RunCancelled
from diagnostics.units import UnitBook, activate


class Clock:
    def __init__(self):
        self.t = 0

    def __call__(self):
        self.t += 1
        return self.t


class Book(UnitBook):
    """A book that also tells the final row of each unit."""

    def __init__(self):
        self.calls = []
        super().__init__(
            Clock(),
            lambda index: self.calls.append(("started", int(index))),
            lambda index: self.calls.append(("ended", int(index))),
        )
        self._rows = {}

    def rows(self):
        for change in self.changes():
            if isinstance(change, int):
                del self._rows[change]
            else:
                self._rows[change.index] = change
        return [self._rows[index] for index in sorted(self._rows)]


@pytest.fixture
def book():
    book = Book()
    activate(book)
    yield book
    activate(None)


def test_units_are_numbered_from_one_and_zero_is_outside(book):
    assert current_unit() == 0
    seen = [(current_unit(), item) for item in units(["a", "b", "c"])]
    assert seen == [(1, "a"), (2, "b"), (3, "c")]
    assert current_unit() == 0
    assert [(row.index, row.kind, row.label, row.status) for row in book.rows()] == [
        (1, "page", "page 1", "finished"),
        (2, "page", "page 2", "finished"),
        (3, "page", "page 3", "finished"),
    ]


def test_a_unit_begins_before_the_item_is_asked_for(book):
    def lazy():
        for number in range(2):
            yield (number, current_unit())

    assert list(units(lazy())) == [(0, 1), (1, 2)]
    assert book.calls == [
        ("started", 1),
        ("ended", 1),
        ("started", 2),
        ("ended", 2),
        ("started", 3),  # asked for, and the iterator was at its end
        ("ended", 3),
    ]
    assert [row.index for row in book.rows()] == [1, 2]
    assert book.last_index == 2


def test_a_second_document_goes_on_counting(book):
    for _ in range(2):
        for _ in units("ab", kind="chunk"):
            pass
    assert [row.index for row in book.rows()] == [1, 2, 3, 4]


def test_a_given_number_is_kept_while_it_is_free(book):
    with unit("page", 87) as marked:
        assert current_unit() == 87
        assert marked.number == 87
    with unit("page", 87, label="page 87, second pass"):
        assert current_unit() == 1
    with unit("page"):
        assert current_unit() == 2
    assert [(row.index, row.label) for row in book.rows()] == [
        (1, "page 87, second pass"),
        (2, "page 2"),
        (87, "page 87"),
    ]


def test_numbers_below_one_are_refused():
    with pytest.raises(ValueError, match="numbered from 1"):
        unit("page", 0)


def test_nested_units_keep_the_outer_number(book):
    with unit("document", 5):
        inner = [current_unit() for _ in units("ab")]
        with unit("page", 9):
            assert current_unit() == 5
        assert current_unit() == 5
    assert inner == [5, 5]
    assert [row.index for row in book.rows()] == [5]


def test_an_exception_marks_the_unit_failed_and_goes_on_untouched(book):
    error = ValueError("no such font")
    with pytest.raises(ValueError, match="no such font") as caught, unit("page", 3):
        raise error
    assert caught.value is error
    row = book.rows()[0]
    assert (row.status, row.error_type, row.error_message) == (
        "failed",
        "ValueError",
        "no such font",
    )
    assert current_unit() == 0


def test_an_iterator_that_raises_fails_its_unit(book):
    def lazy():
        yield 1
        raise KeyError("xref")

    with pytest.raises(KeyError):
        list(units(lazy()))
    assert [(row.index, row.status, row.error_type) for row in book.rows()] == [
        (1, "finished", None),
        (2, "failed", "KeyError"),
    ]


def test_a_body_that_raises_fails_its_unit_when_the_run_ends_with_that_error(book):
    def loop():
        for number in units(range(5)):
            if number == 2:
                raise RuntimeError("page 3 is broken")

    with pytest.raises(RuntimeError) as caught:
        loop()
    book.close(caught.value)
    assert [(row.status, row.error_message) for row in book.rows()] == [
        ("finished", None),
        ("finished", None),
        ("failed", "page 3 is broken"),
    ]


def test_a_loop_left_by_break_is_left_even_if_the_run_raises_later(book):
    def loop():
        for _ in units(range(5)):
            break
        raise RuntimeError("after the loop")

    with pytest.raises(RuntimeError) as caught:
        loop()
    assert current_unit() == 0
    book.close(caught.value)
    assert [row.status for row in book.rows()] == ["left"]


def test_decorated_functions_are_a_unit_for_each_call(book):
    @unit("request")
    def handle(number):
        return number, current_unit()

    assert [handle(7), handle(8)] == [(7, 1), (8, 2)]
    assert [(row.kind, row.label) for row in book.rows()] == [
        ("request", "request 1"),
        ("request", "request 2"),
    ]


def test_decorated_coroutines_are_a_unit_while_they_run(book):
    @unit("request")
    async def handle():
        await asyncio.sleep(0)
        return current_unit()

    async def main():
        return await asyncio.gather(handle(), handle(), handle())

    assert asyncio.run(main()) == [1, 2, 3]
    assert {row.status for row in book.rows()} == {"finished"}


def test_a_generator_cannot_be_decorated():
    with pytest.raises(TypeError, match=r"units\(\)"):

        @unit("page")
        def pages():
            yield 1


def test_interleaved_tasks_keep_their_own_unit(book):
    async def work(number, turns):
        with unit("page", number):
            for _ in range(turns):
                assert current_unit() == number
                await asyncio.sleep(0)
        assert current_unit() == 0

    async def main():
        await asyncio.gather(*(work(number, 1 + number % 5) for number in range(1, 40)))

    asyncio.run(main())
    assert [row.index for row in book.rows()] == list(range(1, 40))


def test_async_iterators_are_marked_too(book):
    async def pages():
        for number in range(3):
            await asyncio.sleep(0)
            yield number, current_unit()

    async def main():
        return [(item, current_unit()) async for item in units(pages(), total=3)]

    assert asyncio.run(main()) == [((0, 1), 1), ((1, 2), 2), ((2, 3), 3)]
    assert book.expected == ("page", 3)


def test_leaving_an_async_loop_ends_its_unit_once_asyncio_has_closed_the_iterator(book):
    async def pages():
        yield 1
        yield 2

    async def main():
        async for _ in units(pages()):
            break
        await asyncio.sleep(0.01)  # asyncio closes an iterator that was left in a task of its own
        with unit("page", 50):
            return current_unit()

    assert asyncio.run(main()) == 50
    assert [(row.index, row.status) for row in book.rows()] == [(1, "left"), (50, "finished")]


def test_one_object_marks_anew_each_time_it_is_entered_and_inside_itself_nothing(book):
    page = unit("page")
    with page:
        with page:
            assert current_unit() == 1
        assert current_unit() == 1
    assert current_unit() == 0
    with page:
        assert current_unit() == 2
    assert [row.status for row in book.rows()] == ["finished", "finished"]


def test_one_object_marks_in_many_threads(book):
    # given two threads that are inside it at a time, and leave in the order they came
    page, second_in, first_out = unit("page"), threading.Event(), threading.Event()
    after = []

    def first():
        with page:
            assert second_in.wait(5)
        after.append(current_unit())
        first_out.set()

    thread = threading.Thread(target=first)
    thread.start()
    while not book.running():
        pass
    with page:
        second_in.set()
        assert first_out.wait(5)
        assert current_unit() == 2
    thread.join()
    assert (after, current_unit()) == ([0], 0)
    assert [row.status for row in book.rows()] == ["finished", "finished"]


def test_threads_keep_their_own_unit(book):
    meet = threading.Barrier(4)
    seen = {}

    def work(number):
        with unit("page", number):
            meet.wait(5)  # all four are inside their unit at once
            seen[number] = current_unit()
            meet.wait(5)

    threads = [threading.Thread(target=work, args=(n,), name=f"w{n}") for n in (11, 12, 13, 14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {11: 11, 12: 12, 13: 13, 14: 14}
    assert {row.index: row.thread for row in book.rows()} == {n: f"w{n}" for n in (11, 12, 13, 14)}


def test_many_threads_never_share_a_number(book):
    def work():
        for _ in range(200):
            with unit("chunk"):
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row.index for row in book.rows()] == list(range(1, 1601))


def test_output_is_added_up_per_unit(book):
    for _ in units("ab"):
        produced(characters=3, bytes=4)
        produced(characters=1)
    produced(characters=100)  # outside any unit
    assert [(row.characters, row.bytes) for row in book.rows()] == [(4, 4), (4, 4)]


def test_the_number_of_units_is_known_from_a_list(book):
    next(units(["a", "b", "c"], kind="chunk"))
    assert book.expected == ("chunk", 3)


def test_a_cancelled_run_stops_at_its_next_unit(book):
    done = []
    with pytest.raises(RunCancelled):
        for number in units(range(10)):
            done.append(number)
            if number == 3:
                book.cancel_requested = True
    assert done == [0, 1, 2, 3]


def test_cancelling_is_not_swallowed_by_a_loader_that_catches_everything(book):
    book.cancel_requested = True

    def careless():
        for number in range(3):
            try:
                with unit("page", number + 1):
                    pass
            except Exception:
                continue

    with pytest.raises(RunCancelled):
        careless()


def test_without_a_recording_marks_do_nothing():
    assert list(units("ab")) == ["a", "b"]
    with unit("page", 3):
        assert current_unit() == 0
    produced(characters=1)


def test_marks_survive_a_recording_that_begins_and_ends_in_the_middle():
    book = Book()
    iterator = units(range(6))
    assert next(iterator) == 0
    activate(book)
    assert [next(iterator), next(iterator)] == [1, 2]
    activate(None)
    assert list(iterator) == [3, 4, 5]
    assert [row.index for row in book.rows()] == [1, 2]


class Page:
    pass


def test_units_keep_no_reference_to_the_item(book):
    seen = []

    def pages():
        for _ in range(3):
            page = Page()
            seen.append(weakref.ref(page))
            yield page
            del page
            assert seen[-1]() is None, "the page is held while the next one is made"

    gc.disable()
    try:
        for page in units(pages()):
            del page
    finally:
        gc.enable()
    assert len(seen) == 3


@pytest.mark.parametrize("number", [2**39, 2**63, 10**30, -1, 1.5, float("nan"), "7"])
def test_numbers_that_a_recording_cannot_hold_are_refused_at_the_mark(book, number):
    with pytest.raises((TypeError, ValueError)):
        unit("page", number)
    assert book.rows() == []
    with unit("page", 2**39 - 1):
        assert current_unit() == 2**39 - 1


@pytest.mark.parametrize("make", [unit, lambda kind: units("ab", kind)])
@pytest.mark.parametrize("kind", [None, 7, b"page"])
def test_a_kind_is_a_text(make, kind):
    with pytest.raises(TypeError, match="text"):
        make(kind)


@pytest.mark.parametrize("amount", [10**30, -1, float("nan"), 1.5, "7", None])
def test_output_that_is_no_whole_amount_is_refused(book, amount):
    with unit("page", 1):
        for name in ("characters", "bytes"):
            with pytest.raises((TypeError, ValueError)):
                produced(**{name: amount})
        produced(characters=2**63 - 1)
        produced(characters=5)
    assert [(row.status, row.characters, row.bytes) for row in book.rows()] == [
        ("finished", 2**63 - 1, 0)
    ]


def test_texts_are_storable_and_messages_do_not_grow_without_end(book):
    with unit("p\ud800", 1, label="l\udfff\0"):
        pass
    for message in ("m\ud800", "x" * 20_000):
        with pytest.raises(LookupError), unit("page"):
            raise LookupError(message)
    first, second, third = book.rows()
    assert (first.kind, first.label) == ("p\\ud800", "l\\udfff\\x00")
    assert second.error_message == "m\\ud800"
    assert third.error_message == "x" * 10_000 + " [cut: 10,000 of 20,000 characters kept]"


class SpeechlessError(Exception):
    def __str__(self):
        raise RuntimeError


def test_an_exception_without_a_message_reaches_the_caller_all_the_same(book):
    def lazy():
        raise SpeechlessError
        yield

    with pytest.raises(SpeechlessError), unit("page"):
        raise SpeechlessError
    with pytest.raises(SpeechlessError):
        list(units(lazy()))
    assert [(row.error_type, row.error_message) for row in book.rows()] == [
        ("SpeechlessError", "<message not available: RuntimeError>")
    ] * 2


def test_the_totals_of_loops_of_one_kind_are_added_up(book):
    for _ in units(range(300)):
        list(units(range(50)))  # inside a unit nothing is marked, so nothing is expected either
    list(units(iter(()), total=0))
    list(units(iter(()), total=-5))
    thread = threading.Thread(target=lambda: list(units(range(2100))))
    thread.start()
    thread.join()
    assert book.expected == ("page", 2400)
    assert len(book.rows()) == 2400
