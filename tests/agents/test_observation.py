import numpy as np
import pytest

from hindsight_rl.agents.layout import check_observation
from hindsight_rl.errors import InputError, MissingKeyError, NonFiniteError, ShapeError
from hindsight_rl.records import ArraySpec, GoalSpec

SPEC = GoalSpec(ArraySpec((2, 2), "float64"), ArraySpec((1,), "float64"), ArraySpec((1,), "float32"))
DISCRETE = GoalSpec(ArraySpec((), "int64", (0.0,), (3.0,), 4), ArraySpec((1,), "float64"), ArraySpec((1,), "float32"))


def observation(*leading, **changes):
    arrays = {
        "observation": np.ones((*leading, 2, 2)),
        "achieved_goal": np.ones((*leading, 1)),
        "desired_goal": np.ones((*leading, 1)),
    }
    return arrays | changes


def test_one_observation_and_many_are_accepted():
    arrays, is_batch = check_observation(SPEC, observation())
    assert [array.shape for array in arrays] == [(2, 2), (1,), (1,)]
    assert not is_batch
    arrays, is_batch = check_observation(SPEC, observation(3))
    assert [array.shape for array in arrays] == [(3, 2, 2), (3, 1), (3, 1)]
    assert is_batch
    arrays, is_batch = check_observation(DISCRETE, observation(observation=2))
    assert (arrays[0].shape, is_batch) == ((), False)
    assert check_observation(DISCRETE, observation(3, observation=[1, 2, 3]))[1]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (np.ones(4), InputError, "Expected a dict with the keys observation.*got ndarray"),
        ({"observation": 1}, MissingKeyError, "needs the keys achieved_goal, desired_goal; it has observation"),
        (observation(observation=[[1, 2], [3]]), InputError, "`observation`, got rows of different lengths"),
        (observation(desired_goal=["left"]), InputError, "numbers for `desired_goal`, got dtype <U4"),
        (observation(achieved_goal=[None]), InputError, "numbers for `achieved_goal`, got dtype object"),
        (observation(achieved_goal=[np.nan]), NonFiniteError, "`achieved_goal` holds NaN or infinity"),
        (observation(desired_goal=[np.inf]), NonFiniteError, "`desired_goal` holds NaN or infinity"),
        (observation(desired_goal=np.ones(2)), ShapeError, r"shape \(1,\) for `desired_goal`, got \(2,\)"),
        (observation(3, desired_goal=np.ones(1)), ShapeError, r"shape \(3, 1\) for `desired_goal`, got \(1,\)"),
        (observation(2, 3), ShapeError, r"got \(2, 3, 2, 2\)"),
        (observation(observation=np.ones(2)), ShapeError, r"shape \(2, 2\) for `observation`, got \(2,\)"),
    ],
)
def test_other_observations_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        check_observation(SPEC, given)
