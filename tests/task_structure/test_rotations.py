"""The rotation between two quaternions."""

import numpy as np
import pytest

from hindsight_rl.task_structure.rotations import rotation_between


def about_z(degrees):
    half = np.radians(degrees) / 2
    return np.array([np.cos(half), 0.0, 0.0, np.sin(half)])


def about_x(degrees):
    half = np.radians(degrees) / 2
    return np.array([np.cos(half), np.sin(half), 0.0, 0.0])


def product(first, second):
    w, x = first[0], first[1:]
    return np.concatenate([[w * second[0] - x @ second[1:]], w * second[1:] + second[0] * x + np.cross(x, second[1:])])


def test_angles_wrap_around():
    first, second = (list(about_z(degrees)) for degrees in (170, -170))
    assert rotation_between(first, second) == pytest.approx(list(about_z(20)))


def test_the_rotation_is_seen_from_the_first():
    first, turn = about_z(90), about_x(40)
    assert rotation_between(list(first), list(product(first, turn))) == pytest.approx(list(turn))


def test_a_quaternion_and_its_negative_are_one_rotation():
    first, second = list(about_z(10)), list(about_z(60))
    negative = [-each for each in second]
    assert rotation_between(first, negative) == pytest.approx(list(about_z(50)))
    assert rotation_between(first, second) == pytest.approx(list(about_z(50)))


def test_rows_are_compared_one_by_one():
    first, second = np.array([about_z(10), about_x(0)]).T, np.array([about_z(30), about_x(90)]).T
    got = np.array(rotation_between(list(first), list(second))).T
    np.testing.assert_allclose(got, [about_z(20), about_x(90)], atol=1e-12)
