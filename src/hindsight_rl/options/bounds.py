"""Whole numbers that options may have. Where a number decides how much is allocated or repeated, it has an upper bound.

Without one, a typing error or a file of somebody else takes all memory, or never ends. The reason stands beside each bound.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le, MaxLen

Steps = Annotated[int, Ge(0), Le(10**12)]  # a simulator that takes a microsecond per step needs twelve days for so many
PositiveSteps = Annotated[int, Ge(1), Le(10**12)]
Seed = Annotated[int, Ge(0), Le(2**63 - 1)]  # data sets store seeds as int64
Threads = Annotated[int, Ge(1), Le(256)]  # cores of a large machine; more give no speed, and very many crash torch
Workers = Annotated[int, Ge(0), Le(1_024)]  # each is a process of 100 MB or more
EpisodesPerJob = Annotated[int, Ge(1), Le(1_000)]  # all episodes of a job are in memory before the first is stored
PolicyLag = Annotated[int, Ge(0), Le(1_024)]  # jobs beyond one for each worker only wait
Capacity = Annotated[int, Ge(1), Le(10**10)]  # 400 GB at least; the buffer also compares it with the free memory
BatchSize = Annotated[int, Ge(1), Le(2**17)]  # published agents have up to 2**13
BatchesPerUpdate = Annotated[int, Ge(1), Le(100)]  # are sampled together
NStepReturn = Annotated[int, Ge(1), Le(1_000)]  # each sample is gathered so many times
SampledGoals = Annotated[int, Ge(0), Le(10**9)]  # k / (k + 1) is 1 in 32 bits then; stored goals have a lower limit
Halvings = Annotated[int, Ge(0), Le(20)]  # each is a call of compute_reward; after 20 a millionth of the distance is left
Waypoints = Annotated[int, Ge(0), Le(1_000)]  # the plan compares each with each
EvaluationEpisodes = Annotated[int, Ge(1), Le(100_000)]  # training waits for them; so many show the success to within 0.3 %
LayerSize = Annotated[
    int, Ge(1), Le(4_096)
]  # two such layers have 64 MB of weights, and each network has them several times
Channels = Annotated[int, Ge(1), Le(1_024)]  # of a convolution; large image networks have 512
MOST_LAYERS = 16  # of each kind; deeper networks need skip connections, which these do not have
Critics = Annotated[int, Ge(1), Le(100)]  # each is two networks; published ensembles have 10
Quantiles = Annotated[int, Ge(1), Le(1_000)]  # the loss compares each with each; published agents have 25 to 200
MOST_ENTRIES = 10_000  # of other lists; a task with more columns that are named one by one is not known
Texts = Annotated[tuple[str, ...], MaxLen(MOST_ENTRIES)]
Columns = Annotated[tuple[Annotated[int, Ge(0)], ...], MaxLen(MOST_ENTRIES)]
Numbers = Annotated[tuple[float, ...], MaxLen(MOST_ENTRIES)]
