from pathlib import Path

import pytest
from environments import NotInstallableError
from loads import Load
from measures import Bare, Recorded
from running import Runner


@pytest.fixture(scope="session")
def runner(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    kept = Path(pytestconfig.cache.mkdir("page87-environments"))
    return Runner(kept, tmp_path_factory.mktemp("loads"))


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
