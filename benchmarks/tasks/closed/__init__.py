"""Closed tasks: written by somebody who knew only the families. Developers see their names and results, not these files.

A closed task that was looked at becomes open and is replaced.
"""

from ..task import Task
from . import angles, bodies, discrete, fragile, hit, later, objects, obstacles, plants, pull, push, rewards, units
from .eighteenth import TASKS as EIGHTEENTH
from .eighth import TASKS as EIGHTH
from .eleventh import TASKS as ELEVENTH
from .fifteenth import TASKS as FIFTEENTH
from .fourteenth import TASKS as FOURTEENTH
from .fourth import TASKS as FOURTH
from .nineteenth import TASKS as NINETEENTH
from .ninth import TASKS as NINTH
from .seventeenth import TASKS as SEVENTEENTH
from .seventh import TASKS as SEVENTH
from .sixteenth import TASKS as SIXTEENTH
from .third import TASKS as THIRD
from .thirteenth import TASKS as THIRTEENTH
from .thirtieth import TASKS as THIRTIETH
from .thirtyeighth import TASKS as THIRTYEIGHTH
from .thirtyfifth import TASKS as THIRTYFIFTH
from .thirtyfirst import TASKS as THIRTYFIRST
from .thirtyfourth import TASKS as THIRTYFOURTH
from .thirtyninth import TASKS as THIRTYNINTH
from .thirtysecond import TASKS as THIRTYSECOND
from .thirtyseventh import TASKS as THIRTYSEVENTH
from .thirtysixth import TASKS as THIRTYSIXTH
from .thirtythird import TASKS as THIRTYTHIRD
from .twelfth import TASKS as TWELFTH
from .twentieth import TASKS as TWENTIETH
from .twentyeighth import TASKS as TWENTYEIGHTH
from .twentyfifth import TASKS as TWENTYFIFTH
from .twentyfirst import TASKS as TWENTYFIRST
from .twentyfourth import TASKS as TWENTYFOURTH
from .twentyninth import TASKS as TWENTYNINTH
from .twentysecond import TASKS as TWENTYSECOND
from .twentyseventh import TASKS as TWENTYSEVENTH
from .twentysixth import TASKS as TWENTYSIXTH
from .twentythird import TASKS as TWENTYTHIRD
from .vehicles import TASKS as VEHICLES
from .workshop import TASKS as WORKSHOP

_MODULES = (obstacles, fragile, push, pull, objects, bodies, hit, later, angles, rewards, units, plants, discrete)
_FIRST = tuple(task for module in _MODULES for task in module.TASKS)
TASKS: tuple[Task, ...] = (
    *_FIRST,
    *THIRD,
    *FOURTH,
    *WORKSHOP,
    *VEHICLES,
    *SEVENTH,
    *EIGHTH,
    *NINTH,
    *ELEVENTH,
    *TWELFTH,
    *THIRTEENTH,
    *FOURTEENTH,
    *FIFTEENTH,
    *SIXTEENTH,
    *SEVENTEENTH,
    *EIGHTEENTH,
    *NINETEENTH,
    *TWENTIETH,
    *TWENTYFIRST,
    *TWENTYSECOND,
    *TWENTYTHIRD,
    *TWENTYFOURTH,
    *TWENTYFIFTH,
    *TWENTYSIXTH,
    *TWENTYSEVENTH,
    *TWENTYEIGHTH,
    *TWENTYNINTH,
    *THIRTIETH,
    *THIRTYFIRST,
    *THIRTYSECOND,
    *THIRTYTHIRD,
    *THIRTYFOURTH,
    *THIRTYFIFTH,
    *THIRTYSIXTH,
    *THIRTYSEVENTH,
    *THIRTYEIGHTH,
    *THIRTYNINTH,
)
