"""Fixtures of all tests."""

import gc
import json
import signal
import sys
from types import SimpleNamespace

import gymnasium
import pytest
from hypothesis import settings

from counted_env import Counted
from hindsight_rl import errors

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")

gc.set_threshold(100_000)  # as the command line does: torch and others make many objects, which else are searched again


@pytest.fixture
def counted():
    """Return an environment class that counts its instances, from 0."""
    Counted.made = Counted.closed = 0
    return Counted


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Work in an empty folder, and return a function that forgets the modules and environments of the files in it."""
    monkeypatch.chdir(tmp_path)

    def forget():
        saved = {path.stem for path in tmp_path.glob("*.py")}
        for name, spec in list(gymnasium.registry.items()):
            if getattr(spec.entry_point, "__module__", None) in saved:
                del gymnasium.registry[name]
        for name in saved:
            sys.modules.pop(name, None)

    yield forget
    forget()


@pytest.fixture
def default_signal_handlers():
    """Give signals the handlers that a program in a terminal has: `nohup` and `&` start pytest with some ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    defaults = dict.fromkeys(numbers, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in defaults.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def no_pictures(monkeypatch):
    """Write pages without their pictures, which have tests of their own."""
    monkeypatch.setattr("hindsight_rl.report.write._with_pictures", lambda page, path: path)


@pytest.fixture
def installed_from(monkeypatch):
    """Pretend that the package was installed from this url, or from the index for None."""

    def pretend(url):
        text = json.dumps({"url": url}) if url else None
        monkeypatch.setattr(errors.metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))

    return pretend
