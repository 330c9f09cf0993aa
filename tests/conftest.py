"""Fixtures of all tests."""

import signal

import pytest


@pytest.fixture
def default_signal_handlers():
    """Give signals the handlers that a program in a terminal has: `nohup` and `&` start pytest with some ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    defaults = {number: signal.SIG_DFL for number in numbers} | {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in defaults.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
