"""Locks that are free in a forked child."""

from __future__ import annotations

import os
import threading
from typing import ClassVar
from weakref import WeakSet


class ForkLocks:
    """Makes re-entrant locks that a fork waits for.

    A child of `os.fork` has only the thread that forked. A lock that another thread holds at that moment would never be
    released in the child. So a fork first acquires every lock: no call is half done then, and the child finds them free.
    """

    _locks: ClassVar[WeakSet[threading.RLock]] = WeakSet()
    _changing: ClassVar[threading.RLock] = threading.RLock()  # guards `_locks`
    _held: ClassVar[list[threading.RLock]] = []  # by the fork under way
    _is_registered: ClassVar[bool] = False

    @classmethod
    def make(cls) -> threading.RLock:
        """Return a new lock."""
        lock = threading.RLock()
        with cls._changing:
            if not cls._is_registered:
                cls._is_registered = True
                os.register_at_fork(before=cls._acquire, after_in_parent=cls._release, after_in_child=cls._release)
            cls._locks.add(lock)
        return lock

    @classmethod
    def _acquire(cls) -> None:
        cls._changing.acquire()
        cls._held = list(cls._locks)
        for lock in cls._held:
            lock.acquire()

    @classmethod
    def _release(cls) -> None:
        for lock in cls._held:
            lock.release()
        cls._held = []
        cls._changing.release()
