"""The sentences about what was found: each has its own figures."""

import pytest

from hindsight_rl.structure.model import Difference
from hindsight_rl.structure.symmetry_verdicts import Candidate, SymmetryVerdict
from hindsight_rl.task_structure.symmetries import Symmetry


def test_a_difference_says_both_errors_and_the_interval_that_decides():
    text = Difference(mean=0.05, error=0.02, loss=0.2).explain("without", "with", margin=0.1, n_tested=1)
    # 1.645 standard errors on each side; 0.2 * 1.05 = 0.21, 0.2 * 0.02 = 0.004
    assert (
        text == "held-out error 0.210 +- 0.004 without, 0.200 with: +5 % (interval +2 to +8 %, at most +10 % is accepted)"
    )


@pytest.mark.parametrize(
    ("mean", "verdict"), [(0.1, "holds"), (0.3, "is uncertain, so it is not used"), (0.6, "does not hold")]
)
def test_a_symmetry_is_uncertain_if_its_interval_has_the_limit_inside(mean, verdict):
    candidate = Candidate("mirror of axis 0", Symmetry.identity(1, 1, 1))
    symmetry = SymmetryVerdict(candidate, "g0=-g0", Difference(mean, error=0.1, loss=0.2), Difference(4.0, 0.1))
    assert symmetry.verdict == verdict
    assert symmetry.evidence().startswith(f"mirror of axis 0 {verdict}: held-out error")
