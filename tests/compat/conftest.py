"""The tests of the SB3 adapter need stable-baselines3, which is optional."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("stable_baselines3") else ["test_sb3*.py"]
