"""Pictures without a display: EGL, which MuJoCo draws with, and what to install where it is not there."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import MutableMapping

APT_LINE = "apt-get update && apt-get install -y libegl1 libegl-mesa0 libgl1-mesa-dri"
_MOST_DEVICES = 16


def has_display() -> bool:
    """Whether a window can be opened."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def draw_without_display(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have MuJoCo draw by EGL where there is no display, unless MUJOCO_GL says otherwise; before MuJoCo is imported.

    environment: the variables of this process, which MuJoCo reads.
    """
    if not has_display():
        environment.setdefault("MUJOCO_GL", "egl")
        environment.setdefault("PYOPENGL_PLATFORM", environment["MUJOCO_GL"])


def egl_devices() -> int:
    """How many devices EGL can draw with, a processor among them; 0 where EGL itself is missing."""
    try:
        library = ctypes.CDLL("libEGL.so.1")
    except OSError:
        return 0
    library.eglGetProcAddress.restype = ctypes.c_void_p
    address = library.eglGetProcAddress(b"eglQueryDevicesEXT")
    if not address:
        return 0
    query = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))(address)
    count = ctypes.c_int(0)
    devices = (ctypes.c_void_p * _MOST_DEVICES)()
    return int(count.value) if query(_MOST_DEVICES, devices, ctypes.byref(count)) else 0
