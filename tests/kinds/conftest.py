from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import NotInstallableError
from loads import Load
from measures import Bare, Recorded
from running import Runner

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def runner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runner]:
    """It has begun with the loads of all the tests that will run: they need not wait in turn."""
    assert request.config.cache is not None
    kept = Path(request.config.cache.mkdir("page87-environments"))
    runner = Runner(kept, tmp_path_factory.mktemp("loads"))
    for item in request.session.items:
        if isinstance(item, pytest.Function) and HERE in item.path.parents:
            load = item.callspec.params["load"]
            if "recorded" in item.fixturenames:
                runner.begin_recorded(load)
            if "bare" in item.fixturenames:
                runner.begin_bare(load)
    yield runner
    runner.close()


@pytest.fixture
def recorded(runner: Runner, load: Load) -> Recorded:
    try:
        return runner.recorded(load)
    except NotInstallableError as reason:
        pytest.skip(f"{load.environment}: {reason}")


@pytest.fixture
def bare(runner: Runner, load: Load) -> Bare:
    try:
        return runner.bare(load)
    except NotInstallableError as reason:
        pytest.skip(f"{load.environment}: {reason}")
