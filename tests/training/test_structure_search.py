import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from hindsight_rl import HER
from hindsight_rl.commands.train import Training
from hindsight_rl.errors import OptionError
from hindsight_rl.options import Choice, Settings
from hindsight_rl.recipes.files import save_recipe
from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.rollout.collect import play_episode
from hindsight_rl.structure import Endings
from hindsight_rl.structure.columns import listed
from hindsight_rl.structure.model import Difference
from hindsight_rl.structure.relevance import NeededColumns
from hindsight_rl.structure.steps import LITTLE
from hindsight_rl.structure.symmetry_verdicts import Candidate, SymmetryVerdict
from hindsight_rl.task_structure.affine import AffineColumns
from hindsight_rl.task_structure.symmetries import Symmetry
from hindsight_rl.task_structure.waypoints import GOAL
from hindsight_rl.training import run_state, structure_search
from hindsight_rl.training.checkpoint import restore_trainer, trainer_state
from hindsight_rl.training.events import JobFinished
from hindsight_rl.training.replacement import replace_agent
from hindsight_rl.training.resolve import Found
from hindsight_rl.training.run_folder import RunFolder
from hindsight_rl.training.saved_model import SavedModel
from hindsight_rl.training.unguided_success import RECENT, UnguidedSuccess

sys.path.insert(0, str(Path(__file__).parents[1] / "structure"))
from push_tasks import Push, PushBoth

STILL = SimpleNamespace(move_by_themselves=False)  # parts
FAST = {"hidden": (8,), "batch_size": 8, "updates_per_step": 0.05, "random_steps": 120, "capacity": 10_000}


def train(steps, folder=None, **options):
    model = HER(Push, check=False, **(FAST | options))
    model.learn(steps, folder=folder)
    return model


def test_structure_is_found_without_dimensions_of_goals_on_which_no_reward_depends():
    goals = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [5.0, 6.0]])  # achieved, desired
    episode = Episode(np.zeros((2, 1)), *goals, np.zeros((1, 1)), np.zeros(1))
    (changed,) = structure_search._without_unused([episode], (1,))
    assert changed.desired_goal.tolist() == [[5, 2], [5, 2]]
    assert structure_search._without_unused([episode], ()) == [episode]


def make_poor(trainer, search, monkeypatch):
    """Let the agent of a run be one that may be replaced."""
    monkeypatch.setattr(trainer.counts, "env_steps", 5_000)
    monkeypatch.setattr(structure_search, "may_be_replaced", lambda run: True)


def found_by_steps(**values):
    return Found(tuple(Choice(name, value, "found") for name, value in values.items()))


