"""A loader for each kind of memory trouble that the examples do not show."""

import checks
import pytest
from loads import MADE


def loads(chosen=lambda load: True):
    return pytest.mark.parametrize(
        "load", [load for load in MADE if chosen(load)], ids=lambda load: load.name
    )


@loads()
def test_the_verdict_is_the_right_kind(load, recorded):
    checks.the_kind_is_right(load, recorded)


@loads(lambda load: load.culprit or load.told)
def test_what_has_to_be_changed_is_named(load, recorded):
    checks.the_culprit_is_named(load, recorded)


@loads(lambda load: load.measure)
def test_bytes_per_unit_agree_with_a_run_without_page87(load, recorded, bare):
    checks.the_bytes_are_right(load, recorded, bare)


@loads()
def test_the_ledger_adds_up_to_the_resident_set(load, recorded):
    checks.the_ledger_adds_up(recorded)
