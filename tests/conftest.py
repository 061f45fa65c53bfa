"""Markers and fixtures that the whole suite shares."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import pure, soak
from tests.support.home import HomeForTests
from tests.support.postgres import Server
from tests.support.pure import _pure  # noqa: F401 - a fixture of every test
from tests.support.soak import rounds  # noqa: F401 - a fixture


def pytest_addoption(parser: pytest.Parser) -> None:
    soak.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    soak.configure(config)
    # How long an example takes to make says how loaded the machine is, and nothing about us.
    settings.register_profile(
        "calm", deadline=None, max_examples=soak.examples(), suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("calm")
    # Started in the background by a shell, a process ignores these, and so would every shell that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    _leave_the_users_home(config)
    config.addinivalue_line(
        "markers",
        "serial: needs the machine to itself (counts wake-ups, measures, or changes something global); "
        "run after the parallel part, one at a time",
    )
    config.addinivalue_line("markers", "pure: starts no process and opens no connection; part of make quick")
    config.addinivalue_line("markers", "process: starts a process or opens a connection, in a package of pure tests")
    config.addinivalue_line(
        "markers",
        'home(whose): "file" gives `hold` the home that the tests of a file share, with no session left in it by the test '
        'before; "own" is the default, and what a test needs that ends, kills or configures the host or looks at all of the home',
    )


@pytest.hookimpl(tryfirst=True)  # before -m is applied
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    pure.mark(items)


def _leave_the_users_home(config: pytest.Config) -> None:
    """An empty user's folder for this test process: start-up files of this machine neither slow a shell nor are hurt by its end.

    A shell that is killed while it starts may leave a lock of somebody's tool behind, and every shell after it waits for that.
    """
    real, folder = Path.home(), tempfile.mkdtemp(prefix="holdfast-user-")
    if (real / ".pyenv").is_dir():  # an interpreter on the PATH that looks for itself there
        os.environ.setdefault("PYENV_ROOT", str(real / ".pyenv"))
    Path(folder, ".profile").touch()  # an empty one, so that a test can look for it
    os.environ["HOME"] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The serial ones are a handful: of the other files, which are thousands of tests, none is read for them."""
    if config.option.markexpr != "serial" or collection_path.suffix != ".py":
        return None
    return True if "mark.serial" not in collection_path.read_text() else None


@pytest.fixture
def hold(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HomeForTests]:
    """A home of the test's own, with its command line and SDK; everything in it is ended afterwards.

    Where the test is marked so, it is the file's: to start and end a host is half of what a short test costs.
    """
    whose = request.node.get_closest_marker("home")
    if whose is not None and whose.args == ("file",):
        home = request.getfixturevalue("shared")
        yield home
        home.clear()
        return
    home = HomeForTests(tmp_path / "home")
    yield home
    home.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HomeForTests]:
    """A home that the tests of a file share: for those that leave it as they found it."""
    home = HomeForTests(tmp_path_factory.mktemp("shared") / "home")
    yield home
    home.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server that this test process shares; each test takes a database of its own from it."""
    server = Server()
    yield server
    server.close()
