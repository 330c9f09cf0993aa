"""One thread at a time uses a model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import InUseError


class OneThread:
    """Lets one thread at a time call some methods of an object. A second thread gets an error at once.

    The thread that is inside may call them again, as a callback does.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._method = ""  # that the thread inside called first

    @contextmanager
    def calls(self, method: str) -> Iterator[None]:
        """Run the block as a call of `method`. Raises InUseError if another thread is inside one."""
        if not self._lock.acquire(blocking=False):
            raise InUseError(
                f"`{method}` was called while another thread is in `{self._method}` of the same model. Wait until it "
                f"returns, call `{method}` in a callback, or use one model per thread."
            )
        before, self._method = self._method, self._method or method
        try:
            yield
        finally:
            self._method = before
            self._lock.release()
