"""Statistical assertions of tests that sample."""

from scipy import stats

RARE = 1e-6  # probability that an assertion fails by chance


def assert_distribution(counts, probability):
    """Compare outcomes with a distribution.

    counts: how often each outcome came. probability: of each outcome.
    """
    assert set(counts) <= set(probability)
    total = sum(counts.values())
    if len(probability) > 1:
        observed = [counts[key] for key in probability]
        assert stats.chisquare(observed, [total * p for p in probability.values()]).pvalue > RARE