def weights(model):
    return np.concatenate([array.ravel() for array in model.agent.state_dict().values()])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the run of `inferred`."""
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def inferred(folder):
    with train(3_000, folder) as model:
        yield model


def test_a_run_looks_for_contact_and_then_learns_with_what_it_found(inferred):
    state = inferred.trainer.search.state
    assert (inferred.settings.variant, state.phase) == ("inferred", "learning")
    assert state.probing_episodes >= 10
    assert len(inferred.settings.agent_options.subgoals) == 1
    assert inferred.policy.spec.subgoals == inferred.settings.agent_options.subgoals
    assert inferred.settings.replay.energy_priority
    assert "random steps" in inferred.settings.reasons["energy_priority"]
    assert inferred.trainer.counts.updates > 100


@pytest.mark.slow
def test_two_objects_have_a_chain():
    with HER(PushBoth, check=False, **FAST) as model:
        model.learn(5_100)
        texts = model.settings.agent_options.subgoals
        about = [[f"dimensions={n}", "placed=0.0707", f"columns={c}"] for n, c in (("0,1", "2,3"), ("2,3", "4,5"))]
        assert [text.split()[-3:] for text in texts] == about
        assert model.settings.agent_options.discount == 0.938  # 16 steps: 0.4 of 40
        assert len(model.trainer.search.state.found.value("subgoals")) == 2
        assert len(model.trainer.search.state.probing.objects) == 2  # some episodes go on with it
        assert model.trainer.success.recent_rate < LITTLE
        assert model.trainer.counts.catch_up_updates == 0  # two objects are not placed so early
        batch = model.trainer.buffer.sample(64)
        assert set(np.unique(batch.subgoal)) == {0, 1, 2, 3}
        model.evaluate(1)


def test_the_episodes_of_the_search_are_stored_and_their_catch_up_updates_follow(inferred):
    counts = inferred.trainer.counts
    assert len(inferred.trainer.buffer) == counts.env_steps
    assert counts.submitted_episodes - counts.episodes in (0, 1)  # the next episode is played while the learner updates
    assert counts.updates == pytest.approx(0.05 * counts.env_steps, abs=3)


def test_training_from_the_recipe_of_a_run_does_not_search_again(inferred, tmp_path):
    save_recipe(inferred.settings, tmp_path / "push.toml")
    with HER(Push, recipe=tmp_path / "push.toml", check=False) as model:
        assert model.settings == inferred.settings
        assert model.trainer.search is None
        model.trainer.learn_from_next_job()


@pytest.mark.slow
def test_columns_that_the_user_hides_stay_hidden_and_the_search_finds_the_rest(inferred):
    with train(3_000, hidden_observation=(4,)) as model:
        settings = model.settings
        assert settings.agent_options.hidden_observation == (4,)
        assert settings.agent_options.subgoals == inferred.settings.agent_options.subgoals
        assert settings.replay.energy_priority


@pytest.mark.slow
def test_without_subgoals_actions_have_the_penalty_of_objects_that_rest(inferred):
    with train(3_000, subgoals=()) as model:
        assert (inferred.settings.agent_options.action_l2, model.settings.agent_options.action_l2) == (0.2, 0.5)
        assert model.settings.agent_options.hidden_observation == inferred.settings.agent_options.hidden_observation


@pytest.mark.parametrize(
    ("options", "decided"),
    [
        ({}, None),
        ({"hidden_observation": (1, 4)}, (1, 4)),
        ({"hidden_observation": ()}, ()),
        ({"goal_features": "none"}, ()),
        ({"symmetries": ()}, None),
    ],
)
def test_the_search_tests_symmetries_with_the_columns_that_the_networks_see(monkeypatch, options, decided):
    seen = []
    with HER(Push, check=False, **FAST, **options) as model:
        monkeypatch.setattr(structure_search, "infer_structure", lambda *episodes, **known: seen.append(known["hidden"]))
        model.trainer.search._infer([])
    assert seen == [decided]


SAME = "reach achieved=0,1 goal=2,3 tolerance=0.1 switch_distance=0.3"
OTHER = "reach achieved=1,0 goal=2,3 tolerance=0.1 switch_distance=0.3"  # x is compared with y
MIRROR = "o0=-o0 o2=-o2 o4=-o4 g0=-g0 a0=-a0"
SPEC = GoalSpec(*(ArraySpec((size,), "float64") for size in (6, 2, 2)))
HOLDING = SymmetryVerdict(
    Candidate("mirror of axis 0", Symmetry.parse(MIRROR, SPEC), (0,)), MIRROR, Difference(0.0, 0.1), Difference(4.0, 0.1)
)


@pytest.mark.parametrize(
    ("given", "observed", "lost"),
    [
        ({"subgoals": (OTHER,)}, {"symmetries": (MIRROR,)}, "symmetries"),
        ({"symmetries": ("o0=-o0 g0=-g0 a0=-a0",)}, {"subgoals": (SAME,)}, "subgoals"),
        ({"subgoals": (SAME,)}, {"n_waypoints": 9}, "n_waypoints"),
        ({"n_steps": 3}, {"subgoals": (SAME,)}, "subgoals"),
        ({"lowest_achieved": ()}, {"lowest_achieved": (0.0, 0.0), "highest_achieved": (1.0, 1.0)}, "highest_achieved"),
    ],
)
def test_what_contradicts_a_given_option_is_not_used_and_the_run_goes_on(given, observed, lost):
    with HER(Push, check=False, **FAST, **given) as model:
        search, before = model.trainer.search, model.settings.flat()
        search._adopt(model.trainer, found_by_steps(**observed, noise=0.3))
        assert model.settings.flat() == before | {"noise": 0.3}
        assert model.settings.not_used[-1].startswith(f"{lost} = ")
        model.trainer.learn_from_next_job()


@pytest.mark.slow
def test_what_the_user_gives_stays():
    with train(1_500, noise=0.05, energy_priority=False, energy_cap=None, energy_remaining=False) as model:
        assert model.settings.agent_options.noise == 0.05
        assert not model.settings.replay.energy_priority


def test_without_structure_nothing_that_a_search_would_find_is_used():
    with HER(Push, check=False, **FAST, structure="none") as model:
        before = model.settings
        model.learn(600)
        assert before.variant == "none"
        assert model.settings == before
        assert not model.settings.replay.energy_priority


def test_a_search_whose_first_episodes_were_evicted_ends():
    with train(400, capacity=150) as model:
        assert not model.trainer.search.is_warm_up
        assert model.trainer.counts.updates > 0
        [why] = model.trainer.not_found
    assert why.startswith("structure that needs more steps: the buffer holds only 150 steps, so the first ones are gone")


def test_beta_reaches_1_at_the_end_of_learn_although_the_agent_is_replaced():
    with HER("PointReach-v0", recipe="default", **FAST) as model:
        agent = model.agent
        model.learn(300)
        assert model.agent is not agent
        assert model.trainer.updates.last_step == 300


@pytest.mark.slow
def test_later_looks_change_nothing_without_a_contact(inferred, monkeypatch):
    rebuilt = []
    search, episodes = inferred.trainer.search, inferred.trainer.buffer.timeline.episodes()
    monkeypatch.setattr(inferred.trainer, "rebuild", lambda *parts: rebuilt.append(parts))
    seeking = episodes[search.state.random_episodes :][: search.state.probing_episodes]
    resting = [e for e in episodes if np.ptp(e.achieved_goal, axis=0).max() == 0]
    first = episodes[: search.state.random_episodes]
    monkeypatch.setattr(search, "state", replace(search.state))
    search._test_again(inferred.trainer, [*first, *seeking, *resting * 3])
    assert rebuilt == []


@pytest.mark.slow
def test_a_subgoal_is_taken_once_the_tool_reaches_most_goals(inferred, monkeypatch):
    search, taken = inferred.trainer.search, []
    monkeypatch.setattr(search, "state", replace(search.state, found=search.state.found.with_option("subgoals", [])))
    monkeypatch.setattr(search, "_take", lambda run, found: taken.append(found))
    monkeypatch.setattr(search, "_adopt", lambda run, observed: None)
    make_poor(inferred.trainer, search, monkeypatch)
    n_seeking = search.state.random_episodes + search.state.probing_episodes
    search._refine(inferred.trainer, inferred.trainer.buffer.timeline.episodes()[:n_seeking])
    assert taken[0].contact.leads_to_goals


@pytest.mark.slow
def test_a_mirror_that_a_later_look_finds_is_used(inferred, monkeypatch):
    search, taken, infer = inferred.trainer.search, [], inferred.trainer.search._infer
    n_seeking = search.state.random_episodes + search.state.probing_episodes
    known = search.state.found.with_option("symmetries", [])
    monkeypatch.setattr(search, "state", replace(search.state, found=known))
    monkeypatch.setattr(search, "_infer", lambda *parts, **more: replace(infer(*parts, **more), symmetries=(HOLDING,)))
    monkeypatch.setattr(search, "_take", lambda run, found: taken.append(found))
    make_poor(inferred.trainer, search, monkeypatch)
    search._test_again(inferred.trainer, inferred.trainer.buffer.timeline.episodes()[:n_seeking])
    assert taken[0].symmetries == (HOLDING,)


@pytest.mark.slow
def test_an_agent_that_improves_goes_on_with_its_columns_and_more_symmetries(inferred, monkeypatch):
    """They are tested for the columns that its networks see, and nothing else that was found then changes."""
    search, asked = inferred.trainer.search, []
    known = found_by_steps(hidden_observation=(4,), noise=0.2)
    found = search._infer(inferred.trainer.buffer.timeline.episodes())
    found = replace(found, symmetries=(HOLDING,), hidden=replace(found.hidden, columns=(4, 5)))
    monkeypatch.setattr(search, "state", replace(search.state, found=known, has_contact=True))
    monkeypatch.setattr(search, "_infer", lambda *parts, shown, may_show: asked.append((parts[-1], may_show)) or found)
    monkeypatch.setattr(structure_search, "may_be_replaced", lambda run: False)
    search._test_again(inferred.trainer, [])
    assert asked == [((4,), True)]
    values = {choice.option: choice.value for choice in search.state.found.structure}
    assert values == {"hidden_observation": (4,), "noise": 0.2, "symmetries": (HOLDING.text,)}
    assert [finding.name for finding in search.state.findings if finding.kind == "symmetry"] == [HOLDING.candidate.name]


@pytest.mark.slow
@pytest.mark.parametrize("may_replace", [True, False])
def test_a_symmetry_that_is_refuted_later_is_used_no_more(inferred, monkeypatch, may_replace):
    search, trainer = inferred.trainer.search, inferred.trainer
    refuted = replace(HOLDING, loss=Difference(9.0, 0.1), is_product=False)
    found = replace(search._infer(trainer.buffer.timeline.episodes()), symmetries=(refuted,))
    known = found_by_steps(hidden_observation=found.hidden_columns, symmetries=(HOLDING.text,), subgoals=found.subgoals)
    monkeypatch.setattr(search, "state", replace(search.state, found=known, has_contact=True))
    monkeypatch.setattr(search, "_infer", lambda *parts, **more: found)
    monkeypatch.setattr(structure_search, "may_be_replaced", lambda run: may_replace)
    monkeypatch.setattr(search, "_adopt", lambda run, wanted: setattr(search.state, "found", wanted))
    search._test_again(trainer, [])
    assert search.state.found.value("symmetries", ()) == ()


@pytest.mark.slow
def test_an_agent_that_improves_is_shown_the_columns_that_turn_out_to_matter(inferred, monkeypatch):
    """It goes on with the same policy, and no other column that was hidden is shown."""
    trainer, search = inferred.trainer, inferred.trainer.search
    agent, hidden = trainer.agent, trainer.settings.agent_options.hidden_observation
    assert len(hidden) > 1
    shown, still_hidden = hidden[:1], hidden[1:]
    needed = (NeededColumns(shown, Difference(0.8, 0.1, 0.3), 0.35),)
    found = search._infer(trainer.buffer.timeline.episodes())
    found = replace(found, hidden=replace(found.hidden, columns=still_hidden, needed=needed))
    state = replace(search.state, has_contact=True)
    monkeypatch.setattr(search, "state", state)
    monkeypatch.setattr(search, "_infer", lambda *parts, shown, may_show: found)
    monkeypatch.setattr(structure_search, "may_be_replaced", lambda run: False)
    parts, settings, n_updates = (trainer.agent, trainer.buffer, trainer.demonstrations), trainer.settings, agent.n_updates
    values = agent.values(trainer.buffer.timeline.episodes()[0])
    search._refine(trainer, trainer.buffer.timeline.episodes())
    changed, after = trainer.agent, trainer.settings
    trainer.rebuild(parts, settings)
    assert after.agent_options.hidden_observation == still_hidden
    why = "columns 0 matter: the held-out error changes by +80 +- 10 % without them"
    assert after.reasons["hidden_observation"] == f"{why}; columns {listed(still_hidden)} stay hidden"
    assert changed is not agent
    assert changed.n_updates == n_updates
    assert changed.values(trainer.buffer.timeline.episodes()[0]) == pytest.approx(values, abs=1e-4)
    assert "columns 0 are shown again" in " ".join(map(str, state.findings))


def successes(n_failures, n_successes, *later):
    """Return the success of the unguided episodes: so many failures, then so many successes, and so on."""
    numbers = (n_failures, n_successes, *later)
    return UnguidedSuccess([bool(i % 2) for i, number in enumerate(numbers) for _ in range(number)])


@pytest.mark.parametrize(
    ("success", "failed", "is_probed"),
    [(successes(50, 0), 0, True), (successes(49, 0), 0, False), (successes(50, 0), 2, True)],
)
def test_a_contact_that_a_later_look_finds_is_probed_if_the_agent_is_poor(
    inferred, monkeypatch, success, failed, is_probed
):
    """Also if probing failed before. failed: its episodes."""
    search, episodes = inferred.trainer.search, inferred.trainer.buffer.timeline.episodes()
    monkeypatch.setattr(inferred.trainer, "success", success)
    monkeypatch.setattr(inferred.trainer.counts, "env_steps", 5_000)
    n_random = search.state.random_episodes
    episodes = episodes[: n_random + failed]
    before = replace(search.state, has_contact=False, first_probing=n_random * (failed > 0), probing_episodes=failed)
    monkeypatch.setattr(search, "state", before)
    search._refine(inferred.trainer, episodes)
    if is_probed:
        assert (search.state.phase, search.state.first_probing) == ("probing", len(episodes))
        assert search.state.random_episodes == n_random
        assert search.state.probing.tool.columns == (0, 1)
    else:
        assert search.state.phase == "learning"


@pytest.mark.parametrize(
    ("columns", "steps", "phase"),
    [("0,5", 3_999, "probing"), ("2*o0,o1", 3_999, "probing"), ("0,1", 3_999, "learning"), ("0,5", 4_000, "learning")],
)
def test_another_tool_is_probed_if_the_first_one_moved_nothing(inferred, monkeypatch, columns, steps, phase):
    """The episodes that sought contact with a wrong tool, or in wrong units, show the right one, columns 0 and 1."""
    search, episodes = inferred.trainer.search, inferred.trainer.buffer.timeline.episodes()
    wrong = SimpleNamespace(tool=AffineColumns.parse(columns))
    before = replace(search.state, phase="probing", probing=wrong, seek_until=steps)
    monkeypatch.setattr(search, "state", before)
    monkeypatch.setattr(inferred.trainer.counts, "env_steps", steps)
    monkeypatch.setattr(search, "_infer", lambda episodes: SimpleNamespace(contact=None))
    monkeypatch.setattr(search, "_learn", lambda run, found: setattr(search.state, "phase", "learning"))
    search._look_at_contacts(inferred.trainer, episodes)
    assert search.state.phase == phase
    if phase == "probing":
        assert search.state.probing.tool.columns == (0, 1)
        assert search.state.first_probing == len(episodes)


@pytest.mark.parametrize(("moves", "views"), [(True, [True, False]), (False, [True])])
def test_paths_are_tried_for_what_seems_to_move_by_itself_and_was_learned_as_a_body(inferred, monkeypatch, moves, views):
    """As a car whose heading decides where it drives: actions do not explain its displacements well."""
    search, seen = inferred.trainer.search, []
    monkeypatch.setattr(search, "state", replace(search.state, has_contact=False, next_at=2_500))

    def infer(episodes, moves_by_itself=True):
        seen.append(moves_by_itself)
        parts = SimpleNamespace(move_by_themselves=moves and moves_by_itself)
        return SimpleNamespace(
            sequence=None, parts=parts, subgoals=(), symmetries=(), has_walls=False, view=moves_by_itself
        )

    monkeypatch.setattr(search, "_infer_without_probing", infer)
    monkeypatch.setattr(structure_search, "plan_guesses", lambda found: ())
    monkeypatch.setattr(search._paths, "look", lambda run, state, found: seen.append(("paths", found.view)))
    search._refine(inferred.trainer, inferred.trainer.buffer.timeline.episodes())
    assert seen == [*views, ("paths", views[-1])]


def test_the_search_goes_on_if_a_wrong_tool_was_probed_and_no_other_is_certain(inferred, monkeypatch):
    search = inferred.trainer.search
    episodes = inferred.trainer.buffer.timeline.episodes()[: search.state.first_probing + search.state.probing_episodes]
    wrong = SimpleNamespace(tool=AffineColumns.parse("0,5"))
    monkeypatch.setattr(search, "state", replace(search.state, phase="probing", probing=wrong, seek_until=1_500))
    monkeypatch.setattr(inferred.trainer.counts, "env_steps", 1_500)
    real = structure_search.infer_structure
    monkeypatch.setattr(
        structure_search, "infer_structure", lambda *words, **named: replace(real(*words, **named), sequence=None)
    )
    search._look_at_contacts(inferred.trainer, episodes)
    assert (search.state.phase, search.state.probing, search.state.next_at) == ("random", None, 1_750)


@pytest.mark.parametrize(("n_onsets", "ends_at"), [(0, 2_000), (1, 4_000), (9, 4_000)])
def test_the_search_is_longer_if_there_are_contacts_of_an_uncertain_tool(inferred, monkeypatch, n_onsets, ends_at):
    search, real = inferred.trainer.search, structure_search.infer_structure
    episodes = inferred.trainer.buffer.timeline.episodes()[: search.state.random_episodes]
    monkeypatch.setattr(
        structure_search,
        "infer_structure",
        lambda *words, **named: replace(real(*words, **named), sequence=None, n_onsets=n_onsets),
    )
    monkeypatch.setattr(search, "_learn", lambda run, found: setattr(search.state, "phase", "learning"))
    monkeypatch.setattr(search, "state", structure_search.SearchState(next_at=100))
    for steps in (100, 100 + ends_at - 1, 100 + ends_at):
        assert search.state.phase == "random"
        monkeypatch.setattr(inferred.trainer.counts, "env_steps", steps)
        search._look_for_contact(inferred.trainer, episodes)
    assert search.state.phase == "learning"


def test_objects_are_sought_once_what_moved_alone_has_a_handle_or_the_search_is_over(inferred, monkeypatch):
    search, real = inferred.trainer.search, structure_search.infer_structure
    episodes, without = inferred.trainer.buffer.timeline.episodes()[: search.state.random_episodes], [(3,)]
    monkeypatch.setattr(
        structure_search,
        "infer_structure",
        lambda *words, **named: replace(real(*words, **named), without_handle=without[0]),
    )
    for steps, without[0], phase in (
        (100, (3,), "random"),
        (2_099, (3,), "random"),
        (2_100, (3,), "probing"),
        (600, (), "probing"),
    ):
        monkeypatch.setattr(search, "state", structure_search.SearchState(next_at=100, seek_until=2_100))
        monkeypatch.setattr(inferred.trainer.counts, "env_steps", steps)
        search._look_for_contact(inferred.trainer, episodes)
        assert search.state.phase == phase


def test_learning_begins_once_everything_has_a_handle(inferred, monkeypatch):
    search = inferred.trainer.search
    found = SimpleNamespace(parts=SimpleNamespace(has_object=True), sequence=None, has_all_handles=True)
    monkeypatch.setattr(search, "_infer_without_probing", lambda episodes, **options: found)
    monkeypatch.setattr(search, "_learn", lambda run, found: setattr(search.state, "phase", "learning"))
    monkeypatch.setattr(search, "state", structure_search.SearchState(next_at=100))
    search._look_for_contact(inferred.trainer, [])
    assert search.state.phase == "learning"


def test_a_handle_that_a_later_look_finds_is_taken(inferred, monkeypatch):
    search, taken, known = inferred.trainer.search, [], "reach achieved=0 goal=1 tolerance=1 switch_distance=2"
    found = SimpleNamespace(sequence=None, parts=STILL, guesses=(), subgoals=(known, known), symmetries=(), has_walls=False)
    for subgoals, expected in (((known,), 1), ((known, known), 0)):
        taken.clear()
        state = replace(search.state, has_contact=False, found=search.state.found.with_option("subgoals", []))
        state.found = replace(state.found, structure=(structure_search.Choice("subgoals", subgoals, ""),))
        monkeypatch.setattr(search, "state", state)
        monkeypatch.setattr(search, "_infer_without_probing", lambda episodes: found)
        monkeypatch.setattr(structure_search, "plan_guesses", lambda found: ())
        monkeypatch.setattr(search._paths, "look", lambda *words: None)
        monkeypatch.setattr(search, "_take", lambda run, found: taken.append(found))
        monkeypatch.setattr(search, "_adopt", lambda run, found: None)
        search._refine(inferred.trainer, [])
        assert len(taken) == expected


def test_a_later_look_knows_which_episodes_are_random(inferred, monkeypatch):
    search, seen = inferred.trainer.search, []
    found = SimpleNamespace(
        sequence=None,
        symmetries=(),
        guesses=(),
        subgoals=(),
        has_paths=False,
        has_walls=False,
        parts=SimpleNamespace(goal_std=1.0, move_by_themselves=False),
    )
    infer = lambda random, spec, later, **_: seen.append((len(random), len(later))) or found  # noqa: E731
    monkeypatch.setattr(structure_search, "infer_structure", infer)
    monkeypatch.setattr(search, "state", replace(search.state, has_contact=False, random_episodes=3))
    monkeypatch.setattr(search, "_adopt", lambda run, found: None)
    monkeypatch.setattr(structure_search, "may_be_replaced", lambda run: False)
    search._refine(inferred.trainer, inferred.trainer.buffer.timeline.episodes()[:8])
    assert seen == [(3, 5)]


class DenseReach(gymnasium.Env):
    """A point must come within 0.3 of a position. Rewards are minus the distance. No function says what ends an episode."""

    def __init__(self):
        box = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
        self.observation_space = gymnasium.spaces.Dict(observation=box, achieved_goal=box, desired_goal=box)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.steps = np.zeros(1), 0
        self.goal = self.np_random.uniform(-1, 1, 1)
        return self.see(), {"is_success": False}

    def step(self, action):
        self.position, self.steps = self.position + 0.2 * np.asarray(action, np.float64), self.steps + 1
        reward = float(self.compute_reward(self.position, self.goal, {}))
        return self.see(), reward, reward > -0.3, self.steps >= 20, {"is_success": reward > -0.3}

    def see(self):
        return {
            "observation": self.position.copy(),
            "achieved_goal": self.position.copy(),
            "desired_goal": self.goal.copy(),
        }

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -np.abs(achieved_goal - desired_goal)[..., 0]


def test_episodes_that_end_early_go_on_if_nothing_ever_succeeds(inferred, monkeypatch):
    search, trainer, adopted = inferred.trainer.search, inferred.trainer, []

    def resolve(found):
        adopted.append({choice.option for choice in found.choices()})
        return trainer.settings

    monkeypatch.setattr(search, "_resolve", resolve)
    monkeypatch.setattr(search, "_test_again", lambda run, episodes: None)
    for steps, success in ((9_000, successes(20, 0)), (11_000, successes(30, 1)), (11_000, successes(20, 0))):
        found = found_by_steps(lowest_achieved=(0.0,), noise=0.2)
        monkeypatch.setattr(search, "state", replace(search.state, found=found))
        monkeypatch.setattr(trainer, "counts", replace(trainer.counts, env_steps=steps))
        monkeypatch.setattr(trainer, "success", success)
        search._refine(trainer, [])
    assert adopted == [{"lowest_achieved", "noise"}, {"lowest_achieved", "noise"}, {"noise"}]


def test_the_reward_of_a_success_is_learned_from_the_episodes():
    """Dense rewards, and an episode ends at success: the play of the check need not show one."""
    with HER(DenseReach, max_episode_steps=20, **FAST | {"random_steps": 50}) as model:
        assert model.settings.replay.relabel_terminated is None
        model.learn(600)
        assert model.settings.replay.relabel_terminated == "success"
        assert -0.3 <= model.settings.training.success_reward <= 0


@pytest.mark.parametrize(
    ("reward", "success", "terminated", "is_used"),
    [(-0.2, True, True, True), (-0.2, False, False, True), (-0.2, True, False, False), (-0.1, False, False, False)],
)
def test_how_successes_end_episodes_is_not_used_after_an_episode_contradicts_it(reward, success, terminated, is_used):
    """Three episodes end with a success and -0.1. Then a success ends nothing, or another step has this reward."""
    with HER(DenseReach, max_episode_steps=20, **FAST | {"structure": "none"}) as model:
        model.learn(1)
        search, played = model.trainer.search, model.trainer.buffer.timeline.episodes()[0]

        def observe(last, success, terminated):
            rewards = np.append(np.full(len(played) - 1, -1.0), last)
            search.observe([replace(played, reward=rewards, success=success, terminated=terminated)])
            search.after_job(model.trainer)
            return model.settings.replay.relabel_terminated

        search.state.endings = Endings()
        assert [observe(-0.1, True, True) for _ in range(3)] == [None, None, "success"]
        assert observe(reward, success, terminated) == ("success" if is_used else None)


class LongEpisodes(DenseReach):
    """No success ends an episode, so each has 3,000 steps."""

    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, False, self.steps >= 3_000, info


@pytest.mark.parametrize("random_steps", [50, 2_400])
def test_learning_begins_after_the_random_steps_however_long_episodes_are(random_steps):
    with HER(LongEpisodes, check=False, **FAST | {"random_steps": random_steps}) as model:
        while model.trainer.search.is_warm_up:
            model.trainer.learn_from_next_job()
        assert model.trainer.counts.env_steps == max(random_steps, 1_500)  # three episodes of 500 steps, or of 800
        model.trainer.learn_from_next_job()
        assert model.trainer.counts.updates > 0


def test_without_structure_learning_begins_after_the_first_episode_however_long_it_is():
    with HER(LongEpisodes, check=False, **FAST | {"random_steps": 50, "structure": "none"}) as model:
        model.trainer.learn_from_next_job()
        assert model.trainer.counts.updates > 0


class GoalSeen(Push):
    """Columns 6 and 7 hold the goal."""

    n_extra = 2

    def extra(self):
        return self.goal.copy()


def test_columns_that_hold_the_goal_stay_hidden_whatever_is_found():
    with HER(GoalSeen, **FAST) as model:
        assert model.settings.agent_options.hidden_observation == (6, 7)
        model.trainer.search._adopt(model.trainer, found_by_steps(hidden_observation=(0, 6)))
        assert model.settings.agent_options.hidden_observation == (0, 6, 7)
        assert model.settings.reasons["hidden_observation"].startswith("found; these columns change with the desired goal")


@pytest.mark.parametrize("structure", ["declared", "none"])
def test_a_structure_that_is_not_inferred_needs_no_search(structure):
    options = {"hidden_observation": (3,)} if structure == "declared" else {}
    with HER("PointReach-v0", recipe="default", **FAST, structure=structure, relabel_terminated="keep", **options) as model:
        assert (model.settings.variant, model.trainer.search) == (structure, None)


def test_an_easy_task_does_not_wait():
    with HER("PointReach-v0", recipe="default", **FAST) as model:
        model.learn(150)
        assert model.trainer.search.state.phase == "learning"
        options = [choice.option for choice in model.trainer.search.state.found.structure]
        assert options == ["relabel", "discount"]
        assert model.trainer.counts.updates > 0


@pytest.mark.parametrize(
    ("steps", "until"),
    [(1_000, 1_100), *(pytest.param(steps, 2_600, marks=pytest.mark.slow) for steps in (200, 1_000, 2_200))],
)
def test_a_checkpoint_of_any_phase_gives_the_same_bytes(steps, until):
    with train(steps) as model, HER(Push, check=False, **FAST) as other:
        arrays, data = trainer_state(model.trainer)
        restore_trainer(other.trainer, {name: array.copy() for name, array in arrays.items()}, data)
        assert other.trainer.search.state == model.trainer.search.state
        for each in (model, other):
            while each.trainer.counts.env_steps < until:
                each.trainer.learn_from_next_job()
        assert other.settings == model.settings
        assert other.trainer.search.state == model.trainer.search.state
        assert np.array_equal(weights(other), weights(model))
        played = [each.trainer.buffer.timeline.episodes()[-1].action for each in (other, model)]
        assert np.array_equal(*played)


def test_what_was_found_about_successes_is_part_of_a_run_folder(tmp_path):
    options = FAST | {"random_steps": 50, "max_episode_steps": 20, "check": False}
    with HER(DenseReach, **options) as model:
        model.learn(600, folder=tmp_path)
        state, settings, before = model.trainer.search.state, model.settings, weights(model)
    with HER(DenseReach, **options) as other, RunFolder(tmp_path, other.settings, other.spec) as folder:
        folder.resume(other.trainer)
        assert (other.trainer.search.state, other.settings) == (state, settings)
        assert other.settings.replay.relabel_terminated == "success"
        assert np.array_equal(weights(other), before)


@pytest.fixture
def push_data(monkeypatch, tmp_path):
    """A data set of five random episodes of Push."""
    pytest.importorskip("h5py")
    minari_data = pytest.importorskip("hindsight_rl.envs.minari_data")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    monkeypatch.setitem(gymnasium.registry, "Push-v0", EnvSpec("Push-v0", entry_point="push_tasks:Push"))
    env = gymnasium.make("Push-v0")
    env.action_space.seed(0)
    played = [play_episode(env, lambda _: env.action_space.sample(), seed, seed) for seed in range(5)]
    minari_data.write_episodes("demo/push-v0", env, played, "random")
    return "demo/push-v0"


@pytest.mark.slow
def test_a_run_with_demonstrations_keeps_them_with_the_structure_that_it_found(push_data):
    options = {"demonstrations": push_data, "offline_steps": 20}
    with train(2_400, **options) as model, HER(Push, check=False, **FAST, **options) as other:
        demonstrations, counts = model.trainer.demonstrations, model.trainer.counts
        assert len(model.settings.agent_options.subgoals) == 1
        assert demonstrations.sample(1, 16).subgoal is not None
        assert len(demonstrations.buffer) == 200
        made_twice = counts.offline_updates  # with the first agent and with the one that replaced it
        assert counts.updates == pytest.approx(2 * made_twice + 0.05 * counts.env_steps, abs=3)
        arrays, data = trainer_state(model.trainer)
        restore_trainer(other.trainer, {name: array.copy() for name, array in arrays.items()}, data)
        for each in (model, other):
            each.trainer.learn_from_next_job()
        assert np.array_equal(weights(other), weights(model))


def test_the_folder_of_a_run_has_what_was_found_and_the_run_resumes_from_it(inferred, folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    found = inferred.settings
    written = json.loads((tmp_path / "settings.json").read_text())
    assert written["options"]["subgoals"] == list(found.agent_options.subgoals)
    assert written["reasons"]["subgoals"]
    lines = [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()]
    changes = {change["option"]: change for line in lines for change in line["changes"]}
    assert {"subgoals", "energy_priority"} <= set(changes) == set(written["changed"])
    assert changes["energy_priority"]["before"] is False
    assert changes["energy_priority"]["value"] is True
    assert changes["energy_priority"]["reason"] == written["reasons"]["energy_priority"]
    assert all(0 < line["env_steps"] <= 3_000 for line in lines)
    assert [line["new_agent"] for line in lines] == [""] * len(lines)  # none had learned anything before
    with HER(Push, check=False, **FAST) as other, RunFolder(tmp_path, other.settings, other.spec) as folder:
        folder.resume(other.trainer)
        assert other.settings == folder.settings == found
        assert SavedModel.read(tmp_path).policy.subgoals == found.agent_options.subgoals
    assert json.loads((tmp_path / "settings.json").read_text())["changed"] == written["changed"]
    assert [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()] == lines


@pytest.mark.slow
def test_the_folder_of_a_run_has_what_was_not_found_or_is_not_used(tmp_path):
    def written():
        settings = json.loads((tmp_path / "settings.json").read_text())
        return settings["not_found"], settings["not_used"]

    with HER(Push, check=False, **FAST, noise=0.1) as model:
        model.learn(20, folder=tmp_path)
        assert written() == ([], [])
        model.learn(2_400, folder=tmp_path)
        search = model.trainer.search
        assert model.settings.not_used == ("noise = 0.2, since you set noise = 0.1",)
        assert written() == (list(model.trainer.not_found), list(model.settings.not_used))
        search.state.missing = ("no mirrors: positions differ",)  # as after an inference that changes no option
        model.learn(20, folder=tmp_path)
        assert written()[0] == ["no mirrors: positions differ"]
    with HER(Push, check=False, **FAST, noise=0.1) as other:
        with RunFolder(tmp_path, other.settings, other.spec) as folder:
            folder.resume(other.trainer)
        assert other.trainer.not_found == ("no mirrors: positions differ",)
        assert written() == (["no mirrors: positions differ"], list(model.settings.not_used))


def test_a_run_that_ends_in_the_search_says_so_and_its_policy_goes_on_without(tmp_path, capsys):
    with HER(Push, check=False, **FAST, steps=200) as model:
        assert Training(model, "Push", tmp_path, resume=False, trackers=()).run() == 0
    assert "without an update, since the run was still looking for the structure of the task" in capsys.readouterr().out
    with HER.load(tmp_path, Push) as loaded:
        assert loaded.settings.variant == "none"
        with pytest.warns(UserWarning, match=r"before its run had found the structure.*goes on without"):
            loaded.learn(20)
    with pytest.raises(OptionError, match="needs a new run"):
        HER.load(tmp_path, Push, structure="inferred")


def test_a_policy_of_a_run_that_found_its_structure_keeps_it(inferred, tmp_path):
    inferred.save(tmp_path / "policy")
    with HER.load(tmp_path / "policy", Push) as loaded:
        assert loaded.settings.variant == "inferred"
        assert loaded.settings.agent_options.subgoals == inferred.settings.agent_options.subgoals


@pytest.mark.parametrize(
    ("success", "tolerance_levels", "restarts"),
    [
        (successes(50, 0), 0, 1),
        (successes(0, 4, 46), 0, 1),  # an interval of 3 % to 19 %
        (successes(0, 5, 45), 0, 0),  # of 4 % to 21 %
        (successes(15, 0), 0, 0),  # too few to show anything: with 30 % success, 15 failures are no accident
        (successes(46, 4), 0, 0),  # it improves
        (successes(50, 0), 2, 0),
    ],
)
def test_an_agent_is_replaced_if_50_unguided_episodes_show_that_it_is_poor(
    inferred, monkeypatch, success, tolerance_levels, restarts
):
    trainer, search, rebuilt = inferred.trainer, inferred.trainer.search, []
    counts = replace(trainer.counts, env_steps=6_000, due_updates=0.0)
    monkeypatch.setattr(trainer, "counts", counts)
    monkeypatch.setattr(trainer, "success", success)
    monkeypatch.setattr(trainer, "rebuild", lambda *parts: rebuilt.append(parts))
    monkeypatch.setattr(search, "state", replace(search.state))
    monkeypatch.setattr(search, "_test_again", lambda run, episodes: None)
    settings = replace(
        trainer.settings, replay=trainer.settings.replay.model_copy(update={"tolerance_levels": tolerance_levels})
    )
    monkeypatch.setattr(trainer, "settings", settings)
    monkeypatch.setattr(search, "_adopt", lambda run, observed: None)
    search._refine(trainer, [])
    assert not rebuilt
    assert search.state.noiseless_until == restarts * (counts.submitted_episodes + RECENT)
    monkeypatch.setattr(counts, "submitted_episodes", counts.submitted_episodes + RECENT - 1)
    search.after_job(trainer)
    assert not rebuilt
    counts.submitted_episodes += 1
    search.after_job(trainer)
    assert search.state.noiseless_until == 0
    assert len(rebuilt) == restarts
    assert counts.due_updates == counts.catch_up_updates == restarts * counts.updates
    assert [parts[-1] for parts in rebuilt] == restarts * [
        f"the success in training was low ({sum(success.successes)} of the last 50 unguided episodes succeeded)"
    ]


def test_an_agent_that_succeeds_without_noise_is_not_replaced(inferred, monkeypatch):
    trainer, search = inferred.trainer, inferred.trainer.search
    monkeypatch.setattr(trainer, "counts", replace(trainer.counts, env_steps=6_000, submitted_episodes=120))
    monkeypatch.setattr(trainer, "success", successes(30, 5, 15))
    monkeypatch.setattr(trainer, "rebuild", lambda *parts: pytest.fail("the agent was replaced"))
    monkeypatch.setattr(search, "state", replace(search.state, next_at=None, noiseless_until=120))
    greedy = trainer.rollouts.exploration(119, search)
    assert (greedy.noise, greedy.random_eps, greedy.guided_episodes) == (0, 0, 0)
    search.after_job(trainer)
    assert search.state.noiseless_until == 0
    assert trainer.rollouts.exploration(120, search).noise > 0


@pytest.mark.parametrize(
    ("on_path", "straight", "success", "outcome"),
    [
        ((2, 10), (12, 0), (40, 10), "paths"),
        ((12, 0), (2, 10), (40, 10), "none"),
        ((10, 10), (10, 10), (40, 10), "none"),  # they help as little as none
        ((9, 3), (10, 2), (40, 10), "trial"),
        ((10, 2), (10, 2), (10, 40), "none"),  # the agent learns without them
    ],
)
def test_an_agent_that_mostly_fails_tries_planned_paths_and_keeps_them_if_they_help(
    tmp_path, on_path, straight, success, outcome
):
    with HER("PointReach-v0", recipe="default", **FAST | {"structure": "inferred"}) as model:
        model.learn(200)
        trainer, agent, search = model.trainer, model.trainer.agent, model.trainer.search
        weights = agent.algorithm.weights
        assert not agent.policy_spec.options.n_waypoints  # goals are near
        trainer.counts.env_steps, trainer.success = 5_000, successes(40, 10)
        search._refine(trainer, trainer.buffer.timeline.episodes())
        assert trainer.agent is agent
        assert agent.algorithm.weights is weights
        assert trainer.settings.agent_options.n_waypoints == agent.policy_spec.options.n_waypoints == 400
        assert (agent.waypoints.next_waypoint != GOAL).any()
        assert (agent.policy_weights().next_waypoint == GOAL).all()  # evaluation does not take part in the trial
        arrays, data = trainer_state(trainer)
        restore_trainer(trainer, {name: array.copy() for name, array in arrays.items()}, data)
        assert not trainer.agent.follows_paths
        model.save(tmp_path / "model.safetensors")
        with HER.load(tmp_path / "model.safetensors") as other:
            assert not other.agent.follows_paths
        model.learn(200)
        trial = search.state.trial
        assert len(trial.on_path.successes) > 0 < len(trial.straight.successes)
        trial.on_path, trial.straight, trainer.success = successes(*on_path), successes(*straight), successes(*success)
        search._refine(trainer, trainer.buffer.timeline.episodes())
        assert (search.state.open_trial is not None) == (outcome == "trial")
        assert bool(trainer.agent.policy_spec.options.n_waypoints) == (outcome != "none")
        assert (trainer.agent.policy_weights().next_waypoint != GOAL).any() == (outcome == "paths")
        reasons = [each.reason for each in search.state.found.structure if each.option == "n_waypoints"]
        assert ("10 of 12 episodes succeeded for which paths were planned, and 0 of 12 others" in reasons) == (
            outcome == "paths"
        )


def test_no_paths_are_tried_with_subgoals():
    """An agent may have found subgoals in a few episodes, and keeps them when more show a body."""
    with HER("PointReach-v0", recipe="default", **FAST | {"structure": "inferred", "updates_per_step": 1e-6}) as model:
        model.learn(200)
        trainer, search = model.trainer, model.trainer.search
        subgoal = Choice("subgoals", ("near achieved=0,1 goal=2,3 tolerance=0.1 switch_distance=0.5",), "found")
        search._adopt(trainer, search.state.found.with_option("subgoals", [subgoal]))
        assert trainer.settings.agent_options.subgoals
        trainer.counts.env_steps, trainer.success = 5_000, successes(40, 10)
        search._refine(trainer, trainer.buffer.timeline.episodes())
        assert not trainer.settings.agent_options.n_waypoints


def test_a_trial_of_paths_ends_when_the_buffer_no_longer_holds_the_first_steps(monkeypatch):
    with HER("PointReach-v0", recipe="default", **FAST | {"structure": "inferred"}) as model:
        model.learn(200)
        trainer, search = model.trainer, model.trainer.search
        trainer.counts.env_steps, trainer.success = 5_000, successes(40, 10)
        search._refine(trainer, trainer.buffer.timeline.episodes())
        trial = search.state.open_trial
        trial.on_path, trial.straight = successes(2, 10), successes(12, 0)
        monkeypatch.setattr(trainer.buffer.timeline, "wraps", True)
        search.after_job(trainer)
        assert (search.state.open_trial, search.state.next_at) == (None, None)
        assert trainer.agent.follows_paths
        assert trainer.settings.agent_options.n_waypoints == 400


@pytest.mark.parametrize(
    ("used", "holding", "refuted", "is_new"),
    [
        (("o0=-o0 g0=-g0",), ("o0=-o0 g0=-g0",), (), False),
        (("o0=-o0 g0=-g0",), ("o0=-o0 o5=-o5 g0=-g0",), (), False),  # the sign of another column may be chance
        (("o0=-o0 g0=-g0 g2=-g2",), ("o0=-o0 g0=-g0 g3=-g3",), (), True),  # an angle changes in another way
        (("o0=-o0 g0=-g0",), ("o0=-o0 g0=-g0", "o1=-o1 g1=-g1"), (), True),
        (("o0=-o0 g0=-g0", "o1=-o1 g1=-g1"), ("o0=-o0 g0=-g0",), ("o1=-o1 g1=-g1",), True),
        (("o0=-o0 g0=-g0", "o1=-o1 g1=-g1"), ("o0=-o0 g0=-g0",), (), False),  # uncertain ones hold until they are refuted
    ],
)
def test_symmetries_are_new_if_more_hold_or_goals_change_in_another_way(monkeypatch, used, holding, refuted, is_new):
    monkeypatch.setattr(structure_search, "generators", lambda found: [each for each in found if not each.is_refuted])
    found = [SimpleNamespace(text=text, is_refuted=text in refuted) for text in (*holding, *refuted)]
    assert structure_search._has_new_symmetries(SimpleNamespace(symmetries=found), used) is is_new


def sliding(mirrors):
    """What inference finds of a task without an object: these symmetries."""
    choices = [Choice("symmetries", mirrors, "seen")] if mirrors else []
    return SimpleNamespace(
        sequence=None, contact=None, symmetries=mirrors, shows_columns_again=False, choices=lambda: choices
    )


@pytest.mark.parametrize(
    ("known", "found", "used"),
    [((), ("o0=-o0",), ("o0=-o0",)), (("o0=-o0",), (), None), (("a",), ("b",), ("b",))],
)
def test_mirrors_that_hold_now_replace_those_of_before(inferred, monkeypatch, known, found, used):
    """No mirrors: a wall was found."""
    search = inferred.trainer.search
    before = found_by_steps(noise=0.2, **({"symmetries": known} if known else {}))
    monkeypatch.setattr(search, "state", replace(search.state, found=before))
    for name in ("explain_missing", "explain_findings"):
        monkeypatch.setattr(run_state, name, lambda found: [])
    search.state.take_late(sliding(found))
    assert search.state.found.value("noise") == 0.2
    assert search.state.found.value("symmetries") == used


@pytest.mark.parametrize(
    ("is_poor", "option", "outcome"),
    [
        (False, "replay", "new batches"),
        (False, "agent", "nothing"),
        (True, "replay", "new batches"),  # episodes without noise show first whether it is the noise that fails
        (True, "agent", "new agent"),
    ],
)
def test_what_is_found_late_replaces_only_a_poor_agent(inferred, monkeypatch, is_poor, option, outcome):
    trainer, search, rebuilt = inferred.trainer, inferred.trainer.search, []
    counts = replace(trainer.counts, due_updates=0.0, env_steps=5_000)
    monkeypatch.setattr(trainer, "counts", counts)
    monkeypatch.setattr(trainer, "success", successes(50, 0) if is_poor else successes(15, 0))
    monkeypatch.setattr(trainer, "rebuild", lambda parts, *others: rebuilt.append((parts[0], others[-1])))
    monkeypatch.setattr(trainer, "settings", trainer.settings)
    monkeypatch.setattr(search, "state", replace(search.state))
    changes = {"energy_cap": 0.77} if option == "replay" else {"noise": 0.07}
    monkeypatch.setattr(search, "_resolve", lambda found: Settings.from_json(trainer.settings.to_json(), **changes))
    search._adopt(trainer, found_by_steps(noise=0.07))
    is_replaced = outcome == "new agent"
    assert [agent is trainer.agent for agent, _ in rebuilt] == ([] if outcome == "nothing" else [not is_replaced])
    why = "the success in training was low (0 of the last 50 unguided episodes succeeded)"
    own = "options of the agent changed (noise), and " if option == "agent" else ""
    assert [why for _, why in rebuilt if is_replaced] == is_replaced * [own + why]
    assert counts.due_updates == is_replaced * counts.updates
    assert (search.state.found == found_by_steps(noise=0.07)) == (outcome != "nothing")


def test_a_change_of_options_is_part_of_the_next_event_and_is_not_reported_twice():
    with HER("PointReach-v0", recipe="default", **FAST | {"updates_per_step": 1.0}) as model:
        model.learn(200)
        trainer = model.trainer
        assert trainer.take_changes() == ()  # `learn` took them
        settings = Settings.from_json(trainer.settings.to_json(), noise=0.07)
        replace_agent(trainer, settings, trainer.search._build(settings, None, None))
        assert model.settings == settings
        steps, updates = trainer.counts.env_steps, trainer.counts.updates
        events = [event for event in trainer.run(steps + 1) if isinstance(event, JobFinished)]
        [[change]] = [event.changes for event in events]
        assert (change.env_steps, change.updates) == (steps, updates)
        assert [(each.option, each.before, each.value) for each in change.changes] == [("noise", 0.1, 0.07)]
        assert change.new_agent.startswith("options of the agent changed (noise), and the success in training was low")
        assert trainer.counts.catch_up_updates == updates
        arrays, data = trainer_state(trainer)
        restore_trainer(trainer, {name: array.copy() for name, array in arrays.items()}, data)
        assert trainer.take_changes() == ()


def test_options_that_a_killed_process_found_after_its_checkpoint_are_not_in_the_folder_of_the_resumed_run(tmp_path):
    options = FAST | {"structure": "inferred", "checkpoint_every": 10**9}
    with HER("PointReach-v0", recipe="default", **options) as model:
        model.learn(200, folder=tmp_path)  # it ends with a checkpoint
        before, trainer = model.settings, model.trainer
        lines = (tmp_path / "changes.jsonl").read_text()
        settings = Settings.from_json(before.to_json(), noise=0.07)
        replace_agent(trainer, settings, trainer.search._build(settings, None, None))
        model._folder.listen(trainer, JobFinished(changes=trainer.take_changes()))
        assert json.loads((tmp_path / "settings.json").read_text())["options"]["noise"] == 0.07
    with HER("PointReach-v0", recipe="default", **options) as other:
        with RunFolder(tmp_path, other.settings, other.spec) as folder:
            folder.resume(other.trainer)
        assert other.settings == before
        assert json.loads((tmp_path / "settings.json").read_text())["options"]["noise"] == 0.1
        assert (tmp_path / "changes.jsonl").read_text() == lines


def test_a_kept_agent_does_not_see_the_stored_episodes_again(monkeypatch):
    with HER("PointReach-v0", recipe="default", **FAST) as model:
        model.learn(150)
        trainer, seen = model.trainer, []
        stored = len(trainer.buffer.timeline.episodes())
        monkeypatch.setattr(trainer.agent, "observe", seen.append)
        trainer.rebuild(trainer.search._build(trainer.settings, trainer.agent, None), trainer.settings)
        assert len(trainer.buffer.timeline.episodes()) == stored > 0
        assert not seen


@pytest.mark.parametrize(("on_path", "straight", "stays"), [((12, 0), (2, 10), False), ((9, 3), (8, 4), True)])
def test_paths_that_were_planned_from_the_start_are_given_up_if_they_harm(on_path, straight, stays):
    with HER("PointReach-v0", recipe="default", **FAST | {"structure": "inferred"}) as model:
        model.learn(200)
        trainer, search = model.trainer, model.trainer.search
        assert search._paths._plan(trainer, search.state, "goals are far away")
        trainer.counts.env_steps, trainer.success = 5_000, successes(40, 10)
        search._refine(trainer, trainer.buffer.timeline.episodes())
        trial = search.state.open_trial
        assert trial.are_usual
        assert trainer.agent.follows_paths  # so does evaluation, until it is decided
        trial.on_path, trial.straight, trainer.success = successes(*on_path), successes(*straight), successes(40, 10)
        search._refine(trainer, trainer.buffer.timeline.episodes())
        assert bool(trainer.agent.policy_spec.options.n_waypoints) == stays
        assert (search.state.open_trial is not None) == stays
