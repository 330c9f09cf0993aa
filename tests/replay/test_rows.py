import numpy as np
import pytest
from gymnasium import spaces
from tiny import box

from hindsight_rl import GoalSpec
from hindsight_rl.errors import CastError, InputError, MissingKeyError, NonFiniteError, OptionError, ShapeError
from hindsight_rl.replay.rows import Fields, row_dtype, select, whole_number


def spec_of(observation, goal, action):
    return GoalSpec.from_spaces(spaces.Dict(observation=observation, achieved_goal=goal, desired_goal=goal), action)


def test_the_row_of_fetch_push():
    row = row_dtype(spec_of(box(25, np.float64), box(3, np.float64), box(4)))
    assert row.itemsize == 156
    assert list(row.fields) == [
        *("observation", "achieved_goal", "desired_goal", "action", "reward"),
        *("steps_done", "steps_left", "terminated"),
    ]
    assert row.fields["achieved_goal"][1] == 100


def test_float64_becomes_float32_by_default_and_other_dtypes_stay():
    image, bits = spaces.Box(0, 255, (4, 4, 1), np.uint8), spaces.MultiBinary(3)
    row = row_dtype(spec_of(image, bits, box(2, np.float64)))
    kept = row_dtype(spec_of(image, bits, box(2, np.float64)), dtype="float64")
    assert [row[name].base.name for name in ("observation", "achieved_goal", "action", "reward")] == [
        *("uint8", "int8", "float32", "float32")
    ]
    assert (kept["action"].base, kept["reward"]) == (np.float64, np.float64)
    assert row_dtype(spec_of(box(1, np.float16), box(1), box(1)))["observation"].base == np.float32
    with pytest.raises(OptionError, match="dtype must be 'float32' or 'float64', got 'float16'"):
        row_dtype(spec_of(box(1), box(1), box(1)), dtype="float16")


@pytest.mark.parametrize(
    ("n", "start", "dtype"), [(4, 0, "uint8"), (256, 0, "uint8"), (257, 0, "uint16"), (4, -2, "int8"), (200, -1, "int16")]
)
def test_discrete_actions_take_the_smallest_integer(n, start, dtype):
    assert row_dtype(spec_of(box(1), box(1), spaces.Discrete(n, start=start)))["action"].name == dtype


def refuse(value, dtype, shape=(2,)):
    field = Fields({"field": np.zeros(shape, dtype)})
    field.write([value])
    field.refuse([value])


@pytest.mark.parametrize(
    ("error", "value", "dtype", "message"),
    [
        (ShapeError, [1.0, 2.0, 3.0], "float32", r"Expected shape \(2,\) for field, got \(3,\)"),
        (ShapeError, 1.0, "float32", r"for field, got \(\)"),
        (NonFiniteError, [1.0, np.nan], "float32", r"field must be finite, got nan at index \(1,\)"),
        (NonFiniteError, [-np.inf, 0.0], "float32", r"field must be finite, got -inf at index \(0,\)"),
        (CastError, [0.0, 1e39], "float32", r"field is infinite as float32, got 1e\+39 at index \(1,\)"),
        (CastError, [7, 300], "uint8", "field is stored as uint8, .* cannot hold 300"),
        (CastError, [0.0, 0.5], "uint8", "cannot hold 0.5"),
        (CastError, [0.0, np.nan], "uint8", "cannot hold nan"),
        (CastError, [0, 2], "bool", "stored as bool, .* cannot hold 2"),
        (CastError, ["a", "b"], "float32", "Expected numbers of float32 for field"),
        (CastError, [1 + 1j, 2], "float32", "Expected numbers of float32 for field"),
        (CastError, [None, 1.0], "float32", "Expected numbers of float32 for field"),
        (InputError, [[1.0], [1.0, 2.0]], "float32", "cannot be converted to an array"),
        (InputError, np.ma.array([1.0, 2.0], mask=[0, 1]), "float32", "masked"),
    ],
)
def test_invalid_values_are_refused(error, value, dtype, message):
    with pytest.raises(error, match=message):
        refuse(value, dtype)


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        np.array([1.0, 2.0], ">f8"),
        np.array([1, 9, 2, 9], np.int64)[::2],
        np.ma.array([1.0, 2.0]),
        np.float64([1, 2]),
    ],
)
def test_valid_values_are_copied(value):
    array = np.zeros(2, np.float32)
    Fields({"field": array}).write([value])
    assert array.tolist() == [1.0, 2.0]
    assert not np.shares_memory(array, value)


def test_missing_keys_are_named():
    assert select({"a": 1, "b": 2, "c": 3}, ("a", "c"), "it") == [1, 3]
    with pytest.raises(MissingKeyError, match="it must have a, c, got a"):
        select({"a": 1}, ("a", "c"), "it")
    with pytest.raises(MissingKeyError, match="it must have a, c, got ndarray"):
        select(np.zeros(3), ("a", "c"), "it")


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3", None])
def test_whole_numbers(value):
    assert whole_number("it", np.int64(3), 1) == 3
    with pytest.raises(OptionError, match=r"it must be a whole number of at least 1, got"):
        whole_number("it", value, 1)
